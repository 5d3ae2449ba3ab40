//! The policy that decides for now, and the change to another.

use super::machine_properties::{MachineLoad, MachineProperties, MultithreadedPrograms};
use super::options::ForwardedOptions;
use super::policy_preferences::{PolicyPromise, is_lasting, preferences};
use crate::policies::{find, open};
use crate::policy::{Policy, PolicyError, PolicyForm, View};
use crate::sample::IntervalEnd;
use crate::signal::SignalOffers;
use crate::topology::Topology;

/// Quanta in succession in which another kind of ground or load must show before another policy
/// takes over, so that a program that starts or ends changes nothing by the way.
const QUANTA_TO_CHANGE: u32 = 4;

/// A policy that is open on this machine.
pub(super) struct ChosenPolicy {
    pub(super) promise: PolicyPromise,
    /// Its usual quantum, ms.
    usual_ms: u64,
    pub(super) policy: Box<dyn Policy>,
}

impl ChosenPolicy {
    /// Its quantum where the machine grants a form, ms.
    pub(super) fn quantum_ms(&self, granted: PolicyForm) -> u64 {
        self.policy.wishes().quantum_in_ms(granted, self.usual_ms)
    }
}

/// The policy that decides, if not the guidelines.
#[derive(Default)]
pub(super) struct PolicySelector {
    /// The kind of ground that the policy was chosen for.
    kind: Option<&'static str>,
    chosen: Option<ChosenPolicy>,
    /// Reasons for which policies that know more were not taken.
    refusals: Vec<String>,
    /// Quanta in succession in which another kind has shown.
    others: u32,
    families: MultithreadedPrograms,
}

impl PolicySelector {
    /// Looks at the present ground and load, and changes over where another kind has lasted.
    pub(super) fn update_choice(
        &mut self,
        view: View<'_>,
        ground: &MachineProperties,
        offers: &SignalOffers,
        passed: &ForwardedOptions,
    ) {
        let load = MachineLoad::from_observation(view.observation, &mut self.families);
        let (kind, promises) = preferences(ground, &load, passed.objective);
        let lasts = self.kind.is_some_and(|kind| is_lasting(kind, &load));
        if self.kind == Some(kind) || load.threads == 0 || lasts {
            self.others = 0;
            return;
        }
        self.others += u32::from(view.observation.ended == IntervalEnd::Quantum);
        if self.kind.is_none() || self.others >= QUANTA_TO_CHANGE {
            self.change_policy(kind, promises, view.topology, offers, passed);
        }
    }

    /// Takes the first policy that the machine can feed and that fits it.
    fn change_policy(
        &mut self,
        kind: &'static str,
        promises: &[PolicyPromise],
        topology: &Topology,
        offers: &SignalOffers,
        passed: &ForwardedOptions,
    ) {
        self.kind = Some(kind);
        self.others = 0;
        self.chosen = None;
        self.refusals.clear();
        for promise in promises {
            match open_policy(promise, topology, offers, passed) {
                Ok(chosen) => {
                    self.chosen = Some(chosen);
                    return;
                }
                Err(error) => self
                    .refusals
                    .push(format!("{} is not asked: {error}", promise.policy)),
            }
        }
    }

    pub(super) fn current_policy(&mut self) -> Option<&mut ChosenPolicy> {
        self.chosen.as_mut()
    }

    /// Sentences that say which policy decides and why.
    pub(super) fn describe_choice(&self) -> Vec<String> {
        let Some(kind) = self.kind else {
            return vec!["nothing has run yet".to_owned()];
        };
        let who = match &self.chosen {
            Some(chosen) => format!(
                "{} decides, since {kind}: {}",
                chosen.promise.policy, chosen.promise.promise
            ),
            None => format!("the guidelines decide, since {kind}"),
        };
        std::iter::once(who)
            .chain(self.refusals.iter().cloned())
            .collect()
    }
}

/// The policy that the umbrella expects on a ground before anything has run: the first that fits.
pub(super) fn expected_policy(
    topology: &Topology,
    ground: &MachineProperties,
    offers: &SignalOffers,
    passed: &ForwardedOptions,
) -> Option<ChosenPolicy> {
    let (_, promises) = preferences(ground, &MachineLoad::default(), passed.objective);
    let made = |promise| open_policy(promise, topology, offers, passed).ok();
    promises.iter().find_map(made)
}

fn open_policy(
    promise: &PolicyPromise,
    topology: &Topology,
    offers: &SignalOffers,
    passed: &ForwardedOptions,
) -> Result<ChosenPolicy, PolicyError> {
    let info = find(promise.policy)?;
    Ok(ChosenPolicy {
        promise: *promise,
        usual_ms: info.quantum_ms,
        policy: open(topology, offers, &passed.spec(info))?,
    })
}
