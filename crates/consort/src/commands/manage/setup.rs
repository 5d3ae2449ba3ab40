//! Decisions before anything is started: the policy, its model, quantum and seed.

use super::{ManageArgs, NONE};
use crate::config::{self, ConsortConfig, RunConfig};
use crate::failure::{bad_input, error_chain};
use anyhow::{Context, Result};
use consort_core::model::InterferenceModel;
use consort_core::policy::{Policy, PolicyError, PolicyForm, PolicySpec, published_name};
use consort_core::{AUTO, Backoff, Machine, SignalOffers, Topology, choose_policy, policies};
use consort_linux::live::WatchRate;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fall of progress below this share of what it was is put down to the plan.
const TOLERATED_FALL: f64 = 0.05;

/// The policy that uses interference models.
const SYMBIOTIC: &str = "symbiotic";
/// Its option for the model.
const MODEL_OPTION: &str = "model";

/// Everything that is decided before anything is started.
pub(crate) struct PolicySetup {
    pub(crate) selection: PolicySelection,
    pub(crate) seed: u64,
    pub(crate) backoff: Backoff,
    pub(crate) policy: Box<dyn Policy>,
}

/// The decisions that a report shows, and that are made again when the usable CPUs change.
#[derive(Clone, Debug)]
pub(crate) struct PolicySelection {
    pub(crate) policy: String,
    pub(crate) requested: String,
    pub(crate) why: String,
    pub(crate) interval: Duration,
    /// The model that was named in addition to the policy.
    model: Option<PathBuf>,
    /// The machine for which the choice was made.
    topology: Topology,
    /// The rate at which programs are to be watched; `None` if it follows from the policy.
    watch: Option<WatchRate>,
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

