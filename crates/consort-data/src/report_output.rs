//! Report tables as CSV, as text for a terminal, as typed tables for data frames, and as files.

use crate::atomic_file::write_atomically;
use crate::cell::Cell;
use crate::csv::{csv_text, escape_field};
use crate::figure::Figure;
use crate::grid::{ColumnHead, lay_out};
use crate::report_table::{ReportColumn, ReportRow, ReportTable, SUFFIXES};
use crate::svg::{SvgError, draw};
use crate::table::{Table, Values};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

impl ReportTable {
    /// Every cell with its row and column, row by row.
    pub fn cells(&self) -> impl Iterator<Item = (&ReportRow, &ReportColumn, &Cell)> {
        self.rows().iter().flat_map(|row| {
            let cells = self.columns().iter().zip(&row.cells);
            cells.map(move |(column, cell)| (row, column, cell))
        })
    }

    /// The table as CSV with a header line. The first column is `key`, the row's key. A column with
    /// intervals is followed by `<key>_ci95` and `<key>_n`. Numbers keep all their digits. A missing
    /// value is an empty field; its reason is in the JSON and HTML forms.
    pub fn to_csv(&self) -> String {
        let has_intervals = |index: usize| self.rows().iter().any(|r| r.cells[index].n().is_some());
        let wide: Vec<bool> = (0..self.columns().len()).map(has_intervals).collect();
        let mut header = vec!["key".to_owned()];
        for (column, &wide) in self.columns().iter().zip(&wide) {
            header.push(column.key.clone());
            if wide {
                header.extend(SUFFIXES.map(|suffix| format!("{}{suffix}", column.key)));
            }
        }
        let mut records = vec![header];
        for row in self.rows() {
            let mut record = vec![escape_field(row.key.clone())];
            for (cell, &wide) in row.cells.iter().zip(&wide) {
                record.push(match cell {
                    Cell::Text(text) => escape_field(text.clone()),
                    Cell::Count(count) => count.to_string(),
                    other => number_field(other.value()),
                });
                if wide {
                    record.push(number_field(cell.ci95()));
                    record.push(number_field(cell.n()));
                }
            }
            records.push(record);
        }
        csv_text(records)
    }

    /// The first `count` rows for people, with their keys in front, in lines of at most `width`
    /// characters.
    pub fn to_text(&self, count: usize, width: Option<usize>) -> String {
        let key = ColumnHead {
            text: String::new(),
            numeric: false,
            extra: false,
        };
        let mut heads = self.heads();
        heads.insert(0, key);
        let rows = self.rows().iter().take(count).map(|row| {
            let cells = row.cells.iter().map(Cell::text);
            std::iter::once(row.key.clone()).chain(cells).collect()
        });
        lay_out(&heads, &rows.collect::<Vec<_>>(), width)
    }

    /// All rows for people without their keys, in lines of at most `width` characters.
    pub fn to_text_without_keys(&self, width: Option<usize>) -> String {
        let rows = self.rows().iter();
        let rows = rows.map(|row| row.cells.iter().map(Cell::text).collect());
        lay_out(&self.heads(), &rows.collect::<Vec<_>>(), width)
    }

    /// Heads of the columns; a column without any text is one of numbers.
    fn heads(&self) -> Vec<ColumnHead> {
        let head = |(index, column): (usize, &ReportColumn)| ColumnHead {
            text: column.heading(),
            numeric: !self.has_text(index),
            extra: false,
        };
        self.columns().iter().enumerate().map(head).collect()
    }

    fn has_text(&self, index: usize) -> bool {
        let mut cells = self.rows().iter().map(|row| &row.cells[index]);
        cells.any(|cell| matches!(cell, Cell::Text(_)))
    }

    /// The table as it is for data frames: the rows' keys and a typed column for each of its own. A
    /// column with any text is one of texts. Half widths of intervals are in a column of their own
    /// that ends in `_ci95`.
    pub fn to_table(&self) -> Table {
        let keys = self.rows().iter().map(|row| Some(row.key.clone()));
        let mut table = Table::default().with_text("key", keys);
        for (index, column) in self.columns().iter().enumerate() {
            let cells = || self.rows().iter().map(|row| &row.cells[index]);
            let unit = column.unit.as_deref();
            if self.has_text(index) {
                let texts = cells().map(|cell| match cell {
                    Cell::Missing { .. } => None,
                    cell => Some(cell.text()),
                });
                table = table.with_column(&column.key, unit, Values::Text(texts.collect()));
                continue;
            }
            table = table.with_numbers(&column.key, unit, cells().map(Cell::value));
            if cells().any(|cell| cell.ci95().is_some()) {
                let key = format!("{}_ci95", column.key);
                table = table.with_numbers(&key, unit, cells().map(Cell::ci95));
            }
        }
        table
    }
}

