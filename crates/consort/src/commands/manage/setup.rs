//! Decisions of `consort run` before anything is started: the policy, its quantum, its seed.

use super::NONE;
use super::models::{self, SYMBIOTIC};
use crate::cli::ManageArgs;
use crate::config::{ConsortConfig, RunConfig};
use crate::failure::bad_input;
use anyhow::Result;
use consort_core::policy::{Policy, PolicyError, PolicyForm, PolicySpec};
use consort_core::{AUTO, Backoff, Machine, SignalOffers, Topology, choose_policy, policies};
use consort_linux::live::WatchRate;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fall of progress below this share of what it was is put down to the plan.
const TOLERATED_FALL: f64 = 0.05;

/// Everything that was decided before anything is started.
pub(crate) struct PolicySetup {
    pub(crate) spec: PolicySpec,
    pub(crate) requested: String,
    /// The model that was named beside the policy.
    pub(crate) model: Option<PathBuf>,
    pub(crate) why: String,
    pub(crate) interval: Duration,
    pub(crate) seed: u64,
    pub(crate) backoff: Backoff,
    pub(crate) policy: Box<dyn Policy>,
    /// The machine for which everything was decided.
    pub(crate) topology: Topology,
    /// The rate at which programs are to be watched; `None` if it follows from the policy.
    pub(super) watch: Option<WatchRate>,
}

/// Decisions as a report tells them.
#[derive(Clone, Debug)]
pub(crate) struct PolicySelection {
    pub(crate) policy: String,
    pub(crate) requested: String,
    pub(crate) why: String,
    pub(crate) interval: Duration,
    /// The model that was named beside the policy.
    pub(crate) model: Option<PathBuf>,
    /// The machine for which the choice was made.
    pub(crate) topology: Topology,
    pub(super) watch: Option<WatchRate>,
}

impl PolicySelection {
    /// The rate at which programs are watched: a low one if `auto` places nothing, unless the user
    /// chose a rate. A recording, and programs with policies of their own, need the full one.
    pub(crate) fn watch(&self, needs_full: bool) -> WatchRate {
        let is_idle = is_auto(&self.requested) && self.policy == NONE && !needs_full;
        let usual = if is_idle {
            WatchRate::Light
        } else {
            WatchRate::Full
        };
        self.watch.unwrap_or(usual)
    }

    /// Chooses again if the choice was left to Consort and the usable CPUs are others than those
    /// for which it was made. The policy is `None` if the one that decides now stays the best.
    pub(crate) fn choose_again(
        &mut self,
        machine: &impl Machine,
    ) -> Result<Option<Box<dyn Policy>>> {
        let topology = machine.topology();
        if self.topology == *topology {
            return Ok(None);
        }
        self.topology = topology.clone();
        if !is_auto(&self.requested) {
            return Ok(None);
        }
        let offers = machine.offers();
        let (spec, why) = resolve(&self.requested, self.model.as_deref(), topology, offers)?;
        self.why = why;
        if spec.name == self.policy {
            return Ok(None);
        }
        let spec = without_foreign_options(spec);
        let policy = policies::open(topology, offers, &spec).map_err(unfed_error)?;
        self.policy = spec.name;
        Ok(Some(policy))
    }
}

impl PolicySetup {
    /// Returns the decisions as a report tells them.
    pub(crate) fn selection(&self) -> PolicySelection {
        PolicySelection {
            policy: self.spec.name.clone(),
            requested: self.requested.clone(),
            why: self.why.clone(),
            interval: self.interval,
            model: self.model.clone(),
            topology: self.topology.clone(),
            watch: self.watch,
        }
    }

    /// Returns true if threads are never placed: without a policy, whatever CPUs come and go.
    pub(crate) fn is_watch_only(&self) -> bool {
        self.spec.name == NONE && !is_auto(&self.requested)
    }

    pub(crate) fn new(
        args: &ManageArgs,
        config: &RunConfig,
        topology: &Topology,
        offers: &SignalOffers,
    ) -> Result<Self> {
        if let (None, Some(policy)) = (&args.policy, &config.policy) {
            let setup = Self::for_policy(args, config, policy.clone(), topology, offers);
            return setup.map_err(|error| config.locate_error("policy", &error));
        }
        let requested = args.policy.clone();
        let requested = requested.unwrap_or_else(|| AUTO.to_owned());
        Self::for_policy(args, config, requested, topology, offers)
    }

