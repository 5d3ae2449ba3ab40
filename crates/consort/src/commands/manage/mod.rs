//! Managing threads: the host, and settings that `run`, `attach` and `daemon` share.

mod daemon_watch;
mod session;
mod setup;
mod stretches;

use crate::config::RunConfig;
use crate::failure::{as_bad_input, bad_input};
use crate::options::{parse_interval, seed_parser};
use crate::values;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use consort_core::PuSet;
use consort_core::sharing::SharingMap;
use consort_linux::enact::{EnactConfig, runtime_dirs};
use consort_linux::enforce::{EnactChoice, EnactorKind};
use consort_linux::live::{Host, WatchRate};
pub(crate) use session::ManageSession;
pub(crate) use setup::{PolicySelection, PolicySetup, check_policies, check_policy, is_auto};
use std::path::{Path, PathBuf};
use std::time::Duration;
pub(crate) use stretches::{MetricArgs, TrialArgs, undone_verdict, without_trial};

pub(crate) fn watch_choices() -> impl TypedValueParser<Value = WatchRate> {
    PossibleValuesParser::new(WatchRate::NAMES).try_map(|name| name.parse::<WatchRate>())
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ManageArgs {
    /// Policy, with options as NAME:key=value,key=value; `auto` chooses the best one that has its
    /// signals here
    #[arg(short, long, value_name = "POLICY", add = values::live_policies())]
    pub(crate) policy: Option<String>,
    /// Quantum between decisions, for example 200ms or 1s; the policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
    /// CPUs that count as large cores, all others as small, for example 0-3,8; replaces the core
    /// types that were found
    #[arg(long, value_name = "CPUS")]
    pub(crate) emulate_asymmetry: Option<PuSet>,
    /// Mechanism that keeps threads in their places: nudge, short masks that no program sees; pin,
    /// lasting masks; ext, a scheduler in the kernel; auto, which nudges, and pins threads that
    /// nudges do not keep
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(EnactChoice::NAMES)
        .try_map(|name| name.parse::<EnactChoice>()))]
    pub(crate) enact: Option<EnactChoice>,
    /// Keep other threads off a core while threads run there that a plan seats on it together; uses
    /// core-scheduling cookies of the kernel (docs/concepts/enactment.md)
    #[arg(long)]
    pub(crate) cookies: bool,
    /// Rate at which programs are watched: full, or light, which costs them less but gives less precise
    /// figures and classes
    #[arg(long, value_name = "RATE", value_parser = watch_choices())]
    pub(crate) watch: Option<WatchRate>,
    /// Decide and report, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of all randomness in the policy
    #[arg(long, value_name = "N", value_parser = seed_parser())]
    pub(crate) seed: Option<u64>,
    /// Also manage threads whose affinity was set by themselves or by another program
    #[arg(long = "override")]
    pub(crate) override_affinity: bool,
    /// Keep plans even when progress falls after them
    #[arg(long)]
    pub(crate) no_back_off: bool,
    /// Read from FILE which CPUs share cores and caches; `consort machine probe --out FILE` writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Interference model of `consort train`, for the policy symbiotic; if it fits this machine, `auto`
    /// chooses that policy
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Configuration file instead of ~/.config/consort/config.toml or /etc/consort/config.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Hidden first argument of the process that becomes a guardian.
pub(crate) const GUARDIAN: &str = "__guardian";

/// Hidden first argument of the process that reads others' memory and files.
pub(crate) const READER: &str = "__reader";

/// The policy that changes nothing.
pub(crate) const NONE: &str = "none";

/// This machine, prepared for managing, with what its CPUs share from the file that was named, if
/// one was. A command that is started inherits the limits of this process; threads that run already
/// have their own.
pub(crate) fn discover_host(
    args: &ManageArgs,
    config: &RunConfig,
    is_for_others: bool,
) -> Result<Host> {
    consort_linux::raise_descriptor_limit();
    let host = match (&args.topology, &config.topology) {
        (None, Some(path)) => {
            detect_host(Some(path)).map_err(|error| config.locate_error("topology", &error))?
        }
        (named, _) => detect_host(named.as_deref())?,
    };
    let host = if is_for_others {
        host.for_others()
    } else {
        host
    };
    emulate_asymmetry(host, args.emulate_asymmetry.as_ref())
}

/// Returns the enactors to use, and true if cores are to be kept to the threads that plans seat on
/// them. Anything that is not available is refused before anything is started.
pub(crate) fn enforcement(
    args: &ManageArgs,
    config: &RunConfig,
    host: &Host,
) -> Result<(EnactChoice, bool)> {
    let choice = args.enact.or(config.enact).unwrap_or_default();
    let first = choice.first();
    let status = host.enactors.iter().find(|status| status.name == first);
    if let Some(status) = status.filter(|status| !status.available) {
        return Err(bad_input(format!(
            "--enact {first}: {}; `consort machine` lists the available enactors",
            status.reason
        )));
    }
    if !(args.cookies || config.cookies.unwrap_or(false)) {
        return Ok((choice, false));
    }
    let why = if first == EnactorKind::Ext {
        "not with the enactor ext; cookies and a sched_ext scheduler together hang hosts with SMT \
         (sched-ext/scx#3715)"
            .to_owned()
    } else if host.cookies.available {
        return Ok((choice, true));
    } else {
        let reason = &host.cookies.reason;
        format!("{reason}; see `consort machine`")
    };
    match args.cookies {
        true => Err(bad_input(format!("--cookies: {why}"))),
        false => Err(config.locate_error("cookies", &anyhow!(why))),
    }
}

/// Returns the folders of the journal and the arguments that start the guardian.
pub(crate) fn enact_config(changes_nothing: bool) -> EnactConfig {
    EnactConfig {
        guardian_args: vec![GUARDIAN.into()],
        runtime_dirs: runtime_dirs(),
        changes_nothing,
    }
}

/// This machine; `topology` is a file that describes what its CPUs share instead of the kernel.
pub(crate) fn detect_host(topology: Option<&Path>) -> Result<Host> {
    let host = Host::detect(Path::new("/")).context("cannot see the processor")?;
    match topology {
        Some(path) => host
            .with_sharing(
                parse_sharing(path, consort_describe::input::read_text(path))?,
                &path.display().to_string(),
            )
            .map_err(bad_input),
        None => Ok(host),
    }
}

/// The same machine with CPUs that count as large cores, if any are named.
pub(crate) fn emulate_asymmetry(host: Host, large: Option<&PuSet>) -> Result<Host> {
    match large {
        Some(large) => host
            .with_large(large.clone())
            .map_err(|error| bad_input(format!("--emulate-asymmetry: {error}"))),
        None => Ok(host),
    }
}

/// Checks a sharing file as a daemon does while it runs: unlike a pipe, a regular file never makes it
/// wait for another process.
pub(crate) fn check_sharing(path: &Path) -> Result<()> {
    parse_sharing(path, consort_describe::input::read_regular_file(path)).map(drop)
}

fn parse_sharing(path: &Path, text: std::io::Result<String>) -> Result<SharingMap> {
    let origin = path.display().to_string();
    let text = text
        .with_context(|| format!("cannot read topology {origin}"))
        .map_err(|error| as_bad_input(&error))?;
    SharingMap::parse(&text, &origin).map_err(bad_input)
}
