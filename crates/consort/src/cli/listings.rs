//! Arguments of the verbs that show what there is: machines, policies, programs, formats.

use super::Format;
use clap::{Args, ValueEnum};

/// Arguments of `machine`.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// How to print; csv lists the PUs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// A described machine instead of this one: NAME or FILE.toml, either with `:smt=N,memory=NODE+NODE`; or `live`
    #[arg(long, value_name = "MACHINE", default_value = LIVE)]
    pub(crate) machine: String,
    /// List the described machines
    #[arg(long, conflicts_with_all = ["machine", "check"])]
    pub(crate) list: bool,
    /// Run built-in kernels under every event and compare with what they are known to do
    #[arg(long, conflicts_with = "machine")]
    pub(crate) check: bool,
}

/// How the machine that this runs on is called.
pub(crate) const LIVE: &str = "live";

/// Arguments of `policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `programs`.
#[derive(Debug, Args)]
pub(crate) struct ProgramsArgs {
    /// Describe this program: NAME or FILE.toml
    pub(crate) name: Option<String>,
    /// Only the programs of this suite
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub(crate) suite: Option<String>,
    /// How to print; json and csv of one program are its description and its phases
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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
}