    /// Sets up a run that takes the lead of a group, whose policy and quantum are settled.
    pub(crate) fn for_group(
        args: &ManageArgs,
        config: &RunConfig,
        policy: &str,
        interval: Duration,
        topology: &Topology,
        offers: &SignalOffers,
    ) -> Result<Self> {
        let setup = Self::for_policy(args, config, policy.to_owned(), topology, offers)?;
        Ok(Self { interval, ..setup })
    }

    pub(crate) fn for_policy(
        args: &ManageArgs,
        config: &RunConfig,
        requested: String,
        topology: &Topology,
        offers: &SignalOffers,
    ) -> Result<Self> {
        let (spec, why) = resolve(&requested, args.model.as_deref(), topology, offers)?;
        let policy = policies::open(topology, offers, &spec).map_err(unfed_error)?;
        let info = policies::find(&spec.name).map_err(bad_input)?;
        // Live machines have the software form only.
        let own_ms = { policy.wishes() }.quantum_in_ms(PolicyForm::Software, info.quantum_ms);
        let interval = args.interval.or(config.interval);
        let back_off = !args.no_back_off && config.back_off.unwrap_or(true);
        Ok(Self {
            interval: interval.unwrap_or(Duration::from_millis(own_ms)),
            policy,
            spec,
            requested,
            model: args.model.clone(),
            why,
            seed: args.seed.or(config.seed).unwrap_or(1),
            backoff: if back_off {
                Backoff::new(TOLERATED_FALL)
            } else {
                Backoff::off()
            },
            topology: topology.clone(),
            watch: args.watch.or(config.watch),
        })
    }

    /// Chooses again where a tier that was there could not be set up for this command.
    pub(crate) fn rechoose_for_machine(self, machine: &impl Machine) -> Result<Self> {
        if !is_auto(&self.requested) {
            return Ok(self);
        }
        let (spec, why) = resolve(
            &self.requested,
            self.model.as_deref(),
            machine.topology(),
            machine.offers(),
        )?;
        let spec = without_foreign_options(spec);
        Ok(Self {
            policy: policies::open(machine.topology(), machine.offers(), &spec)
                .map_err(unfed_error)?,
            topology: machine.topology().clone(),
            spec,
            why,
            ..self
        })
    }
}

/// Returns true if a policy's text, `name:key=value`, leaves the choice to Consort.
pub(crate) fn is_auto(policy: &str) -> bool {
    policy.split(':').next() == Some(AUTO)
}

/// Drops the options if they do not fit the second choice as they did the first: the command runs
/// already, so that it is too late to refuse them.
fn without_foreign_options(spec: PolicySpec) -> PolicySpec {
    let fits = policies::check(&spec).is_ok();
    let options = if fits { spec.options } else { BTreeMap::new() };
    PolicySpec { options, ..spec }
}

/// The policy to use and why: the one asked for, or the best that can be fed here.
fn resolve(
    text: &str,
    model: Option<&Path>,
    topology: &Topology,
    offers: &SignalOffers,
) -> Result<(PolicySpec, String)> {
    let mut spec: PolicySpec = text.parse().map_err(bad_input)?;
    if spec.name == AUTO {
        return resolve_auto(spec, model, topology, offers);
    }
    if let Some(model) = model {
        models::set_model_option(&mut spec, model)?;
    }
    spec.attach(consort_describe::input::read_if_file)
        .map_err(bad_input)?;
    Ok((spec, "as asked".to_owned()))
}

fn resolve_auto(
    mut spec: PolicySpec,
    model: Option<&Path>,
    topology: &Topology,
    offers: &SignalOffers,
) -> Result<(PolicySpec, String)> {
    let found = models::find(model, offers)?;
    let fitting = found
        .fitting
        .as_ref()
        .map(|path| path.display().to_string());
    let choice = choose_policy(topology, offers, fitting.as_deref());
    spec.name = choice.name.to_owned();
    let mut why = choice.why;
    if spec.name == NONE {
        why.push_str(", at a low rate unless --watch says otherwise");
    }
    match found.fitting.filter(|_| spec.name == SYMBIOTIC) {
        Some(path) => models::set_model_option(&mut spec, &path)?,
        None => why = models::append_refusals(why, &found.refused),
    }
    spec.attach(consort_describe::input::read_if_file)
        .map_err(bad_input)?;
    Ok((spec, why))
}

