//! `--out FILE.csv`, `.arrow` or `.parquet`: what a verb prints, for data frames.

use crate::cli;
use crate::failure::bad_input;
use crate::output::{OutputColumn, escape_field, header};
use anyhow::Result;
use consort_data::{Table, TableSink, Values};
use std::path::{Path, PathBuf};

/// The file that was asked for, begun before anything is run, so that a bad path wastes no time.
pub(crate) struct TableOutput(Option<TableSink>);

impl TableOutput {
    /// Begins the file, if one was asked for.
    pub(crate) fn begin(out: Option<&Path>) -> Result<Self> {
        let sink = out.map(TableSink::create).transpose();
        Ok(Self(sink.map_err(bad_input)?))
    }

    /// Begins the file, if one was asked for beside a folder or file of the verb's own.
    pub(crate) fn begin_from_out(out: &[PathBuf]) -> Result<Self> {
        let tables = out.iter().filter(|path| consort_data::is_table_path(path));
        let tables = tables.count();
        if tables > 1 || out.len() - tables > 1 {
            let names = out.iter().map(|path| path.display().to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(bad_input(format!(
                "--out {names}: too many; expected at most one table (.csv, .arrow or .parquet) \
                 and one other"
            )));
        }
        Self::begin(cli::table_output(out))
    }

    /// Adds a table, which is made only where there is a file.
    pub(crate) fn add(&mut self, table: impl FnOnce() -> Table) -> Result<()> {
        if let Some(sink) = &mut self.0 {
            sink.write(&table())?;
        }
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.0.map_or(Ok(()), TableSink::finish)?)
    }

    /// Writes a file of one table.
    pub(crate) fn write(mut self, table: impl FnOnce() -> Table) -> Result<()> {
        self.add(table)?;
        self.finish()
    }
}

/// Writes a list to a file, if one was asked for, with the columns that its CSV has on stdout.
pub(crate) fn write_list<R>(
    out: Option<&Path>,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    TableOutput::begin(out)?.write(|| list_table(columns, rows))
}

/// A list as a table: columns of numbers where all fields are, or are missing.
pub(crate) fn list_table<R>(columns: &[OutputColumn<R>], rows: &[R]) -> Table {
    columns.iter().fold(Table::default(), |table, column| {
        let texts: Vec<String> = rows
            .iter()
            .map(|row| escape_field((column.text)(row)))
            .collect();
        table.with_column(&header(column), None, values(column.numeric, texts))
    })
}

/// Numbers where all are, or missing; else texts.
fn values(numeric: bool, texts: Vec<String>) -> Values {
    let number = |text: &String| match text.as_str() {
        "" | "-" => Some(None),
        text => text.parse::<f64>().ok().map(Some),
    };
    let numbers: Option<Vec<Option<f64>>> = texts.iter().map(number).collect();
    match numbers.filter(|_| numeric) {
        Some(numbers) => Values::Number(numbers),
        None => Values::Text(texts.into_iter().map(Some).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{number, text};

    #[test]
    fn columns_of_numbers_are_numbers_and_gaps_are_missing() {
        let columns: &[OutputColumn<(&str, &str, &str)>] = &[
            text("name", |r| r.0.to_owned()),
            number("CPU (s)", |r| r.1.to_owned()),
            number("threads", |r| r.2.to_owned()),
        ];
        let table = list_table(columns, &[("a", "1.5", "2/16"), ("b", "-", "1")]);
        let names: Vec<&str> = table.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["name", "CPU_s", "threads"]);
        let of = |name: &str| table.column(name).map(|column| column.values.clone());
        assert_eq!(of("CPU_s"), Some(Values::Number(vec![Some(1.5), None])));
        let threads = ["2/16", "1"].map(|text| Some(text.to_owned()));
        assert_eq!(of("threads"), Some(Values::Text(threads.to_vec())));
    }
}
