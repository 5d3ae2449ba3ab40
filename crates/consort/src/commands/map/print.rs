//! Output of `consort map`, on stdout and as files.

use super::{MappingDocument, MappingFindings};
use crate::cli::{self, MapArgs, OutputFormat};
use crate::commands::reproduce::grid;
use crate::output::{self, escape_field, wrap};
use anyhow::{Context, Result};
use consort_data::{Cell, ReportTable};
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
        OutputFormat::Csv => write_csv(&mut out, report)?,
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

/// A line per value, whatever the table.
fn write_csv(out: &mut dyn Write, report: &StudyReport) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["table", "row", "column", "value", "unit", "missing"])?;
    for table in &report.output.tables {
        for row in table.rows() {
            for (column, cell) in table.columns().iter().zip(&row.cells) {
                let unit = column.unit.as_deref().unwrap_or_default();
                let (value, missing) = cell_fields(cell);
                let record = [table.key(), &row.key, &column.key, &value, unit, &missing];
                writer.write_record(record.map(|field| escape_field(field.to_owned())))?;
            }
        }
    }
    writer.flush()?;
    Ok(())
}

/// Numbers in full, and why there is none.
fn cell_fields(cell: &Cell) -> (String, String) {
    match cell {
        Cell::Missing { missing } => (String::new(), missing.clone()),
        Cell::Text(text) => (text.clone(), String::new()),
        _ => (
            cell.value().map_or_else(String::new, |v| v.to_string()),
            String::new(),
        ),
    }
}
