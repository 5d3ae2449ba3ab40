//! Tables with stable keys.

use crate::cell::Cell;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Name of the row's own key in JSON and CSV, so no column can have it.
const ROW_KEY: &str = "key";

/// Endings that the CSV form adds to a column's key.
pub(crate) const SUFFIXES: [&str; 2] = ["_ci95", "_n"];

/// A table. Keys are stable: other tools and reference files use them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "TableFile", try_from = "TableFile")]
pub struct ReportTable {
    key: String,
    title: String,
    columns: Vec<ReportColumn>,
    rows: Vec<ReportRow>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportColumn {
    /// Stable key.
    pub key: String,
    /// Title for people.
    pub title: String,
    /// Unit of the numbers; `None` for text and for plain ratios.
    pub unit: Option<String>,
}

/// One row: a cell for each column.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportRow {
    /// Stable key.
    pub key: String,
    /// The cells, in the order of the columns.
    pub cells: Vec<Cell>,
}

/// Reason why a table is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReportTableError {
    /// A key cannot be used.
    #[error("table '{table}': '{key}' cannot be a {what} key; {right}")]
    Key {
        /// The table.
        table: String,
        /// Thing that the key is for.
        what: &'static str,
        /// The key.
        key: String,
        /// Form that would be right.
        right: &'static str,
    },
    /// A key occurs twice.
    #[error("table '{table}' has two {what}s with the key '{key}'")]
    Twice {
        /// The table.
        table: String,
        /// Thing that the key is for.
        what: &'static str,
        /// The key.
        key: String,
    },
    /// A row has too few or too many cells.
    #[error("table '{table}', row '{row}' has {cells} cells for {columns} columns")]
    Cells {
        /// The table.
        table: String,
        /// The row.
        row: String,
        /// Number of cells in it.
        cells: usize,
        /// Number of columns.
        columns: usize,
    },
    /// A stored row lacks a column or has one that is unknown.
    #[error("table '{table}', row '{row}' does not have the table's columns")]
    Columns {
        /// The table.
        table: String,
        /// The row.
        row: String,
    },
}

impl ReportColumn {
    /// A column of numbers with a unit.
    pub fn with_unit(key: &str, title: &str, unit: &str) -> Self {
        Self {
            unit: Some(unit.to_owned()),
            ..Self::plain(key, title)
        }
    }

    /// A column of text, or of numbers without a unit.
    pub fn plain(key: &str, title: &str) -> Self {
        Self {
            key: key.to_owned(),
            title: title.to_owned(),
            unit: None,
        }
    }

    /// Title and unit, for people.
    pub fn heading(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.title),
            None => self.title.clone(),
        }
    }
}

impl ReportTable {
    /// A table without rows.
    ///
    /// # Errors
    /// If the table's key is not made of `a-z`, `0-9`, `-`, `_` (it becomes part of a file name),
    /// or a column's key is empty, is `key`, ends in `_ci95` or `_n` (which the CSV form adds),
    /// holds a comma, a colon, a quote or blanks, or occurs twice.
    pub fn new(
        key: &str,
        title: &str,
        columns: Vec<ReportColumn>,
    ) -> Result<Self, ReportTableError> {
        let table = Self {
            key: key.to_owned(),
            title: title.to_owned(),
            columns,
            rows: Vec::new(),
        };
        if !is_file_key(key) {
            return Err(table.bad_key("table", key, "use a-z, 0-9, '-' and '_'"));
        }
        for (index, column) in table.columns.iter().enumerate() {
            if !is_column_key(&column.key) {
                let right = "it must not be empty, 'key', end in '_ci95' or '_n', \
                             or hold blanks, commas, colons or quotes";
                return Err(table.bad_key("column", &column.key, right));
            }
            if table.columns[..index].iter().any(|c| c.key == column.key) {
                return Err(table.duplicate_key("column", &column.key));
            }
        }
        Ok(table)
    }

    /// Adds a row. Numbers that are not finite become missing.
    ///
    /// # Errors
    /// If the number of cells is not that of the columns, or the key is
    /// empty, holds control characters, or is taken.
    pub fn push(&mut self, key: &str, cells: Vec<Cell>) -> Result<(), ReportTableError> {
        if key.trim() != key || key.is_empty() || key.contains(char::is_control) {
            let right = "it needs visible characters without blanks around them";
            return Err(self.bad_key("row", key, right));
        }
        if self.row(key).is_some() {
            return Err(self.duplicate_key("row", key));
        }
        if cells.len() != self.columns.len() {
            return Err(ReportTableError::Cells {
                table: self.key.clone(),
                row: key.to_owned(),
                cells: cells.len(),
                columns: self.columns.len(),
            });
        }
        let cells = cells.into_iter().map(Cell::reject_non_finite).collect();
        let key = key.to_owned();
        self.rows.push(ReportRow { key, cells });
        Ok(())
    }

    /// Stable key, made of `a-z`, `0-9`, `-`, `_`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Title for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The columns.
    pub fn columns(&self) -> &[ReportColumn] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> &[ReportRow] {
        &self.rows
    }

    /// The row with that key.
    pub fn row(&self, key: &str) -> Option<&ReportRow> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// The cell in that row and column.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        let index = self.columns.iter().position(|c| c.key == column)?;
        self.row(row)?.cells.get(index)
    }

    fn bad_key(&self, what: &'static str, key: &str, right: &'static str) -> ReportTableError {
        ReportTableError::Key {
            table: self.key.clone(),
            what,
            key: key.to_owned(),
            right,
        }
    }

    fn duplicate_key(&self, what: &'static str, key: &str) -> ReportTableError {
        ReportTableError::Twice {
            table: self.key.clone(),
            what,
            key: key.to_owned(),
        }
    }
}

