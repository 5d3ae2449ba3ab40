//! Outputs of studies that Rust computes; the headings of tables and figures are the study file's.

use crate::study::file::{StudyFile, TableSpec};
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};

/// An output under construction. Tables, figures and notes keep the order in which they are added.
pub(crate) struct OutputBuilder<'a> {
    pub(super) file: &'a StudyFile,
    headline: HeadlineTable,
    output: StudyOutput,
}

impl<'a> OutputBuilder<'a> {
    /// An empty output whose numbers are from this many runs.
    pub(super) fn new(file: &'a StudyFile, runs: usize) -> Result<Self, StudyError> {
        let output = StudyOutput {
            runs,
            ..StudyOutput::default()
        };
        Ok(Self {
            file,
            headline: HeadlineTable::new()?,
            output,
        })
    }

    /// The file's table of a key, which may have parameters of an analysis.
    pub(super) fn table_spec(&self, key: &str) -> Result<&'a TableSpec, StudyError> {
        let spec = self.file.tables.iter().find(|spec| spec.key == key);
        spec.ok_or_else(|| StudyError::part(key, "the study's file has no such table"))
    }

    /// Adds a row to the headline.
    pub(super) fn headline(
        &mut self,
        row: impl AsRef<str>,
        unit: &str,
        cell: impl Into<Cell>,
    ) -> Result<(), StudyError> {
        Ok(self.headline.add(row.as_ref(), unit, cell)?)
    }

    /// Adds a ratio to the headline, as the percentage by which it is above 1.
    pub(super) fn headline_gain(&mut self, row: &str, ratio: Cell) -> Result<(), StudyError> {
        Ok(self.headline.add_gain(row, ratio)?)
    }

    /// Adds the file's table of a key, with these rows.
    pub(super) fn table<K: AsRef<str>>(
        &mut self,
        key: &str,
        rows: impl IntoIterator<Item = (K, Vec<Cell>)>,
    ) -> Result<(), StudyError> {
        let table = self.file.fill_table(key, rows)?;
        self.push_table(table);
        Ok(())
    }

    /// Adds a table that is not in the file, because its columns depend on the runs.
    pub(super) fn push_table(&mut self, table: ReportTable) {
        self.output.tables.push(table);
    }

    /// Adds the file's figure of a key as bars: a series has a cell for each group.
    pub(super) fn bars<G: Into<String>, S: Into<String>>(
        &mut self,
        key: &str,
        groups: impl IntoIterator<Item = G>,
        series: impl IntoIterator<Item = (S, Vec<Cell>)>,
    ) -> Result<(), StudyError> {
        let groups = groups.into_iter().map(Into::into).collect();
        let series = series.into_iter().map(|(name, cells)| (name.into(), cells));
        let figure = self
            .file
            .bar_figure(key, self.output.runs, groups, series)?;
        self.push_figure(figure);
        Ok(())
    }

    /// Adds the file's figure of a key as a heat map: a row has a value for each column.
    pub(super) fn heat_map<C: Into<String>, R: Into<String>>(
        &mut self,
        key: &str,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = (R, Vec<Option<f64>>)>,
    ) -> Result<(), StudyError> {
        let columns = columns.into_iter().map(Into::into).collect();
        let rows = rows.into_iter().map(|(name, values)| (name.into(), values));
        let runs = self.output.runs;
        let figure = self.file.heat_figure(key, runs, columns, rows.collect())?;
        self.push_figure(figure);
        Ok(())
    }

    /// Adds a figure that is not in the file.
    pub(super) fn push_figure(&mut self, figure: Figure) {
        self.output.figures.push(figure);
    }

    /// Adds a note.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.output.notes.push(note.into());
    }

    /// The output, the headline first.
    pub(super) fn finish(mut self) -> StudyOutput {
        // The runner rejects an output whose first table is not the headline.
        self.output.tables.insert(0, self.headline.into_table());
        self.output
    }
}

/// The texts of some things, separated by commas.
pub(super) fn join<T>(all: impl IntoIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    all.into_iter().map(text).collect::<Vec<_>>().join(", ")
}
