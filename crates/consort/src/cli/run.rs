//! Arguments of `run`, and those that other verbs which manage threads share with it.

use super::count::seed_parser;
use super::values;
use super::{NumbersOut, OutputFormat, parse_interval};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use consort_core::PuSet;
use consort_linux::enforce::EnactChoice;
use consort_linux::group::GroupName;
use consort_linux::live::WatchRate;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

fn enact_choices() -> impl TypedValueParser<Value = EnactChoice> {
    PossibleValuesParser::new(EnactChoice::NAMES).try_map(|name| name.parse::<EnactChoice>())
}

pub(super) fn watch_choices() -> impl TypedValueParser<Value = WatchRate> {
    PossibleValuesParser::new(WatchRate::NAMES).try_map(|name| name.parse::<WatchRate>())
}

/// Options of managing threads, whatever they belong to.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ManageArgs {
    /// Policy, with options as NAME:key=value,key=value; `auto` takes the best that can be fed here
    #[arg(short, long, value_name = "POLICY", add = values::live_policies())]
    pub(crate) policy: Option<String>,
    /// Quantum between decisions, for example 200ms or 1s; the policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
    /// PUs that count as large cores, all others as small, for example 0-3,8; replaces the core
    /// types that were found
    #[arg(long, value_name = "PUS")]
    pub(crate) emulate_asymmetry: Option<PuSet>,
    /// Mechanism that keeps threads in their places: nudge, whose masks no program sees; pin,
    /// lasting masks; ext, a scheduler in the kernel; auto nudges, and pins workers that nudges do
    /// not keep
    #[arg(long, value_name = "HOW", value_parser = enact_choices())]
    pub(crate) enact: Option<EnactChoice>,
    /// Keep each core to the threads that a plan seats on it together: nobody else runs beside them.
    /// Uses core-scheduling cookies, where the kernel has them (docs/enactment.md)
    #[arg(long)]
    pub(crate) cookies: bool,
    /// Rate at which programs are watched: full, or light, which costs them less and leaves figures
    /// and classes rougher
    #[arg(long, value_name = "RATE", value_parser = watch_choices())]
    pub(crate) watch: Option<WatchRate>,
    /// Decide and report, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seed of all randomness in the policy
    #[arg(long, value_name = "N", value_parser = seed_parser())]
    pub(crate) seed: Option<u64>,
    /// Also manage threads whose affinity somebody set on purpose
    #[arg(long = "override")]
    pub(crate) override_affinity: bool,
    /// Keep plans even when progress falls after them
    #[arg(long)]
    pub(crate) no_back_off: bool,
    /// Take what PUs share from FILE, which `consort machine probe --write` makes
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Interference model of `consort train`, for the policy symbiotic; where it fits, `auto` takes
    /// that policy
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Configuration file instead of ~/.config/consort/config.toml or /etc/consort/config.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    /// Join the group NAME: the programs of all runs that name it share the machine under one
    /// policy, which pauses them in turn and gives them sets of cores
    #[arg(short, long, value_name = "NAME")]
    pub(crate) group: Option<GroupName>,
    /// Write the report as JSON to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the report as a page for browsers to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report_html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format of the report; json and csv take stdout for themselves and send the command's
    /// output to stderr
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// Measures of programs that this machine cannot count, from FILE: a report of a run on one that
    /// can, or written by hand (docs/groups.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Show the line of progress even where the command reads or writes the terminal itself
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) progress: bool,
    /// No progress line and no table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Record what is seen, planned and done to FILE, as Parquet (docs/recording.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace the recording if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Manage the command here, even where a daemon of this user runs
    #[arg(long)]
    pub(crate) no_daemon: bool,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<OsString>,
}
