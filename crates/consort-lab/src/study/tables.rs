//! Tables of a study: views of its frames, or filled with the numbers of an analysis.

use super::StudyError;
use super::figures::{bars_from_series, heat_map_from_rows};
use super::file::{CellSpec, FigureSpec, HeadlineSpec, StudyFile, TableSpec};
use super::frames::{Frames, TemplateWords};
use super::template::fill;
use consort_data::{Cell, Figure, HeadlineTable, Plot, ReportTable};

/// The unit of headline rows that shows a ratio as percent above 1.
const GAIN: &str = "gain";

/// The first table of a study.
pub(super) fn headline(
    frames: &Frames,
    blocks: &[HeadlineSpec],
) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for block in blocks {
        for turn in frames.turns(block.looped()).iter().flatten() {
            for spec in &block.rows {
                let row = fill(spec.row.as_deref().unwrap_or("{group}"), &turn.words);
                let cell = frames.cell(spec, turn);
                match spec.unit.as_deref().unwrap_or("ratio") {
                    GAIN => headline.add_gain(&row, cell)?,
                    unit => headline.add(&row, unit, cell)?,
                }
            }
        }
    }
    Ok(headline.into_table())
}

/// One table: a row for each turn of its loop.
pub(super) fn table(frames: &Frames, spec: &TableSpec) -> Result<ReportTable, StudyError> {
    let columns = spec.columns.iter().map(CellSpec::column).collect();
    let mut table = ReportTable::new(&spec.key, &spec.title, columns)?;
    let usual = match spec.policies.is_empty() && spec.each.is_empty() {
        true => "{group}",
        false => "{group}/{name}",
    };
    let row = spec.row.as_deref().unwrap_or(usual);
    for turn in frames.turns(spec.looped()).iter().flatten() {
        let cells = spec.columns.iter().map(|column| frames.cell(column, turn));
        table.push(&fill(row, &turn.words), cells.collect())?;
    }
    Ok(table)
}

impl TableSpec {
    /// The table with these rows.
    pub(crate) fn fill_rows<K: AsRef<str>>(
        &self,
        rows: impl IntoIterator<Item = (K, Vec<Cell>)>,
    ) -> Result<ReportTable, StudyError> {
        self.fill_rows_with_words(&TemplateWords::new(), rows)
    }

    fn fill_rows_with_words<K: AsRef<str>>(
        &self,
        words: &TemplateWords,
        rows: impl IntoIterator<Item = (K, Vec<Cell>)>,
    ) -> Result<ReportTable, StudyError> {
        let columns = self.columns.iter().map(CellSpec::column).collect();
        let mut table = ReportTable::new(&self.key, &fill(&self.title, words), columns)?;
        for (key, cells) in rows {
            table.push(key.as_ref(), cells)?;
        }
        Ok(table)
    }
}

fn no_headings(key: &str) -> StudyError {
    StudyError::part(key, "the study's file has no headings for it")
}

impl StudyFile {
    /// The table of a key, with these rows.
    ///
    /// # Errors
    /// A key that the file has no table of, and rows that cannot be.
    pub(crate) fn fill_table<K: AsRef<str>>(
        &self,
        key: &str,
        rows: impl IntoIterator<Item = (K, Vec<Cell>)>,
    ) -> Result<ReportTable, StudyError> {
        self.fill_table_with_words(key, &TemplateWords::new(), rows)
    }

    /// The table of a key, with words for those in its title.
    ///
    /// # Errors
    /// As for [`Self::fill_table`].
    pub(crate) fn fill_table_with_words<K: AsRef<str>>(
        &self,
        key: &str,
        words: &TemplateWords,
        rows: impl IntoIterator<Item = (K, Vec<Cell>)>,
    ) -> Result<ReportTable, StudyError> {
        let spec = self.tables.iter().find(|spec| spec.key == key);
        let spec = spec.ok_or_else(|| no_headings(key))?;
        spec.fill_rows_with_words(words, rows)
    }

