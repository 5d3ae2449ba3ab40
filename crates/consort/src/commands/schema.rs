//! `consort schema`: the formats of description files, for editors and other tools.

use crate::cli::{SchemaArgs, SchemaKind};
use crate::output;
use anyhow::Result;
use consort_lab::study::file::StudyFile;
use consort_lab::sweep::SweepSpec;
use consort_sim::describe::{machine_schema, program_schema};
use std::process::ExitCode;

pub(crate) fn execute(args: &SchemaArgs) -> Result<ExitCode> {
    let schema = match args.kind {
        SchemaKind::Machine => machine_schema(),
        SchemaKind::Program => program_schema(),
        SchemaKind::Study => StudyFile::schema(),
        SchemaKind::Sweep => SweepSpec::schema(),
    };
    output::write_json(&mut output::stdout(), &schema)?;
    Ok(ExitCode::SUCCESS)
}
