//! Output of `consort map`, on stdout and as files.

use super::{Document, Found};
use crate::cli::{self, Format, MapArgs};
use crate::commands::reproduce::grid;
use crate::output::{self, inert, wrap};
use anyhow::{Context, Result};
use consort_lab::StudyReport;
use consort_report::{Cell, Table};
use std::io::Write;

pub(super) fn all(args: &MapArgs, found: &Found, report: &StudyReport) -> Result<()> {
    if let Some(folder) = cli::own(&args.out) {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        consort_lab::pages::write(folder, report, None)?;
    }
    let mut out = output::stdout();
    match args.format {
        Format::Table => output::people(&mut out, &for_people(args, found, report))?,
        Format::Csv => csv(&mut out, report)?,
        Format::Json => output::json(&mut out, &document(found, report))?,
    }
    Ok(())
}

fn document<'a>(found: &'a Found, report: &'a StudyReport) -> Document<'a> {
    Document {
        machine: &found.machine,
        workload: &found.workload,
        tier: &found.tier,
        mappings: &found.analysis.mappings,
        mappings_up_to_symmetry: found.count,
        questions: found.analysis.questions(),
        report,
    }
}

fn for_people(args: &MapArgs, found: &Found, report: &StudyReport) -> String {
    let mut text = wrap("", &report.title);
    if let Some(count) = found.count {
        text += &format!("{count} mappings up to symmetry\n");
    }
    let answered = |table: &&Table| !table.rows().is_empty();
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
    if let Some(folder) = cli::own(&args.out) {
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
fn csv(out: &mut dyn Write, report: &StudyReport) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["table", "row", "column", "value", "unit", "missing"])?;
    for table in &report.output.tables {
        for row in table.rows() {
            for (column, cell) in table.columns().iter().zip(&row.cells) {
                let unit = column.unit.as_deref().unwrap_or_default();
                let (value, missing) = shown(cell);
                let record = [table.key(), &row.key, &column.key, &value, unit, &missing];
                writer.write_record(record.map(|field| inert(field.to_owned())))?;
            }
        }
    }
    writer.flush()?;
    Ok(())
}

/// Numbers in full, and why there is none.
fn shown(cell: &Cell) -> (String, String) {
    match cell {
        Cell::Missing { missing } => (String::new(), missing.clone()),
        Cell::Text(text) => (text.clone(), String::new()),
        _ => (
            cell.value().map_or_else(String::new, |v| v.to_string()),
            String::new(),
        ),
    }
}