/// Points the error to `consort machine`, which says what keeps a signal away.
fn unfed_error(error: PolicyError) -> anyhow::Error {
    match error {
        PolicyError::Unfed { ref needs, .. } => {
            let recorded = needs.contains("llc-") || needs.contains("bus-");
            let way = if recorded {
                ", and --profile FILE brings measures from a machine that has them"
            } else {
                ""
            };
            bad_input(format!("{error}; `consort machine` says why{way}"))
        }
        other => bad_input(other),
    }
}

/// Refuses a configuration with policies that cannot exist anywhere, before a daemon meets them.
pub(crate) fn check_policies(config: &ConsortConfig) -> Result<()> {
    let tables = [("run", &config.run), ("daemon", &config.daemon)];
    let named = tables
        .into_iter()
        .filter_map(|(table, of)| Some((table, of.policy.as_ref()?)));
    let entries = config.manage.iter();
    let assigned = entries.filter_map(|entry| Some(("[[manage]]", entry.policy.as_ref()?)));
    for (table, policy) in named.chain(assigned) {
        let spec: PolicySpec = policy
            .parse()
            .map_err(|error| bad_input(format!("{table}: {error}")))?;
        let known = spec.name == AUTO || policies::find(&spec.name).is_ok();
        if let (false, Err(error)) = (known, policies::find(&spec.name)) {
            return Err(bad_input(format!("{table}: {error}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::policy::Wishes;
    use consort_core::{EnactmentReport, Observation, Plan, Signal, Tier};
    use std::convert::Infallible;

    /// A machine that is never asked to do anything.
    struct Still(Topology, SignalOffers);

    impl Machine for Still {
        type Error = Infallible;

        fn topology(&self) -> &Topology {
            &self.0
        }

        fn offers(&self) -> &SignalOffers {
            &self.1
        }

        fn grant_wishes(&mut self, _: Wishes) {}

        fn observe(&mut self) -> Result<Option<Observation>, Infallible> {
            Ok(None)
        }

        fn enact(&mut self, _: &Plan) -> Result<EnactmentReport, Infallible> {
            Ok(EnactmentReport::default())
        }
    }

    /// Names of the policy before and after `second` replaces `first` as the usable CPUs.
    fn chosen_on(requested: &str, first: Topology, second: Topology) -> (String, String) {
        let offers: SignalOffers = [(Signal::CpuTime, Tier::Proc)].into_iter().collect();
        let (spec, why) = resolve(requested, None, &first, &offers).unwrap();
        let mut chosen = PolicySelection {
            policy: spec.name,
            requested: requested.to_owned(),
            why,
            interval: Duration::from_secs(1),
            model: None,
            topology: first,
            watch: None,
        };
        assert_eq!(chosen.watch(true), WatchRate::Full);
        let before = chosen.policy.clone();
        let machine = Still(second, offers);
        let other = chosen.choose_again(&machine).unwrap();
        let is_light = chosen.watch(false) == WatchRate::Light;
        assert_eq!(is_light, chosen.policy == NONE);
        assert_eq!(other.is_some(), before != chosen.policy);
        assert!(chosen.choose_again(&machine).unwrap().is_none());
        (before, chosen.policy)
    }

    #[test]
    fn automatic_choice_follows_the_usable_cpus() {
        let alike = || Topology::uniform(2, 1).unwrap();
        let paired = || Topology::uniform(2, 2).unwrap();
        let names = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        assert_eq!(
            chosen_on("auto", alike(), paired()),
            names("none", "spread")
        );
        assert_eq!(
            chosen_on("auto", paired(), alike()),
            names("spread", "none")
        );
        let cores = Topology::uniform(4, 1).unwrap();
        assert_eq!(chosen_on("auto", alike(), cores), names("none", "none"));
        assert_eq!(
            chosen_on("spread", paired(), alike()),
            names("spread", "spread")
        );
    }

    #[test]
    fn options_of_the_first_choice_do_not_stop_the_second() {
        let kept = |text: &str| without_foreign_options(text.parse().unwrap()).options.len();
        assert_eq!(kept("workover:margin=0.1"), 1);
        assert_eq!(kept("none:margin=0.1"), 0);
    }
}
