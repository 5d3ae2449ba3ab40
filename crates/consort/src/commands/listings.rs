//! `consort policies`, `schema`, `completions` and `man`: what the program knows of itself.

use crate::failure::bad_input;
use crate::options::ListOut;
use crate::output::{self, OutputColumn, OutputFormat, extra_text, number, text};
use crate::values::COMPLETE;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use consort_core::policies::REGISTRY;
use consort_core::policy::PolicyInfo;
use consort_lab::study::file::StudyFile;
use consort_lab::sweep::SweepSpec;
use consort_sim::describe::{machine_schema, program_schema};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Kind of file
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

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell of the script
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write to; created if absent
    pub(crate) folder: PathBuf,
}

const POLICY_COLUMNS: &[OutputColumn<PolicyInfo>] = &[
    text("name", |p| p.name.to_owned()),
    extra_text("family", |p| p.family.to_owned()),
    text("needs", |p| {
        let needs: Vec<&str> = p.needs.iter().map(|signal| signal.name()).collect();
        if needs.is_empty() {
            "nothing".to_owned()
        } else {
            needs.join(", ")
        }
    }),
    text("tier from", |p| p.tier_min.to_string()),
    number("quantum (ms)", |p| p.quantum_ms.to_string()),
    extra_text("runs on", |p| match (p.live, p.simulated) {
        (true, true) => "live, simulated".to_owned(),
        (true, false) => "live".to_owned(),
        (false, _) => "simulated".to_owned(),
    }),
    text("summary", |p| p.summary.to_owned()),
    extra_text("source", |p| p.source.to_owned()),
];

pub(crate) fn print_policies(args: &PoliciesArgs) -> Result<ExitCode> {
    output::print_list(
        args.list.out.as_deref(),
        args.format,
        POLICY_COLUMNS,
        REGISTRY,
    )?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_schema(args: &SchemaArgs) -> Result<ExitCode> {
    let schema = match args.kind {
        SchemaKind::Machine => machine_schema(),
        SchemaKind::Program => program_schema(),
        SchemaKind::Study => StudyFile::schema(),
        SchemaKind::Sweep => SweepSpec::schema(),
    };
    output::print_json(&schema)?;
    Ok(ExitCode::SUCCESS)
}

/// Name by which shells call and find this program.
const NAME: &str = "consort";

pub(crate) fn print_completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell);
    let completer = completer.ok_or_else(|| bad_input(format!("unknown shell '{shell}'")))?;
    let mut script = Vec::new();
    completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut script)?;
    output::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn write_man_pages(args: &ManArgs, command: clap::Command) -> Result<ExitCode> {
    std::fs::create_dir_all(&args.folder).map_err(|error| {
        let folder = args.folder.display();
        bad_input(format!("cannot make folder {folder}: {error}"))
    })?;
    clap_mangen::generate_to(command, &args.folder)
        .with_context(|| format!("cannot write man pages into {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
