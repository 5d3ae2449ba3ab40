//! `consort list schemas`, `completions` and `man`: files that other tools read.

use crate::failure::bad_input;
use crate::options::NamedListArgs;
use crate::output::{self, OutputColumn, text};
use crate::values::COMPLETE;
use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use consort_lab::study::file::StudyFile;
use consort_lab::sweep::SweepSpec;
use consort_sim::describe::{machine_schema, program_schema};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Kind of file
    #[arg(value_enum)]
    pub(crate) kind: SchemaKind,
}

/// Kinds of description files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Processor to simulate, for `--machine`.
    Machine,
    /// Program to simulate, for `--workload`.
    Program,
    /// Experiment, for `consort reproduce`.
    Study,
    /// Runs of many cases, for `consort sweep plan`.
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

/// A kind of description file as it is listed.
#[derive(Serialize)]
struct SchemaRow {
    name: String,
    summary: String,
}

const SCHEMAS: &[OutputColumn<SchemaRow>] = &[
    text("name", |r| r.name.clone()),
    text("summary", |r| r.summary.clone()),
];

pub(super) fn list_schemas(args: &NamedListArgs) -> Result<()> {
    let values = SchemaKind::value_variants().iter();
    let values = values.filter_map(SchemaKind::to_possible_value);
    if let Some(name) = &args.name {
        let kind = SchemaKind::from_str(name, true).map_err(|_| {
            let known: Vec<String> = values.map(|v| v.get_name().to_owned()).collect();
            let hint = consort_core::hint(name, known.iter().map(String::as_str));
            bad_input(format!("unknown schema '{name}'; {hint}"))
        })?;
        return print_schema(kind);
    }
    let row = |value: PossibleValue| SchemaRow {
        name: value.get_name().to_owned(),
        summary: value
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    let rows: Vec<SchemaRow> = values.map(row).collect();
    output::print_list(args.list.out.as_deref(), args.format, SCHEMAS, &rows)
}

pub(crate) fn print_schema(kind: SchemaKind) -> Result<()> {
    output::print_json(&match kind {
        SchemaKind::Machine => machine_schema(),
        SchemaKind::Program => program_schema(),
        SchemaKind::Study => StudyFile::schema(),
        SchemaKind::Sweep => SweepSpec::schema(),
    })
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
