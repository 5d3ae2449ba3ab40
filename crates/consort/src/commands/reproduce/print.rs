//! Output of a run of studies.

use super::reference::StudyComparison;
use super::rows;
use crate::cli::OutputFormat;
use crate::output::{self, wrap};
use anyhow::Result;
use consort_data::ReportTable;
use consort_lab::StudyReport;
use consort_lab::pages::INDEX;
use consort_lab::reference::ReferenceComparison;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Tables that are printed: the headline and the main view.
const SHOWN: usize = 2;
/// Rows of a table that are printed at most; some studies have thousands.
const ROWS: usize = 40;
/// Rows beyond [`ROWS`] with which a table is still printed whole.
const SPARE: usize = 2;

/// A study as JSON: the report, and with a reference file what it says.
#[derive(Serialize)]
struct StudyDocument<'a> {
    #[serde(flatten)]
    report: &'a StudyReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a ReferenceComparison>,
}

/// Prints studies as they are finished; JSON, which is one document, at the end.
pub(super) struct StudyPrinter {
    format: OutputFormat,
    finished: Vec<(StudyReport, StudyComparison)>,
}

impl StudyPrinter {
    /// Begins the output.
    pub(super) fn begin(format: OutputFormat) -> Result<Self> {
        if format == OutputFormat::Csv {
            rows::write_header(&mut output::stdout())?;
        }
        let finished = Vec::new();
        Ok(Self { format, finished })
    }

    /// Prints a study, or keeps it for the document.
    pub(super) fn print_study(
        &mut self,
        report: StudyReport,
        compared: StudyComparison,
        resumed: bool,
    ) -> Result<()> {
        let mut out = output::stdout();
        match self.format {
            OutputFormat::Table => {
                output::print_text(&mut out, &study_text(&report, &compared, resumed))?;
            }
            OutputFormat::Csv => rows::write_study(&mut out, &report, &compared)?,
            OutputFormat::Json => self.finished.push((report, compared)),
        }
        out.flush()?;
        Ok(())
    }

    /// Ends the output: one study is an object, several are an array.
    pub(super) fn finish(self, folder: &Path) -> Result<()> {
        let mut out = output::stdout();
        let documents: Vec<StudyDocument<'_>> = self.finished.iter().map(document).collect();
        match (self.format, documents.as_slice()) {
            (OutputFormat::Table, _) => {
                writeln!(
                    out,
                    "Tables, figures and pages: {}",
                    folder.join(INDEX).display()
                )?;
            }
            (OutputFormat::Csv, _) => {}
            (OutputFormat::Json, [one]) => output::write_json(&mut out, one)?,
            (OutputFormat::Json, several) => output::write_json(&mut out, several)?,
        }
        Ok(())
    }
}

fn document((report, compared): &(StudyReport, StudyComparison)) -> StudyDocument<'_> {
    let reference = compared.comparison();
    StudyDocument { report, reference }
}

fn study_text(report: &StudyReport, compared: &StudyComparison, resumed: bool) -> String {
    let mut text = wrap(&format!("{}: ", report.study), &report.title);
    text += &wrap(
        "Source: ",
        &format!("{}, {}", report.source, report.section),
    );
    text += &wrap("Differs: ", &report.differs);
    for table in report.output.tables.iter().take(SHOWN) {
        text += &format!("\n{}\n{}", table.title(), beginning(report, table));
    }
    text += &unprinted_tables(report);
    if let Some(table) = compared.table() {
        text += &format!("\n{}\n{}", table.title(), grid(table));
    }
    text.push('\n');
    for note in &report.output.notes {
        text += &wrap("- ", note);
    }
    if !report.mechanism.is_empty() {
        text += &wrap("Mechanism: ", StudyReport::BY_HAND);
    }
    for note in &report.mechanism {
        text += &wrap("- ", note);
    }
    text + &provenance_text(report, resumed)
}

/// Files of the tables that are not printed.
fn unprinted_tables(report: &StudyReport) -> String {
    let tables = report.output.tables.iter().skip(SHOWN);
    let files: Vec<String> = tables.map(|table| file(report, table)).collect();
    if files.is_empty() {
        return String::new();
    }
    format!("\n{}", wrap("More tables: ", &files.join(", ")))
}

/// Name of a table's file.
fn file(report: &StudyReport, table: &ReportTable) -> String {
    format!("{}-{}.csv", report.study, table.key())
}

fn provenance_text(report: &StudyReport, resumed: bool) -> String {
    let seconds = report.seconds;
    let took = if resumed {
        format!("finished earlier in {seconds:.1} s")
    } else {
        format!("{seconds:.1} s")
    };
    let output = &report.output;
    format!(
        "\nMean of {} runs, ± half a 95 % interval (Student's t); simulated.\n\
         Seed {}, {} scale, {took}.\n\n",
        output.runs, report.seed, report.scale
    )
}

/// A table, or of a long one the beginning and where the rest is.
fn beginning(report: &StudyReport, table: &ReportTable) -> String {
    let left = table.rows().len().saturating_sub(ROWS);
    if left <= SPARE {
        return grid(table);
    }
    let file = file(report, table);
    let text = table.to_text(ROWS, output::page::width());
    format!("{text}... and {left} rows more in {file}\n")
}

/// A table with its row keys in front.
pub(crate) fn grid(table: &ReportTable) -> String {
    table.to_text(table.rows().len(), output::page::width())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_data::ReportColumn;
    use consort_experiment::Scale;
    use consort_lab::StudyOutput;

    fn report(rows: usize) -> StudyReport {
        let mut table =
            ReportTable::new("all", "All", vec![ReportColumn::plain("v", "Value")]).unwrap();
        for row in 0..rows {
            table
                .push(&format!("r{row}"), vec![(row as f64).into()])
                .unwrap();
        }
        StudyReport {
            study: "T1".to_owned(),
            title: String::new(),
            source: String::new(),
            section: String::new(),
            original: String::new(),
            differs: String::new(),
            seed: 1,
            scale: Scale::Quick,
            seconds: 0.0,
            mechanism: Vec::new(),
            output: StudyOutput {
                tables: vec![table],
                ..StudyOutput::default()
            },
        }
    }

    #[test]
    fn of_a_long_table_the_beginning_is_printed_and_where_the_rest_is() {
        let shown = |rows| {
            let report = report(rows);
            beginning(&report, &report.output.tables[0])
        };
        let whole = shown(ROWS + SPARE);
        assert!(whole.contains("r41") && !whole.contains("more"));
        let cut = shown(113);
        assert!(cut.contains("r39") && !cut.contains("r40"));
        assert!(
            cut.ends_with("... and 73 rows more in T1-all.csv\n"),
            "{cut}"
        );
    }
}
