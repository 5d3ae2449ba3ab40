//! `consort validate`: the simulation compared with published and measured figures.

use crate::failure::bad_input;
use crate::options::{Jobs, NUMBERS, TABLE, seed_parser};
use crate::output::file::{TableOutput, own_output};
use crate::output::{self, OutputColumn, OutputFormat, number, text};
use crate::values;
use anyhow::Result;
use clap::Args;
use consort_data::Cell;
use consort_lab::validate::{
    CheckGroupSummary, GroupInputs, PublishedData, Validation, ValidationCheck,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Run only this group of checks; can be given several times: consistency, independent,
    /// conservation, placement, smt or speed, which run if none is given, or reference
    #[arg(long, value_name = "GROUP", alias = "group", short_alias = 'g', add = values::check_groups())]
    pub(crate) checks: Vec<String>,
    /// Make fewer and shorter runs, for a preview
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    #[arg(short, long, value_name = "PATH", help = format!("Write tables and pictures of the checks to the folder PATH, or every number to {TABLE}, {NUMBERS}; repeat it for both"))]
    pub(crate) out: Vec<PathBuf>,
    /// Compare the engines on the traces of this folder instead of the shipped ones: with
    /// `--checks reference`, on two machines
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

const COLUMNS: &[OutputColumn<ValidationCheck>] = &[
    text("check", |c| c.id.clone()),
    number("published or due", |c| c.published.text()),
    number("ours", |c| Cell::from(c.ours).text()),
    text("unit", |c| c.unit.clone()),
    number("error", ValidationCheck::error_text),
    text("agrees", |c| yes_or_no(c.agrees)),
    text("note", |c| c.note.clone()),
];

const CSV: &[OutputColumn<ValidationCheck>] = &[
    text("group", |c| c.group.to_owned()),
    text("id", |c| c.id.clone()),
    text("what", |c| c.what.clone()),
    text("source", |c| c.source.clone()),
    text("unit", |c| c.unit.clone()),
    text("published", |c| c.published.text()),
    number("ours", |c| c.ours.to_string()),
    number("error", |c| {
        c.error.map_or_else(String::new, |error| error.to_string())
    }),
    text("agrees", |c| yes_or_no(c.agrees)),
    text("note", |c| c.note.clone()),
];

const SUMMARY: &[OutputColumn<CheckGroupSummary>] = &[
    text("group", |g| g.group.to_owned()),
    number("checks", |g| g.checks.to_string()),
    number("agree", |g| g.agree.to_string()),
    number("disagree", |g| g.disagree.to_string()),
];

/// Closing text: the meaning of a disagreement for the exit code, and the place to read more.
const AFTERWORD: &str = "\nA disagreement is a finding, not a failure; only a law of the group \
conservation that does not hold\nmakes the exit code 1. docs/research/validation.md explains the known \
disagreements.\n";

pub(crate) fn execute(args: &ValidateArgs) -> Result<ExitCode> {
    let groups = consort_lab::validate::select(&args.checks).map_err(bad_input)?;
    let file = TableOutput::begin_from_out(&args.out, 0)?;
    let result = args
        .jobs
        .run_experiment("jobs", args.seed, args.quick, |context| {
            let inputs = GroupInputs {
                data: &PublishedData::embedded(),
                context,
                traces: args.traces.as_deref(),
            };
            consort_lab::validate::run(&groups, &inputs)
        });
    let validation = result?;
    if let Some(folder) = own_output(&args.out) {
        consort_data::write_tables_and_figures(folder, &validation.tables, &validation.figures)?;
    }
    file.write(|| consort_lab::validate::checks_to_long_table(&validation.checks, args.seed))?;
    output::print(args.format, CSV, &validation.checks, &validation, || {
        page(&validation)
    })?;
    // A disagreement is a finding; only a law that does not hold is a failure.
    Ok(match validation.laws_hold() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn yes_or_no(agrees: bool) -> String {
    if agrees { "yes" } else { "NO" }.to_owned()
}

fn page(validation: &Validation) -> String {
    let groups = validation.summary.iter();
    let mut page: String = groups.map(|group| section(validation, group)).collect();
    match validation.disagreements.len() {
        0 => page += "Disagreements: none\n",
        n => page += &format!("Disagreements ({n})\n"),
    }
    for found in &validation.disagreements {
        page += &format!("- {}/{}: {}\n", found.group, found.id, found.text);
    }
    page += "\nSummary\n";
    page += &output::table(SUMMARY, &validation.summary);
    page + AFTERWORD
}

fn section(validation: &Validation, group: &CheckGroupSummary) -> String {
    let checks = { validation.checks.iter() }.filter(|check| check.group == group.group);
    let checks: Vec<ValidationCheck> = checks.cloned().collect();
    let mut section = format!("{}: {}\n\n", group.group, group.about);
    section += &output::table(COLUMNS, &checks);
    for table in &validation.tables {
        if table.key().starts_with(group.group) {
            section += &format!(
                "\n{}\n{}",
                table.title(),
                table.to_text_without_keys(output::page::width())
            );
        }
    }
    let sources: BTreeSet<&str> = checks.iter().map(|check| check.source.as_str()).collect();
    section += "\nsources:\n";
    for source in sources {
        section += &format!("  {source}\n");
    }
    for note in { validation.notes.iter() }.filter(|note| note.group == group.group) {
        section += &format!("note: {}\n", note.text);
    }
    section + "\n"
}
