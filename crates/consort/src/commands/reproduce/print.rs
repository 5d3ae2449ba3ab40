//! Output of a run of studies: texts, JSON, and CSV with the columns of a reference file, so that it can serve as one; its rows are `TABLE:ROW`.

use crate::output::{self, OutputFormat, wrap};
use anyhow::Result;
use consort_data::{ReportTable, escape_field, number_field, write_csv};
use consort_lab::StudyReport;
use consort_lab::pages::{INDEX, MISSES};
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

/// A study as JSON: the report, and its comparison with published figures.
#[derive(Serialize)]
struct StudyDocument<'a> {
    #[serde(flatten)]
    report: &'a StudyReport,
    reference: &'a ReferenceComparison,
}

/// Prints studies as they are finished; JSON, which is one document, at the end.
pub(super) struct StudyPrinter {
    format: OutputFormat,
    finished: Vec<(StudyReport, ReferenceComparison)>,
    /// Published figures of all studies so far.
    all: ReferenceComparison,
    studies: usize,
}

impl StudyPrinter {
    /// Begins the output.
    pub(super) fn begin(format: OutputFormat) -> Result<Self> {
        if format == OutputFormat::Csv {
            write_csv(&mut output::stdout(), [HEADER])?;
        }
        Ok(Self {
            format,
            finished: Vec::new(),
            all: ReferenceComparison::default(),
            studies: 0,
        })
    }

    /// Prints a study, or keeps it for the document.
    pub(super) fn print_study(
        &mut self,
        report: StudyReport,
        compared: ReferenceComparison,
        resumed: bool,
    ) -> Result<()> {
        self.all.append(&compared);
        self.studies += 1;
        match self.format {
            OutputFormat::Table => output::print_text(&study_text(&report, &compared, resumed)?)?,
            OutputFormat::Csv => write_study(&mut output::stdout(), &report, &compared)?,
            OutputFormat::Json => self.finished.push((report, compared)),
        }
        output::stdout().flush()?;
        Ok(())
    }

    /// Ends the output: one study is an object, several are an array.
    pub(super) fn finish(self, folder: &Path) -> Result<()> {
        let documents = self
            .finished
            .iter()
            .map(|(report, reference)| StudyDocument { report, reference });
        let documents: Vec<StudyDocument<'_>> = documents.collect();
        match (self.format, documents.as_slice()) {
            (OutputFormat::Table, _) => {
                if self.studies > 1 {
                    output::print_text(&score_text(&self.all))?;
                }
                let index = folder.join(INDEX);
                let text = format!("Tables, figures and pages: {}\n", index.display());
                Ok(output::stdout().write_all(text.as_bytes())?)
            }
            (OutputFormat::Csv, _) => Ok(()),
            (OutputFormat::Json, [one]) => output::print_json(one),
            (OutputFormat::Json, several) => output::print_json(several),
        }
    }
}

/// The score over the published figures of all studies, and the figures that disagree.
fn score_text(all: &ReferenceComparison) -> String {
    let mut text = wrap("Published and ours over all studies: ", &all.score.text());
    let misses = all.misses();
    if !misses.is_empty() {
        text += &format!("{MISSES}:\n");
    }
    for miss in misses {
        text += &wrap("- ", &miss);
    }
    text + "\n"
}

fn study_text(
    report: &StudyReport,
    compared: &ReferenceComparison,
    resumed: bool,
) -> Result<String> {
    let mut text = wrap(&format!("{}: ", report.study), &report.title);
    text += &wrap(
        "Source: ",
        &format!("{}, {}", report.source, report.section),
    );
    text += &wrap("Differs: ", &report.differs);
    if let Some(view) = compared.view()? {
        text += &format!("\n{}\n{}", view.verdicts.title(), grid(&view.verdicts));
        for miss in &view.misses {
            text += &wrap("- ", miss);
        }
    }
    for table in report.output.tables.iter().take(SHOWN) {
        text += &format!("\n{}\n{}", table.title(), beginning(report, table));
    }
    let unprinted = report.output.tables.iter().skip(SHOWN);
    let files: Vec<String> = unprinted.map(|table| file(report, table)).collect();
    if !files.is_empty() {
        text += &format!("\n{}", wrap("More tables: ", &files.join(", ")));
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
    let seconds = report.seconds;
    let took = if resumed {
        format!("finished earlier in {seconds:.1} s")
    } else {
        format!("{seconds:.1} s")
    };
    text += &format!(
        "\nMean of {}, ± half a 95 % interval (Student's t); simulated.\n\
         Seed {}, {} scale, {took}.\n\n",
        output::count(report.output.runs, "run"),
        report.seed,
        report.scale
    );
    Ok(text)
}

/// Name of a table's file.
fn file(report: &StudyReport, table: &ReportTable) -> String {
    format!("{}-{}.csv", report.study, table.key())
}

/// A table; only the beginning of a long one, with the file that has the rest.
fn beginning(report: &StudyReport, table: &ReportTable) -> String {
    let left = table.rows().len().saturating_sub(ROWS);
    if left <= SPARE {
        return grid(table);
    }
    let file = file(report, table);
    let text = table.to_text(ROWS, output::page::width());
    format!("{text}... and {left} more rows in {file}\n")
}

/// A table with its row keys in front.
pub(crate) fn grid(table: &ReportTable) -> String {
    table.to_text(table.rows().len(), output::page::width())
}

const HEADER: [&str; 12] = [
    "study",
    "row",
    "column",
    "value",
    "ci95",
    "n",
    "unit",
    "published",
    "difference",
    "direction",
    "within_third",
    "section",
];

/// Every number of a study; texts and missing values are in the tables' own files.
fn write_study(
    out: &mut dyn Write,
    report: &StudyReport,
    compared: &ReferenceComparison,
) -> Result<()> {
    let mut records = Vec::new();
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let Some(value) = cell.value() else { continue };
            let mut all = compared.compared.iter();
            let keys = [table.key(), &row.key, &column.key];
            let found = all.find(|c| [&c.table, &c.row, &c.column].map(String::as_str) == keys);
            let record = [
                report.study.clone(),
                format!("{}:{}", table.key(), row.key),
                column.key.clone(),
                value.to_string(),
                number_field(cell.ci95()),
                number_field(cell.n()),
                column.unit.clone().unwrap_or_default(),
                found.map_or_else(String::new, |c| c.theirs.text()),
                number_field(found.and_then(|c| c.difference)),
                number_field(found.and_then(|c| c.direction)),
                number_field(found.map(|c| c.within_third)),
                found.and_then(|c| c.section.clone()).unwrap_or_default(),
            ];
            records.push(record.map(escape_field));
        }
    }
    Ok(write_csv(out, records)?)
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
            answer: None,
            mechanism: Vec::new(),
            output: StudyOutput {
                tables: vec![table],
                ..StudyOutput::default()
            },
        }
    }

    #[test]
    fn long_table_is_cut_with_its_file() {
        let shown = |rows| {
            let report = report(rows);
            beginning(&report, &report.output.tables[0])
        };
        let whole = shown(ROWS + SPARE);
        assert!(whole.contains("r41") && !whole.contains("more"));
        let cut = shown(113);
        assert!(cut.contains("r39") && !cut.contains("r40"));
        assert!(
            cut.ends_with("... and 73 more rows in T1-all.csv\n"),
            "{cut}"
        );
    }
}
