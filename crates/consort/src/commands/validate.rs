//! `consort validate`: what the simulation gives beside what was published or measured.

use crate::cli::{self, OutputFormat, ValidateArgs};
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::progress;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_data::Cell;
use consort_experiment::{ExperimentContext, Scale, StageProgress};
use consort_lab::validate::{
    self, CheckGroupSummary, GroupInputs, PublishedData, Validation, ValidationCheck,
};
use std::process::ExitCode;

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

/// Closing text: what the exit code makes of a disagreement, and where to read on.
const AFTERWORD: &str = "\nA disagreement is a finding, not a failure; only a law of the group \
conservation that does not hold\nmakes the exit code 1. docs/validation.md says what is known of \
the disagreements.\n";

pub(crate) fn execute(args: &ValidateArgs) -> Result<ExitCode> {
    let groups = validate::select(&args.group).map_err(bad_input)?;
    let file = TableOutput::begin_from_out(&args.out)?;
    let progress = progress::start_meter("jobs");
    let report_progress = |at: StageProgress| progress.set_done(at.done, at.total);
    let scale = if args.quick {
        Scale::Quick
    } else {
        Scale::Full
    };
    let context = ExperimentContext::new(args.seed, scale, args.jobs.workers(), &report_progress);
    let inputs = GroupInputs {
        data: &PublishedData::embedded(),
        context: &context,
    };
    let result = validate::run(&groups, &inputs);
    progress.finish();
    let validation = result?;
    if let Some(folder) = cli::own_output(&args.out) {
        consort_data::write_tables_and_figures(folder, &validation.tables, &validation.figures)?;
    }
    file.write(|| validate::checks_to_long_table(&validation.checks, args.seed))?;
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Table => output::print_text(&mut out, &page(&validation))?,
        OutputFormat::Json => output::write_json(&mut out, &validation)?,
        OutputFormat::Csv => output::write_csv(&mut out, CSV, &validation.checks)?,
    }
    Ok(exit_code(&validation))
}

/// A disagreement is a finding; only a law that does not hold is a failure.
fn exit_code(validation: &Validation) -> ExitCode {
    if validation.laws_hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn yes_or_no(agrees: bool) -> String {
    if agrees { "yes" } else { "NO" }.to_owned()
}

/// Everything, for people.
fn page(validation: &Validation) -> String {
    let groups = validation.summary.iter();
    let mut page: String = groups.map(|group| section(validation, group)).collect();
    page += &disagreements(validation);
    page += "\nSummary\n";
    page += &output::table(SUMMARY, &validation.summary);
    page + AFTERWORD
}

fn section(validation: &Validation, group: &CheckGroupSummary) -> String {
    let mine = |name: &str| name == group.group;
    let checks = validation.checks.iter().filter(|c| mine(c.group)).cloned();
    let checks: Vec<ValidationCheck> = checks.collect();
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
    section += &sources(&checks);
    let notes = validation.notes.iter().filter(|note| mine(note.group));
    section.extend(notes.map(|note| format!("note: {}\n", note.text)));
    section + "\n"
}

fn sources(checks: &[ValidationCheck]) -> String {
    let mut sources: Vec<&str> = checks.iter().map(|c| c.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    let lines = sources.iter().map(|source| format!("  {source}\n"));
    std::iter::once("\nsources:\n".to_owned())
        .chain(lines)
        .collect()
}

fn disagreements(validation: &Validation) -> String {
    if validation.disagreements.is_empty() {
        return "Disagreements: none\n".to_owned();
    }
    let lines = validation.disagreements.iter();
    let lines = lines.map(|d| format!("- {}/{}: {}\n", d.group, d.id, d.text));
    let heading = format!("Disagreements ({})\n", validation.disagreements.len());
    std::iter::once(heading).chain(lines).collect()
}
