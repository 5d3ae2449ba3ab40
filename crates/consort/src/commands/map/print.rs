//! Output of `consort map`, on stdout and as files.

use super::{MappingDocument, MappingFindings};
use crate::cli::{self, MapArgs, OutputFormat};
use crate::commands::reproduce::grid;
use crate::output::{self, wrap};
use anyhow::{Context, Result};
use consort_data::{Cell, ReportTable, escape_field, number_field, write_csv};
use consort_lab::StudyReport;
use std::io::Write;

pub(super) fn print_findings(
    args: &MapArgs,
    found: &MappingFindings,
    report: &StudyReport,
) -> Result<()> {
    if let Some(folder) = cli::own_output(&args.out) {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        consort_lab::pages::write(folder, report, None)?;
    }
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Table => output::print_text(&mut out, &findings_text(args, found, report))?,
        OutputFormat::Csv => write_values(&mut out, report)?,
        OutputFormat::Json => output::write_json(&mut out, &document(found, report))?,
    }
    Ok(())
}

fn document<'a>(found: &'a MappingFindings, report: &'a StudyReport) -> MappingDocument<'a> {
    MappingDocument {
        machine: &found.machine,
        workload: &found.workload,
        tier: &found.tier,
        mappings: &found.analysis.mappings,
        mappings_up_to_symmetry: found.count,
        questions: found.analysis.questions(),
        report,
    }
}

fn findings_text(args: &MapArgs, found: &MappingFindings, report: &StudyReport) -> String {
    let mut text = wrap("", &report.title);
    if let Some(count) = found.count {
        text += &format!("{count} mappings up to symmetry\n");
    }
    let answered = |table: &&ReportTable| !table.rows().is_empty();
    for table in report.output.tables.iter().filter(answered) {
        text += &format!("\n{}\n{}", table.title(), grid(table));
    }
    text.push('\n');
    for note in &report.output.notes {
        text += &wrap("- ", note);
    }
    text += &wrap(
        "",
        &format!("{} {} of each mapping.", report.differs, runs(args)),
    );
    if let Some(folder) = cli::own_output(&args.out) {
        text += &format!(
            "Tables, figures and a page: {}\n",
            folder.join("map.html").display()
        );
    }
    text
}

fn runs(args: &MapArgs) -> String {
    match args.runs {
        1 => "One run".to_owned(),
        runs => format!("Mean of {runs} runs"),
    }
}

/// One line per value of any table.
fn write_values(out: &mut dyn Write, report: &StudyReport) -> Result<()> {
    let header = ["table", "row", "column", "value", "unit", "missing"].map(str::to_owned);
    let mut records = vec![header];
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let (value, missing) = match cell {
                Cell::Missing { missing } => (String::new(), missing.clone()),
                Cell::Text(text) => (text.clone(), String::new()),
                _ => (number_field(cell.value()), String::new()),
            };
            let record = [
                table.key().to_owned(),
                row.key.clone(),
                column.key.clone(),
                value,
                column.unit.clone().unwrap_or_default(),
                missing,
            ];
            records.push(record.map(escape_field));
        }
    }
    Ok(write_csv(out, records)?)
}
