//! Tables in memory, column by column.

use crate::csv::{csv_text, write_csv};
use std::io::{self, Write};

/// A table: columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Unit of its numbers; `None` for texts, plain ratios and counts.
    pub unit: Option<String>,
    /// Its values, row by row.
    pub values: Values,
}

/// Values of one type; `None` if a row has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Count(Vec<Option<u64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(all) => all.len(),
            Self::Count(all) => all.len(),
            Self::Number(all) => all.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row as a field of CSV. Reading a number gives the same bits; a missing value is
    /// empty.
    fn field(&self, row: usize) -> String {
        match self {
            Self::Text(all) => all[row].clone(),
            Self::Count(all) => all[row].map(|count| count.to_string()),
            Self::Number(all) => all[row].map(|value| value.to_string()),
        }
        .unwrap_or_default()
    }
}

impl Table {
    /// Adds a column of texts.
    #[must_use]
    pub fn with_text<T: Into<String>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        let values = values.into_iter().map(|value| value.map(Into::into));
        self.with_column(name, None, Values::Text(values.collect()))
    }

    /// Adds a column of whole numbers.
    #[must_use]
    pub fn with_counts(self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        let values = values.into_iter().map(Some).collect();
        self.with_column(name, None, Values::Count(values))
    }

    /// Adds a column of numbers in a unit; `None` for plain ratios.
    #[must_use]
    pub fn with_numbers(
        self,
        name: &str,
        unit: Option<&str>,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        self.with_column(name, unit, Values::Number(values.into_iter().collect()))
    }

    /// Adds a column, as long as those before it.
    #[must_use]
    pub fn with_column(mut self, name: &str, unit: Option<&str>, values: Values) -> Self {
        debug_assert!(self.columns.is_empty() || self.row_count() == values.len());
        self.columns.push(Column {
            name: name.to_owned(),
            unit: unit.map(str::to_owned),
            values,
        });
        self
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Names of the columns, separated by commas, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        names.join(", ")
    }

    /// The table as CSV with a header line.
    pub fn to_csv(&self) -> String {
        csv_text(self.records(true))
    }

    /// Writes the rows as CSV, with or without the header line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut dyn Write, header: bool) -> io::Result<()> {
        write_csv(out, self.records(header))
    }

    fn records(&self, header: bool) -> impl Iterator<Item = Vec<String>> {
        let names = self.columns.iter().map(|c| c.name.clone()).collect();
        let rows = (0..self.row_count())
            .map(|row| self.columns.iter().map(|c| c.values.field(row)).collect());
        header.then_some(names).into_iter().chain(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_keeps_every_bit_and_empty_gaps() {
        let table = Table::default()
            .with_text("who", [Some("a,b"), None])
            .with_counts("n", [1, u64::MAX])
            .with_numbers("x", Some("s"), [Some(0.1 + 0.2), None]);
        let expected = "who,n,x\n\"a,b\",1,0.30000000000000004\n,18446744073709551615,\n";
        assert_eq!(table.to_csv(), expected);
        assert_eq!(table.row_count(), 2);
        let unit = table.column("x").and_then(|column| column.unit.as_deref());
        assert_eq!(unit, Some("s"));
    }
}
