//! A study's numbers one per line, for CSV: the columns of a reference file, and more.
//!
//! The output can serve as a reference file: rows are `TABLE:ROW`.

use super::reference::StudyComparison;
use crate::output::escape_field;
use anyhow::Result;
use consort_data::{Cell, ReportColumn, ReportRow, ReportTable};
use consort_lab::StudyReport;
use std::io::Write;

const HEADER: [&str; 9] = [
    "study",
    "row",
    "column",
    "value",
    "ci95",
    "n",
    "unit",
    "published",
    "difference",
];

pub(super) fn write_header(out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(HEADER)?;
    writer.flush()?;
    Ok(())
}

/// Every number of a study; texts and missing values are in the tables' own files.
pub(super) fn write_study(
    out: &mut dyn Write,
    report: &StudyReport,
    compared: &StudyComparison,
) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for table in &report.output.tables {
        for row in table.rows() {
            for (column, cell) in table.columns().iter().zip(&row.cells) {
                if let Some(value) = cell.value() {
                    let place = TableCell { table, row, column };
                    let record = place.record(&report.study, value, cell, compared);
                    writer.write_record(record.map(escape_field))?;
                }
            }
        }
    }
    writer.flush()?;
    Ok(())
}

struct TableCell<'a> {
    table: &'a ReportTable,
    row: &'a ReportRow,
    column: &'a ReportColumn,
}

impl TableCell<'_> {
    fn record(
        &self,
        study: &str,
        value: f64,
        cell: &Cell,
        compared: &StudyComparison,
    ) -> [String; 9] {
        let [published, difference] = self.published_fields(compared);
        [
            study.to_owned(),
            format!("{}:{}", self.table.key(), self.row.key),
            self.column.key.clone(),
            value.to_string(),
            optional_text(cell.ci95()),
            optional_text(cell.n()),
            self.column.unit.clone().unwrap_or_default(),
            published,
            difference,
        ]
    }

    fn published_fields(&self, compared: &StudyComparison) -> [String; 2] {
        let mut all = compared.comparison().into_iter().flat_map(|c| &c.compared);
        let keys = [self.table.key(), &self.row.key, &self.column.key];
        let found = all.find(|c| [&c.table, &c.row, &c.column].map(String::as_str) == keys);
        [found.map(|c| c.theirs), found.map(|c| c.difference)].map(optional_text)
    }
}

fn optional_text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
