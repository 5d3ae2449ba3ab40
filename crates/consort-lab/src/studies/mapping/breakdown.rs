//! Change of a program's time by a change of mapping, divided by resource: M2, M5, M10 and M12.
//!
//! Keys. Table `attribution`: rows programs; columns `time`, `cycles`, `utilisation`, one for each
//! resource with stall cycles, and `other`. All are summands of the natural logarithm of the ratio
//! of times, in percent: `time` is `cycles` and `utilisation` together, and `cycles` are the
//! resources and `other`. Figure `attribution`.

use super::plan::ProgramNamePair;
use super::sweep::PairRuns;
use crate::frame::interval_cell;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_core::mapping::analysis::{Attribution, SharedResource, attribute};
use consort_data::{Cell, Figure, ReportTable};

/// Change of a pair from one mapping to another.
#[derive(Clone, Copy)]
pub(in crate::studies) struct MappingChange<'a> {
    pub runs: &'a PairRuns,
    pub pair: ProgramNamePair,
    pub from: &'a str,
    pub to: &'a str,
}

/// Resources whose stall cycles the simulation counts.
const RESOURCES: [SharedResource; 6] = [
    SharedResource::L1d,
    SharedResource::L1i,
    SharedResource::L2,
    SharedResource::MemoryPath,
    SharedResource::BranchPredictor,
    SharedResource::Tlb,
];

/// Parts that add up to the time: utilisation, the resources and what is left.
const PARTS: usize = RESOURCES.len() + 2;

impl MappingChange<'_> {
    /// Attributions of a program of the pair, seed by seed.
    fn attributions(&self, place: usize) -> Vec<Attribution> {
        let from = self.runs.both(self.pair, self.from);
        let both = from.iter().zip(self.runs.both(self.pair, self.to));
        let usage =
            |programs: &[consort_experiment::RepeatedProgram]| self.runs.usage(&programs[place]);
        both.filter_map(|(from, to)| attribute(&usage(from), &usage(to)))
            .collect()
    }

    /// Table `attribution`.
    pub fn table(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let rows = self.pair.iter().enumerate().map(|(place, program)| {
            let found = self.attributions(place);
            let of = |value: fn(&Attribution) -> f64| over_seeds(&found, value);
            let mut cells = vec![of(|a| a.time), of(|a| a.cycles)];
            cells.extend(parts(&found));
            (program, cells)
        });
        file.fill_table("attribution", rows)
    }

    /// Figure `attribution`.
    pub fn figure(&self, file: &StudyFile) -> Result<Figure, StudyError> {
        let columns: Vec<[Cell; PARTS]> = (0..self.pair.len())
            .map(|place| parts(&self.attributions(place)))
            .collect();
        let series = |(n, name): (usize, &str)| {
            let cells = columns.iter().map(|parts| parts[n].clone());
            (name.to_owned(), cells.collect())
        };
        let series = names().into_iter().enumerate().map(series);
        let groups = self.pair.map(str::to_owned).to_vec();
        file.bar_figure("attribution", self.runs.seeds, groups, series)
    }
}

fn names() -> [&'static str; PARTS] {
    let [a, b, c, d, e, f] = RESOURCES.map(SharedResource::name);
    ["utilisation", a, b, c, d, e, f, "other cycles"]
}

fn over_seeds(found: &[Attribution], value: impl Fn(&Attribution) -> f64) -> Cell {
    interval_cell(&found.iter().map(|a| 100.0 * value(a)).collect::<Vec<_>>())
}

/// Parts in the order of [`names`].
fn parts(found: &[Attribution]) -> [Cell; PARTS] {
    let of = |value: fn(&Attribution) -> f64| over_seeds(found, value);
    let resource =
        |r: SharedResource| over_seeds(found, |a| a.resources.get(&r).copied().unwrap_or(0.0));
    let [a, b, c, d, e, f] = RESOURCES.map(resource);
    [
        of(|a| a.utilisation),
        a,
        b,
        c,
        d,
        e,
        f,
        of(|a| a.other_cycles),
    ]
}
