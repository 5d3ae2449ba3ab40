//! One pair of programs under some mappings: M2, M3, M5, M8, M10 and M12.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING over os` and `PROGRAM, MAPPING, MEASURE`. Table `pair`:
//! rows `PROGRAM/MAPPING`; columns `speed_over_os` and the measures'.

use super::measures::MappingMeasure;
use super::plan::{MAPPINGS, ProgramNamePair};
use super::sweep::PairRuns;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_core::stats::RatioInterval;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::mapping::OS;

/// A pair, the mappings that are looked at, and what of them.
pub(in crate::studies) struct PairView<'a> {
    pub runs: &'a PairRuns,
    pub pair: ProgramNamePair,
    pub mappings: &'a [&'a str],
    pub measures: &'a [MappingMeasure],
}

impl PairView<'_> {
    fn rows(&self) -> impl Iterator<Item = (usize, &str, String)> {
        let of = move |place: usize| {
            let key = move |mapping: &str| format!("{}/{mapping}", self.pair[place]);
            self.mappings
                .iter()
                .map(move |mapping| (place, *mapping, key(mapping)))
        };
        (0..self.pair.len()).flat_map(of)
    }

    /// Table `pair`.
    pub fn table(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let row = |(place, mapping, key): (usize, &str, String)| {
            let speed = self.runs.speed(self.pair, place, mapping, OS);
            let cell = |m: &MappingMeasure| self.runs.cell(self.pair, place, mapping, m.value);
            let measures = self.measures.iter().map(cell);
            (key, std::iter::once(speed).chain(measures).collect())
        };
        file.fill_table("pair", self.rows().map(row))
    }

    /// The bars of the source's chart: speeds over os, and some measures.
    pub fn headline(&self, measures: &[MappingMeasure]) -> Result<ReportTable, StudyError> {
        let mut headline = HeadlineTable::new()?;
        for (place, mapping, _) in self.rows().filter(|(_, mapping, _)| *mapping != OS) {
            let row = format!("{}, {mapping} over os", self.pair[place]);
            headline.add_gain(&row, self.runs.speed(self.pair, place, mapping, OS))?;
        }
        for measure in measures {
            for (place, mapping, _) in self.rows() {
                let title = measure.title;
                let row = format!("{}, {mapping}, {title}", self.pair[place]);
                let cell = self.runs.cell(self.pair, place, mapping, measure.value);
                headline.add(&row, measure.unit_name(), cell)?;
            }
        }
        Ok(headline.into_table())
    }

    /// Speeds of both programs over os, in words, and the two taken together.
    pub fn sentence(&self) -> String {
        let of = |mapping: &&str| {
            let speed = |place| self.runs.speed(self.pair, place, mapping, OS).text();
            let both =
                RatioInterval::from_ratios(&self.runs.gains(self.pair, mapping)).map(Cell::from);
            let both = both.map_or_else(String::new, |cell| cell.text());
            let [a, b] = self.pair;
            format!("{mapping} {a} {}, {b} {}, both {both}", speed(0), speed(1))
        };
        let others = self.mappings.iter().filter(|m| **m != OS);
        let all: Vec<String> = others.map(of).collect();
        format!("Speed over os: {}.", all.join("; "))
    }

    /// Bars of one measure: a group for each program, a series for each mapping.
    pub fn figure(&self, file: &StudyFile, measure: MappingMeasure) -> Result<Figure, StudyError> {
        let cell = |place, mapping: &str| self.runs.cell(self.pair, place, mapping, measure.value);
        self.grouped((file, measure.key), self.mappings, cell)
    }

    /// Bars of speeds over os.
    pub fn speeds(&self, file: &StudyFile) -> Result<Figure, StudyError> {
        let others: Vec<&str> = MAPPINGS.into_iter().filter(|m| *m != OS).collect();
        let cell = |place, mapping: &str| self.runs.speed(self.pair, place, mapping, OS);
        self.grouped((file, "speed"), &others, cell)
    }

    fn grouped(
        &self,
        (file, key): (&StudyFile, &str),
        mappings: &[&str],
        cell: impl Fn(usize, &str) -> Cell,
    ) -> Result<Figure, StudyError> {
        let series = mappings.iter().map(|mapping| {
            let cells = (0..self.pair.len()).map(|place| cell(place, mapping));
            ((*mapping).to_owned(), cells.collect())
        });
        let groups = self.pair.map(str::to_owned).to_vec();
        file.bar_figure(key, self.runs.seeds, groups, series)
    }

    /// Bars of several measures of one unit: a group for each row, a series for each measure.
    pub fn parts(&self, file: &StudyFile, key: &str) -> Result<Figure, StudyError> {
        let rows: Vec<(usize, &str, String)> = self.rows().collect();
        let series = self.measures.iter().map(|m| {
            let cell = |(place, mapping, _): &(usize, &str, String)| {
                self.runs.cell(self.pair, *place, mapping, m.value)
            };
            (m.title.to_owned(), rows.iter().map(cell).collect())
        });
        let groups = rows.iter().map(|(_, _, key)| key.clone()).collect();
        file.bar_figure(key, self.runs.seeds, groups, series)
    }
}
