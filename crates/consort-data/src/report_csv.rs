//! Tables as CSV.
//!
//! The first column is `key`, the row's key. A column whose cells have
//! intervals is followed by `<key>_ci95` and `<key>_n`. What is missing is an
//! empty field; the reason is in the JSON and HTML forms.

use crate::cell::Cell;
use crate::report_table::{ReportTable, SUFFIXES};
use consort_core::escape_invisible;
use std::io::Write;
use thiserror::Error;

/// Reason why CSV could not be written.
#[derive(Debug, Error)]
#[error("cannot write table '{table}' as csv: {source}")]
pub struct CsvError {
    /// The table.
    pub table: String,
    /// The cause.
    pub source: csv::Error,
}

/// Writes a table as CSV with a header line. Numbers keep all their digits.
///
/// # Errors
/// When `out` cannot be written.
pub fn write_csv(out: &mut dyn Write, table: &ReportTable) -> Result<(), CsvError> {
    let in_context = |source| CsvError {
        table: table.key().to_owned(),
        source,
    };
    write_records(out, table).map_err(in_context)
}

fn write_records(out: &mut dyn Write, table: &ReportTable) -> Result<(), csv::Error> {
    let wide = columns_with_intervals(table);
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(header(table, &wide))?;
    for row in table.rows() {
        let fields = row.cells.iter().zip(&wide).flat_map(|(c, w)| fields(c, *w));
        let key = escape_invisible(&row.key).into_owned();
        writer.write_record(std::iter::once(key).chain(fields))?;
    }
    writer.flush()?;
    Ok(())
}

fn columns_with_intervals(table: &ReportTable) -> Vec<bool> {
    let has_interval = |index: usize| {
        let mut cells = table.rows().iter().filter_map(|row| row.cells.get(index));
        cells.any(|cell| cell.n().is_some())
    };
    (0..table.columns().len()).map(has_interval).collect()
}

fn header(table: &ReportTable, wide: &[bool]) -> Vec<String> {
    let mut names = vec!["key".to_owned()];
    for (column, wide) in table.columns().iter().zip(wide) {
        names.push(column.key.clone());
        if *wide {
            names.extend(SUFFIXES.map(|suffix| format!("{}{suffix}", column.key)));
        }
    }
    names
}

fn fields(cell: &Cell, wide: bool) -> Vec<String> {
    let value = match cell {
        Cell::Text(text) => escape_invisible(text).into_owned(),
        Cell::Count(count) => count.to_string(),
        other => value_text(other.value()),
    };
    if wide {
        vec![value, value_text(cell.ci95()), value_text(cell.n())]
    } else {
        vec![value]
    }
}

fn value_text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report_table::ReportColumn;
    use consort_core::stats::ConfidenceInterval;

    #[test]
    fn intervals_widen_their_column_and_gaps_are_empty() {
        let columns = ["stp", "antt", "note"].map(|key| ReportColumn::plain(key, key));
        let mut table = ReportTable::new("t", "", columns.to_vec()).unwrap();
        let stp = ConfidenceInterval::from_values(&[1.0, 3.0]).unwrap();
        let first = vec![stp.into(), 0.1.into(), "a, \"b\"".into()];
        table.push("linux", first).unwrap();
        let second = vec![u64::MAX.into(), Cell::missing("no"), "".into()];
        table.push("workover", second).unwrap();
        let mut out = Vec::new();
        write_csv(&mut out, &table).unwrap();
        let expected = "key,stp,stp_ci95,stp_n,antt,note\n\
                        linux,2,12.706,2,0.1,\"a, \"\"b\"\"\"\n\
                        workover,18446744073709551615,,,,\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
