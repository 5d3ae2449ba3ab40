//! A study's numbers one per line, for CSV: the columns of a reference file, and more.
//!
//! The output can serve as a reference file: rows are `TABLE:ROW`.

use super::reference::StudyComparison;
use anyhow::Result;
use consort_data::{escape_field, number_field, write_csv};
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
    Ok(write_csv(out, [HEADER])?)
}

/// Every number of a study; texts and missing values are in the tables' own files.
pub(super) fn write_study(
    out: &mut dyn Write,
    report: &StudyReport,
    compared: &StudyComparison,
) -> Result<()> {
    let mut records = Vec::new();
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let Some(value) = cell.value() else { continue };
            let mut all = compared.comparison().into_iter().flat_map(|c| &c.compared);
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
                number_field(found.map(|c| c.theirs)),
                number_field(found.map(|c| c.difference)),
            ];
            records.push(record.map(escape_field));
        }
    }
    Ok(write_csv(out, records)?)
}