    /// Returns true if threads are never placed: without a policy, whatever CPUs come and go.
    pub(crate) fn is_watch_only(&self) -> bool {
        self.policy == NONE && !is_auto(&self.requested)
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
    pub(crate) fn new(
        args: &ManageArgs,
        config: &RunConfig,
        topology: &Topology,
        offers: &SignalOffers,
    ) -> Result<Self> {
        if let (None, Some(policy)) = (&args.policy, &config.policy) {
            let setup = Self::for_policy(args, config, policy, topology, offers);
            return setup.map_err(|error| config.locate_error("policy", &error));
        }
        let requested = args.policy.clone();
        let requested = requested.unwrap_or_else(|| AUTO.to_owned());
        Self::for_policy(args, config, &requested, topology, offers)
    }

    pub(crate) fn for_policy(
        args: &ManageArgs,
        config: &RunConfig,
        requested: &str,
        topology: &Topology,
        offers: &SignalOffers,
    ) -> Result<Self> {
        let requested = published_name(requested).into_owned();
        let (spec, why) = resolve(&requested, args.model.as_deref(), topology, offers)?;
        let policy = policies::open(topology, offers, &spec).map_err(unfed_error)?;
        let info = policies::find(&spec.name).map_err(bad_input)?;
        // Live machines have the software form only.
        let own_ms = { policy.wishes() }.quantum_in_ms(PolicyForm::Software, info.quantum_ms);
        let interval = args.interval.or(config.interval);
        let back_off = !args.no_back_off && config.back_off.unwrap_or(true);
        Ok(Self {
            selection: PolicySelection {
                policy: spec.name,
                requested,
                why,
                interval: interval.unwrap_or(Duration::from_millis(own_ms)),
                model: args.model.clone(),
                topology: topology.clone(),
                watch: args.watch.or(config.watch),
            },
            policy,
            seed: args.seed.or(config.seed).unwrap_or(1),
            backoff: if back_off {
                Backoff::new(TOLERATED_FALL)
            } else {
                Backoff::off()
            },
        })
    }

    /// Chooses again, because a tier that the host offers may not have been set up for this command.
    pub(crate) fn rechoose_for_machine(mut self, machine: &impl Machine) -> Result<Self> {
        let selection = &mut self.selection;
        if is_auto(&selection.requested) {
            let (topology, offers) = (machine.topology(), machine.offers());
            let model = selection.model.as_deref();
            let (spec, why) = resolve(&selection.requested, model, topology, offers)?;
            let spec = without_foreign_options(spec);
            self.policy = policies::open(topology, offers, &spec).map_err(unfed_error)?;
            selection.topology = topology.clone();
            (selection.policy, selection.why) = (spec.name, why);
        }
        Ok(self)
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

/// The policy to use and the reason: the requested one, or the best that has its signals here.
fn resolve(
    text: &str,
    model: Option<&Path>,
    topology: &Topology,
    offers: &SignalOffers,
) -> Result<(PolicySpec, String)> {
    let mut spec: PolicySpec = text.parse().map_err(bad_input)?;
    let mut why = "as requested".to_owned();
    if spec.name == AUTO {
        why = resolve_auto(&mut spec, model, topology, offers)?;
    } else if let Some(model) = model {
        set_model_option(&mut spec, model)?;
    }
    spec.attach(consort_describe::input::read_if_file)
        .map_err(bad_input)?;
    Ok((spec, why))
}

/// Names the best policy in `spec`, with a model that fits; returns the reason for it.
fn resolve_auto(
    spec: &mut PolicySpec,
    model: Option<&Path>,
    topology: &Topology,
    offers: &SignalOffers,
) -> Result<String> {
    let found = find_model(model, offers)?;
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
        Some(path) => set_model_option(spec, &path)?,
        None => {
            for refused in &found.refused {
                why = format!("{why}; {refused}");
            }
        }
    }
    Ok(why)
}

/// Points the error to `consort machine`, which shows what keeps a signal away.
fn unfed_error(error: PolicyError) -> anyhow::Error {
    match error {
        PolicyError::Unfed { ref needs, .. } => {
            let recorded = needs.contains("llc-") || needs.contains("bus-");
            let way = if recorded {
                ", and --measures FILE brings measures from a machine that has them"
            } else {
                ""
            };
            bad_input(format!("{error}; `consort machine` says why{way}"))
        }
        other => bad_input(other),
    }
}

/// Refuses the text of a policy that cannot exist anywhere.
pub(crate) fn check_policy(text: &str) -> Result<(), PolicyError> {
    let spec: PolicySpec = text.parse()?;
    if spec.name != AUTO {
        policies::find(&spec.name)?;
    }
    Ok(())
}

/// Refuses a configuration with policies that cannot exist anywhere, before a daemon meets them.
pub(crate) fn check_policies(config: &ConsortConfig) -> Result<()> {
    if config.run.trial.is_some() {
        let why = anyhow::anyhow!("only a daemon has trials; use `consort run --trial`");
        return Err(config.run.locate_error("trial", &why));
    }
    let tables = [("run", &config.run), ("daemon", &config.daemon)];
    let named = tables
        .into_iter()
        .filter_map(|(table, values)| Some((table, values.policy.as_ref()?)));
    let entries = config.manage.iter();
    let assigned = entries.filter_map(|entry| Some(("[[manage]]", entry.policy.as_ref()?)));
    for (table, policy) in named.chain(assigned) {
        check_policy(policy).map_err(|error| bad_input(format!("{table}: {error}")))?;
    }
    Ok(())
}

/// Result of looking for a model.
#[derive(Debug, Default)]
struct ModelSearch {
    /// The first that fits.
    fitting: Option<PathBuf>,
    /// Reasons why those before it do not, one sentence each.
    refused: Vec<String>,
}

/// Looks for a model that fits: the named one, or else `*.toml` in `models` of the folders of
/// configuration, by name. A named one that is no model is an error; one that does not fit is not.
fn find_model(named: Option<&Path>, offers: &SignalOffers) -> Result<ModelSearch> {
    let mut found = ModelSearch::default();
    if let Some(path) = named {
        let model = read_model(path)
            .map_err(|error| bad_input(format!("--model: {}", error_chain(&error))))?;
        match model.check_fit(offers.machine(), offers.stack()) {
            Ok(()) => found.fitting = Some(path.to_owned()),
            Err(misfit) => found.refused.push(misfit.to_string()),
        }
        return Ok(found);
    }
    let folders = config::folders();
    for path in { folders.iter() }.flat_map(|folder| config::toml_files(&folder.join("models"))) {
        let model = read_model(&path);
        match model.and_then(|model| Ok(model.check_fit(offers.machine(), offers.stack())?)) {
            Ok(()) => {
                found.fitting = Some(path);
                break;
            }
            Err(error) => found.refused.push(error_chain(&error)),
        }
    }
    Ok(found)
}

/// Gives the policy a model; only one policy takes one, and only once.
fn set_model_option(spec: &mut PolicySpec, model: &Path) -> Result<()> {
    if spec.name != SYMBIOTIC {
        let name = &spec.name;
        return Err(bad_input(format!(
            "--model is for the policy {SYMBIOTIC} and for auto; {name} takes no model"
        )));
    }
    let path = model.display().to_string();
    if let Some(other) = spec.options.get(MODEL_OPTION) {
        return Err(bad_input(format!(
            "both --model {path} and {MODEL_OPTION}={other} are given; give one"
        )));
    }
    // A bare name is that of a model that comes with Consort.
    let path = match consort_describe::input::is_path(&path) {
        true => path,
        false => format!("./{path}"),
    };
    spec.options.insert(MODEL_OPTION.to_owned(), path);
    Ok(())
}

fn read_model(path: &Path) -> Result<InterferenceModel> {
    let origin = path.display().to_string();
    let text = consort_describe::input::read_text(path)
        .with_context(|| format!("cannot read {origin}"))?;
    Ok(InterferenceModel::parse(&text, &origin)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::policy::Wishes;
    use consort_core::{EnactmentReport, Observation, Plan, Signal, Tier};
    use std::convert::Infallible;

    /// A machine that does nothing.
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
    fn foreign_options_do_not_stop_second_choice() {
        let kept = |text: &str| without_foreign_options(text.parse().unwrap()).options.len();
        assert_eq!(kept("workover:margin=0.1"), 1);
        assert_eq!(kept("none:margin=0.1"), 0);
    }
}