    /// The figure of a key, with a plot that has the texts of its entry in the file.
    fn draw_figure(
        &self,
        key: &str,
        runs: usize,
        plot: impl FnOnce(&FigureSpec) -> Plot,
    ) -> Result<Figure, StudyError> {
        let spec = self.figures.iter().find(|spec| spec.key == key);
        let spec = spec.ok_or_else(|| no_headings(key))?;
        let plot = plot(spec);
        Ok(Figure::new(&spec.key, &spec.title, &spec.text, runs, plot)?)
    }

    /// The figure of a key as bars: a group for each name; series are names with a cell for each
    /// group.
    ///
    /// # Errors
    /// A key that the file has no figure of, and series of other lengths.
    pub(crate) fn bar_figure(
        &self,
        key: &str,
        runs: usize,
        groups: Vec<String>,
        series: impl IntoIterator<Item = (String, Vec<Cell>)>,
    ) -> Result<Figure, StudyError> {
        self.draw_figure(key, runs, |spec| {
            Plot::Bars(bars_from_series(spec, groups, series))
        })
    }

    /// The figure of a key as a matrix, whose rows have a value, or none, for each column.
    ///
    /// # Errors
    /// A key that the file has no figure of, and rows of other lengths.
    pub(crate) fn heat_figure(
        &self,
        key: &str,
        runs: usize,
        columns: Vec<String>,
        rows: Vec<(String, Vec<Option<f64>>)>,
    ) -> Result<Figure, StudyError> {
        self.draw_figure(key, runs, |spec| {
            Plot::HeatMap(heat_map_from_rows(spec, columns, rows))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_data::ReportColumn;

    const FILE: &str = "id = 'x'\ntitle = ''\nsource = ''\nsection = ''\noriginal = ''\n\
        differs = ''\nseed = 1\nfull_seconds = 1\nanalysis = 'h1'\n\
        [[tables]]\nkey = 't'\ntitle = 'Work of {s} s'\n\
        columns = [{ measure = 'makespan_s' }, { measure = 'own', title = 'Own', unit = '%' }]\n\
        [[figures]]\nkey = 'f'\ntitle = 'F'\ncategory = 'C'\nvalue = 'V'\nunit = 's'\n\
        baseline = 1.0\nseries = []\n";

    #[test]
    fn headings_come_from_the_file() {
        let file = StudyFile::parse("x.toml", FILE).unwrap();
        let words = TemplateWords::from([("s".to_owned(), "2".to_owned())]);
        let rows = [("a", vec![1.0.into(), 50.0.into()])];
        let table = file.fill_table_with_words("t", &words, rows).unwrap();
        assert_eq!(table.title(), "Work of 2 s");
        let headings: Vec<String> = table.columns().iter().map(ReportColumn::heading).collect();
        assert_eq!(headings, ["Makespan (s)", "Own (%)"]);
        assert_eq!(table.cell("a", "own").unwrap().value(), Some(50.0));
        let series = [(
            "one".to_owned(),
            vec![Cell::from(2.0), Cell::missing("none")],
        )];
        let groups = ["g", "h"].map(str::to_owned).to_vec();
        let figure = file.bar_figure("f", 3, groups, series).unwrap();
        let Plot::Bars(bars) = figure.plot() else {
            panic!("{figure:?}");
        };
        assert_eq!(
            (bars.baseline, bars.value.unit.as_deref()),
            (1.0, Some("s"))
        );
        let values: Vec<Option<f64>> = { bars.series[0].bars.iter() }
            .map(|bar| bar.as_ref().map(|bar| bar.value))
            .collect();
        assert_eq!(values, [Some(2.0), None]);
    }

    #[test]
    fn key_without_headings_is_named() {
        let file = StudyFile::parse("x.toml", FILE).unwrap();
        let none: [(&str, Vec<Cell>); 0] = [];
        let error = file.fill_table("u", none).unwrap_err().to_string();
        assert_eq!(error, "u: the study's file has no headings for it");
        assert!(file.heat_figure("g", 1, Vec::new(), Vec::new()).is_err());
    }
}
