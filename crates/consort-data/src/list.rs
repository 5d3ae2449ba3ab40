//! Lists: rows of any type and the columns in which they are printed. The same columns give the
//! text for a terminal, CSV, a typed table for `--out`, and a table of a page.

use crate::cell::Cell;
use crate::csv::{escape_field, write_csv};
use crate::grid::{ColumnHead, lay_out};
use crate::report_table::{ReportColumn, ReportTable, ReportTableError};
use crate::table::{Table, Values};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// One column of a list: header, alignment and text of a row.
pub struct OutputColumn<R> {
    header: &'static str,
    numeric: bool,
    /// True for a column that is hidden first if a table is too wide.
    extra: bool,
    text: fn(&R) -> String,
}

/// A column of text.
pub const fn text<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: false,
        extra: false,
        text,
    }
}

/// A column of numbers, aligned right.
pub const fn number<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: true,
        extra: false,
        text,
    }
}

/// A column of numbers that is hidden if the table is too wide.
pub const fn extra_number<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: true,
        extra: true,
        text,
    }
}

/// A column of text that is hidden if the table is too wide.
pub const fn extra_text<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: false,
        extra: true,
        text,
    }
}

impl<R> OutputColumn<R> {
    /// The header in files, without blanks and signs: `fp %` is `fp_percent`.
    fn file_header(&self) -> String {
        let letters = self.header.replace('%', "percent").replace(['(', ')'], "");
        letters.trim().replace(' ', "_")
    }

    /// The text, with the digits that the column chose for its numbers.
    fn cell(&self, row: &R) -> Cell {
        let text = (self.text)(row);
        text.parse::<u64>().map_or(Cell::Text(text), Cell::Count)
    }
}

/// Rows and the columns in which they are shown.
pub struct List<'a, R> {
    /// The columns.
    pub columns: &'a [OutputColumn<R>],
    /// The rows.
    pub rows: &'a [R],
}

impl<'a, R> List<'a, R> {
    /// A list of rows in these columns.
    pub fn new(columns: &'a [OutputColumn<R>], rows: &'a [R]) -> Self {
        Self { columns, rows }
    }

    /// The list for people in lines of at most `width` characters, of any length if `None`.
    pub fn to_text(&self, width: Option<usize>) -> String {
        let heads = self.columns.iter().map(|column| ColumnHead {
            text: column.header.to_owned(),
            numeric: column.numeric,
            extra: column.extra,
        });
        let rows = self
            .rows
            .iter()
            .map(|row| self.columns.iter().map(|c| (c.text)(row)).collect());
        lay_out(
            &heads.collect::<Vec<_>>(),
            &rows.collect::<Vec<Vec<String>>>(),
            width,
        )
    }

    /// Writes the list as CSV with a header line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let header: Vec<String> = self.columns.iter().map(OutputColumn::file_header).collect();
        let rows = self.rows.iter().map(|row| {
            let fields = self.columns.iter().map(|c| escape_field((c.text)(row)));
            fields.collect::<Vec<_>>()
        });
        write_csv(out, std::iter::once(header).chain(rows))
    }

    /// The list as a table with the columns of its CSV: a numeric column is one of numbers if each
    /// of its fields is a number, empty or `-`.
    pub fn to_table(&self) -> Table {
        let mut table = Table::default();
        for column in self.columns {
            let fields: Vec<String> = { self.rows.iter() }
                .map(|row| escape_field((column.text)(row)))
                .collect();
            let numbers: Option<Vec<Option<f64>>> = { fields.iter() }
                .map(|field| match field.as_str() {
                    "" | "-" => Some(None),
                    field => field.parse().ok().map(Some),
                })
                .collect();
            let values = match numbers.filter(|_| column.numeric) {
                Some(numbers) => Values::Number(numbers),
                None => Values::Text(fields.into_iter().map(Some).collect()),
            };
            table = table.with_column(&column.file_header(), None, values);
        }
        table
    }

    /// The list as a table of a page; the first column names the rows, with a number if the name is
    /// taken.
    ///
    /// # Errors
    /// Those of [`ReportTable::new`].
    pub fn to_report_table(&self, key: &str, title: &str) -> Result<ReportTable, ReportTableError> {
        let Some((first, others)) = self.columns.split_first() else {
            return ReportTable::new(key, title, Vec::new());
        };
        let heads = others.iter().enumerate();
        let heads = heads.map(|(at, c)| ReportColumn::plain(&format!("c{at}"), c.header));
        let mut table = ReportTable::new(key, title, heads.collect())?;
        let mut names = BTreeSet::new();
        for row in self.rows {
            let name = (first.text)(row);
            let mut unused = match name.trim() {
                "" => "-".to_owned(),
                some => some.to_owned(),
            };
            let mut number = 2;
            while !names.insert(unused.clone()) {
                unused = format!("{} ({number})", name.trim());
                number += 1;
            }
            let cells = others.iter().map(|column| column.cell(row));
            table.push(&unused, cells.collect())?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_columns_with_gaps_are_numbers() {
        let columns: &[OutputColumn<(&str, &str, &str)>] = &[
            text("name", |r| r.0.to_owned()),
            number("CPU (s)", |r| r.1.to_owned()),
            number("threads", |r| r.2.to_owned()),
        ];
        let table = List::new(columns, &[("a", "1.5", "2/16"), ("b", "-", "1")]).to_table();
        let names: Vec<&str> = table.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["name", "CPU_s", "threads"]);
        let of = |name: &str| table.column(name).map(|column| column.values.clone());
        assert_eq!(of("CPU_s"), Some(Values::Number(vec![Some(1.5), None])));
        let threads = ["2/16", "1"].map(|text| Some(text.to_owned()));
        assert_eq!(of("threads"), Some(Values::Text(threads.to_vec())));
    }

    #[test]
    fn page_rows_with_one_name_are_numbered() {
        let columns: &[OutputColumn<(&str, f64)>] = &[
            text("name", |row| row.0.to_owned()),
            number("value", |row| format!("{:.2}", row.1)),
            text("value in words", |row| format!("about {:.0}", row.1)),
        ];
        let rows = [("a", 1.25), ("a", 2.0), (" ", f64::NAN)];
        let table = List::new(columns, &rows).to_report_table("t", "T").unwrap();
        let keys: Vec<&str> = table.rows().iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["a", "a (2)", "-"]);
        assert_eq!(table.rows()[0].cells[0], Cell::Text("1.25".to_owned()));
        assert_eq!(table.columns().len(), 2);
        assert_eq!(table.rows()[2].cells[0], Cell::Text("NaN".to_owned()));
        assert_eq!(table.rows()[1].cells[1], Cell::Text("about 2".to_owned()));
    }
}