/// A number with all its digits, or an empty field.
pub fn number_field<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Reason why files could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A figure.
    #[error(transparent)]
    Svg(#[from] SvgError),
    /// The file system.
    #[error("cannot write {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

/// Name and content of a file.
pub type FileContent = (String, Vec<u8>);

/// Tables as `PREFIXKEY.csv`, then figures as `PREFIXKEY.svg`.
///
/// # Errors
/// If a figure cannot be drawn.
pub fn file_contents(
    prefix: &str,
    tables: &[ReportTable],
    figures: &[Figure],
) -> Result<Vec<FileContent>, WriteError> {
    let mut parts = Vec::new();
    for table in tables {
        let content = table.to_csv().into_bytes();
        parts.push((format!("{prefix}{}.csv", table.key()), content));
    }
    for figure in figures {
        let content = draw(figure)?.into_bytes();
        parts.push((format!("{prefix}{}.svg", figure.key()), content));
    }
    Ok(parts)
}

/// Writes files into a folder that exists; each is complete or absent. Returns their paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write_files(folder: &Path, files: &[FileContent]) -> Result<Vec<PathBuf>, WriteError> {
    let paths = files.iter().map(|(name, content)| {
        let path = folder.join(name);
        match write_atomically(folder, name, content) {
            Ok(()) => Ok(path),
            Err(cause) => Err(WriteError::Io { path, cause }),
        }
    });
    paths.collect()
}

/// Writes tables as `KEY.csv` and figures as `KEY.svg` into a folder, which is made if it is not
/// there. Returns the paths.
///
/// # Errors
/// If a figure cannot be drawn or a file cannot be written.
pub fn write_tables_and_figures(
    folder: &Path,
    tables: &[ReportTable],
    figures: &[Figure],
) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(folder).map_err(|cause| WriteError::Io {
        path: folder.to_owned(),
        cause,
    })?;
    write_files(folder, &file_contents("", tables, figures)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::stats::ConfidenceInterval;

    #[test]
    fn csv_widens_columns_with_intervals() {
        let columns = ["stp", "antt", "note"].map(|key| ReportColumn::plain(key, key));
        let mut table = ReportTable::new("t", "", columns.to_vec()).unwrap();
        let stp = ConfidenceInterval::from_values(&[1.0, 3.0]).unwrap();
        let first = vec![stp.into(), 0.1.into(), "a, \"b\"".into()];
        table.push("linux", first).unwrap();
        let second = vec![u64::MAX.into(), Cell::missing("no"), "".into()];
        table.push("workover", second).unwrap();
        let expected = "key,stp,stp_ci95,stp_n,antt,note\n\
                        linux,2,12.706,2,0.1,\"a, \"\"b\"\"\"\n\
                        workover,18446744073709551615,,,,\n";
        assert_eq!(table.to_csv(), expected);
    }

    #[test]
    fn intervals_have_a_column_of_their_own() {
        let columns = vec![
            ReportColumn::plain("who", "Who"),
            ReportColumn::with_unit("time", "Time", "s"),
        ];
        let mut table = ReportTable::new("times", "Times", columns).unwrap();
        let interval = ConfidenceInterval::from_values(&[1.0, 2.0, 3.0]).unwrap();
        table
            .push("a", vec!["mcf".into(), interval.into()])
            .unwrap();
        table
            .push("b", vec![Cell::missing("none"), 7.5.into()])
            .unwrap();
        let wide = table.to_table();
        let names: Vec<&str> = wide.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["key", "who", "time", "time_ci95"]);
        let time = wide.column("time").unwrap();
        assert_eq!(time.values, Values::Number(vec![Some(2.0), Some(7.5)]));
        assert_eq!(time.unit.as_deref(), Some("s"));
        let who = Values::Text(vec![Some("mcf".to_owned()), None]);
        assert_eq!(wide.column("who").unwrap().values, who);
    }
}