/// True if a key can be part of a file name on any system.
pub(crate) fn is_file_key(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    !key.is_empty() && key.bytes().all(fits)
}

fn is_column_key(key: &str) -> bool {
    let splits = |c: char| c.is_whitespace() || c.is_control() || [',', ':', '"'].contains(&c);
    let reserved = key == ROW_KEY || SUFFIXES.iter().any(|suffix| key.ends_with(suffix));
    !key.is_empty() && !reserved && !key.contains(splits)
}

/// A table as it is written: rows are objects of column keys and cells.
#[derive(Serialize, Deserialize)]
struct TableFile {
    key: String,
    title: String,
    columns: Vec<ReportColumn>,
    rows: Vec<RowFile>,
}

#[derive(Serialize, Deserialize)]
struct RowFile {
    key: String,
    #[serde(flatten)]
    cells: BTreeMap<String, Cell>,
}

impl From<ReportTable> for TableFile {
    fn from(table: ReportTable) -> Self {
        let keys: Vec<String> = table.columns.iter().map(|c| c.key.clone()).collect();
        let row = |row: ReportRow| RowFile {
            key: row.key,
            cells: keys.iter().cloned().zip(row.cells).collect(),
        };
        Self {
            rows: table.rows.into_iter().map(row).collect(),
            key: table.key,
            title: table.title,
            columns: table.columns,
        }
    }
}

impl TryFrom<TableFile> for ReportTable {
    type Error = ReportTableError;

    fn try_from(file: TableFile) -> Result<Self, ReportTableError> {
        let mut table = Self::new(&file.key, &file.title, file.columns)?;
        for row in file.rows {
            // Each column has a cell, and no cell is left.
            let mut left = row.cells;
            let columns = table.columns.iter();
            let cells: Option<Vec<Cell>> = columns.map(|column| left.remove(&column.key)).collect();
            let Some(cells) = cells.filter(|_| left.is_empty()) else {
                return Err(ReportTableError::Columns {
                    table: file.key,
                    row: row.key,
                });
            };
            table.push(&row.key, cells)?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns() -> Vec<ReportColumn> {
        vec![
            ReportColumn::with_unit("time_s", "time", "s"),
            ReportColumn::plain("class", "class"),
        ]
    }

    fn table() -> ReportTable {
        ReportTable::new("t", "A table", columns()).unwrap()
    }

    #[test]
    fn json_has_the_documented_shape() {
        let mut table = table();
        table.push("hmmer", vec![1.5.into(), "int".into()]).unwrap();
        let json = serde_json::to_value(&table).unwrap();
        assert_eq!(json["key"], "t");
        assert_eq!(json["columns"][0]["unit"], "s");
        assert_eq!(json["rows"][0]["key"], "hmmer");
        assert_eq!(json["rows"][0]["time_s"], 1.5);
        assert_eq!(json["rows"][0]["class"], "int");
    }

    #[test]
    fn cells_are_found_by_keys() {
        let mut table = table();
        table
            .push("a+b", vec![f64::NAN.into(), "x".into()])
            .unwrap();
        assert_eq!(table.cell("a+b", "class"), Some(&"x".into()));
        assert_eq!(table.cell("a+b", "time_s").unwrap().value(), None);
        assert_eq!(table.cell("a+b", "other"), None);
        assert_eq!(table.cell("other", "class"), None);
    }

    #[test]
    fn keys_that_would_clash_are_refused() {
        for key in ["", "Upper", "a/b", "../x"] {
            assert!(ReportTable::new(key, "", vec![]).is_err(), "{key}");
        }
        for key in ["", "key", "a_ci95", "a_n", "a,b", "a b", "a:b"] {
            let columns = vec![ReportColumn::plain(key, "")];
            assert!(ReportTable::new("t", "", columns).is_err(), "{key}");
        }
        let twice = vec![ReportColumn::plain("a", ""), ReportColumn::plain("a", "")];
        let error = ReportTable::new("t", "", twice).unwrap_err().to_string();
        assert_eq!(error, "table 't' has two columns with the key 'a'");
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let mut table = table();
        let short = table.push("a", vec![1.0.into()]).unwrap_err();
        assert_eq!(
            short.to_string(),
            "table 't', row 'a' has 1 cells for 2 columns"
        );
        table.push("a", vec![1.0.into(), "x".into()]).unwrap();
        assert!(table.push("a", vec![1.0.into(), "x".into()]).is_err());
        assert!(table.push(" ", vec![1.0.into(), "x".into()]).is_err());
    }

    #[test]
    fn stored_tables_are_checked() {
        let text = r#"{"key":"t","title":"","columns":[],"rows":[{"key":"a","b":1}]}"#;
        let error = serde_json::from_str::<ReportTable>(text)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("row 'a' does not have the table's columns"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn tables_survive_json_to_the_last_bit(values in prop::collection::vec(any::<f64>(), 0..20)) {
            let mut table = table();
            for (row, value) in values.iter().enumerate() {
                table.push(&row.to_string(), vec![(*value).into(), Cell::missing("?")]).unwrap();
            }
            let json = serde_json::to_string(&table).unwrap();
            prop_assert_eq!(serde_json::from_str::<ReportTable>(&json).unwrap(), table);
        }
    }
}
