//! `consort list`: everything that has a name, and one item of it.

use super::listings::{self, SchemaKind};
use super::programs::{self, ProgramsArgs};
use super::{bench, machine, policies, reproduce};
use crate::options::NamedListArgs;
use crate::values;
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use clap_complete::engine::CompletionCandidate;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(subcommand)]
    pub(crate) kind: ListKind,
}

/// Kinds of things that have names.
#[derive(Debug, Subcommand)]
pub(crate) enum ListKind {
    /// List the machines that can be simulated, or show one
    #[command(after_help = "Example: consort list machines\n\
                            Example: consort list machines power7:smt=2",
              mut_arg("name", |arg| arg.add(values::machines())))]
    Machines(NamedListArgs),
    /// List the programs that can be simulated, or show one
    #[command(after_help = "Example: consort list programs --suite spec2006\n\
                            Example: consort list programs hmmer")]
    Programs(ProgramsArgs),
    /// List the policies with what keeps each from running here, or show one with its options
    #[command(after_help = "Example: consort list policies\n\
                            Example: consort list policies workover",
              mut_arg("name", |arg| arg.add(values::policies())))]
    Policies(NamedListArgs),
    /// List the studies by their source, or show one
    #[command(after_help = "Example: consort list studies\n\
                            Example: consort list studies W3",
              mut_arg("name", |arg| arg.add(values::studies())))]
    Studies(NamedListArgs),
    /// List the benches, or show one
    #[command(after_help = "Example: consort list benches",
              mut_arg("name", |arg| arg.add(values::benches())))]
    Benches(NamedListArgs),
    /// List the kinds of description files, or print the JSON Schema of one
    #[command(after_help = "Example: consort list schemas\n\
                            Example: consort list schemas machine > machine.schema.json",
              mut_arg("name", |arg| arg.add(ArgValueCandidates::new(schema_names))))]
    Schemas(NamedListArgs),
}

fn schema_names() -> Vec<CompletionCandidate> {
    let kinds = SchemaKind::value_variants().iter();
    let names = kinds.filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()));
    names.map(CompletionCandidate::new).collect()
}

pub(crate) fn execute(args: &ListArgs) -> Result<ExitCode> {
    match &args.kind {
        ListKind::Machines(args) => machine::show_described(args)?,
        ListKind::Programs(args) => programs::execute(args)?,
        ListKind::Policies(args) => policies::execute(args)?,
        ListKind::Studies(args) => reproduce::list_studies(args)?,
        ListKind::Benches(args) => {
            let names: Vec<String> = args.name.iter().cloned().collect();
            bench::print_list(&names, &args.list, args.format)?;
        }
        ListKind::Schemas(args) => listings::list_schemas(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
