//! The policy that decides for now, and the change to another.

use super::ground::{Families, Ground, Load};
use super::options::Passed;
use super::umbrella::{Promise, lasts, preferences};
use crate::policies::{find, open};
use crate::policy::{Form, Policy, PolicyError, View};
use crate::sample::Ended;
use crate::signal::Offers;
use crate::topology::Topology;

/// Quanta in succession in which another kind of ground or load must show before another policy
/// takes over, so that a program that starts or ends changes nothing by the way.
const QUANTA_TO_CHANGE: u32 = 4;

/// A policy that is open on this machine.
pub(super) struct Chosen {
    pub(super) promise: Promise,
    /// Its usual quantum, ms.
    usual_ms: u64,
    pub(super) policy: Box<dyn Policy>,
}

impl Chosen {
    /// Its quantum where the machine grants a form, ms.
    pub(super) fn quantum_ms(&self, granted: Form) -> u64 {
        self.policy.wishes().quantum_in_ms(granted, self.usual_ms)
    }
}

/// The policy that decides, if not the guidelines.
#[derive(Default)]
pub(super) struct Guide {
    /// The kind of ground that the policy was chosen for.
    kind: Option<&'static str>,
    chosen: Option<Chosen>,
    /// Reasons for which policies that know more were not taken.
    refusals: Vec<String>,
    /// Quanta in succession in which another kind has shown.
    others: u32,
    families: Families,
}

impl Guide {
    /// Looks at the present ground and load, and changes over where another kind has lasted.
    pub(super) fn follow(
        &mut self,
        view: View<'_>,
        ground: &Ground,
        offers: &Offers,
        passed: &Passed,
    ) {
        let load = Load::of(view.observation, &mut self.families);
        let (kind, promises) = preferences(ground, &load, passed.objective);
        let lasts = self.kind.is_some_and(|kind| lasts(kind, &load));
        if self.kind == Some(kind) || load.threads == 0 || lasts {
            self.others = 0;
            return;
        }
        self.others += u32::from(view.observation.ended == Ended::Quantum);
        if self.kind.is_none() || self.others >= QUANTA_TO_CHANGE {
            self.change(kind, promises, view.topology, offers, passed);
        }
    }

    /// Takes the first policy that the machine can feed and that fits it.
    fn change(
        &mut self,
        kind: &'static str,
        promises: &[Promise],
        topology: &Topology,
        offers: &Offers,
        passed: &Passed,
    ) {
        self.kind = Some(kind);
        self.others = 0;
        self.chosen = None;
        self.refusals.clear();
        for promise in promises {
            match make(promise, topology, offers, passed) {
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

    pub(super) fn chosen(&mut self) -> Option<&mut Chosen> {
        self.chosen.as_mut()
    }

    /// Sentences that say which policy decides and why.
    pub(super) fn sentences(&self) -> Vec<String> {
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
pub(super) fn expected(
    topology: &Topology,
    ground: &Ground,
    offers: &Offers,
    passed: &Passed,
) -> Option<Chosen> {
    let (_, promises) = preferences(ground, &Load::default(), passed.objective);
    let made = |promise| make(promise, topology, offers, passed).ok();
    promises.iter().find_map(made)
}

fn make(
    promise: &Promise,
    topology: &Topology,
    offers: &Offers,
    passed: &Passed,
) -> Result<Chosen, PolicyError> {
    let info = find(promise.policy)?;
    Ok(Chosen {
        promise: *promise,
        usual_ms: info.quantum_ms,
        policy: open(topology, offers, &passed.spec(info))?,
    })
}
