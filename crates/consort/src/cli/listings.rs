//! Arguments of the verbs that show what there is: machines, policies, programs, formats.

use super::values::{self, LIVE};
use super::{ListOut, OutputFormat, ProbeArgs};
use clap::{Args, Subcommand, ValueEnum};
use consort_core::PuSet;
use std::path::PathBuf;

/// Arguments of `machine`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MachineArgs {
    /// Action other than showing it.
    #[command(subcommand)]
    pub(crate) task: Option<MachineTask>,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) list_out: ListOut,
    /// Output format; csv lists the PUs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// A described machine instead of this one: NAME or FILE.toml, either with `:smt=N,memory=NODE+NODE,prefetch=off`; or `live`
    #[arg(long, value_name = "MACHINE", default_value = LIVE, add = values::machines_and_live())]
    pub(crate) machine: String,
    /// List the described machines
    #[arg(long, conflicts_with_all = ["machine", "check"])]
    pub(crate) list: bool,
    /// PUs that count as large cores, all others as small, as `run` would have them
    #[arg(long, value_name = "PUS", conflicts_with_all = ["machine", "list"])]
    pub(crate) emulate_asymmetry: Option<PuSet>,
    /// Run built-in kernels under every event and compare with what they are known to do
    #[arg(long, conflicts_with = "machine")]
    pub(crate) check: bool,
    /// Take what PUs share from FILE, which `consort machine probe --write` makes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "list"])]
    pub(crate) topology: Option<PathBuf>,
}

/// Actions of `machine` beside showing it.
#[derive(Debug, Subcommand)]
pub(crate) enum MachineTask {
    /// Measure which PUs share a core, a level 2 cache or an LLC domain, which hypervisors may hide
    #[command(after_help = "Example: consort machine probe --write cores.toml && \
                            consort run --topology cores.toml -- ./solver input")]
    Probe(ProbeArgs),
}

/// Arguments of `policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `programs`.
#[derive(Debug, Args)]
pub(crate) struct ProgramsArgs {
    /// Describe this program: NAME or FILE.toml
    #[arg(add = values::programs())]
    pub(crate) name: Option<String>,
    /// Only the programs of this suite
    #[arg(long, value_name = "NAME", conflicts_with = "name", add = values::suites())]
    pub(crate) suite: Option<String>,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format; json and csv of one program are its description and its phases
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The kind of file
    #[arg(value_enum)]
    pub(crate) kind: SchemaKind,
}

/// Kinds of description files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// A machine.
    Machine,
    /// A program.
    Program,
    /// A study.
    Study,
    /// A sweep.
    Sweep,
}
