//! Change of a program's time by a change of mapping, divided by resource: M2, M5, M10 and M12.
//!
//! Keys. Table `attribution`: rows programs; columns `time`, `cycles`, `utilisation`, one for each
//! resource with stall cycles, and `other`. All are summands of the natural logarithm of the ratio
//! of times, in percent: `time` is `cycles` and `utilisation` together, and `cycles` are the
//! resources and `other`. Figure `attribution`.

use super::plan::Pair;
use super::sweep::Runs;
use super::views::{Draft, bars};
use crate::frame::interval;
use crate::study::StudyError;
use consort_core::mapping::analysis::{Attribution, Resource, attribute};
use consort_report::{Axis, Cell, Column, Figure, Table};

/// Change of a pair from one mapping to another.
#[derive(Clone, Copy)]
pub(in crate::studies) struct Change<'a> {
    pub runs: &'a Runs,
    pub pair: Pair,
    pub from: &'a str,
    pub to: &'a str,
}

/// Resources whose stall cycles the simulation counts.
const RESOURCES: [Resource; 6] = [
    Resource::L1d,
    Resource::L1i,
    Resource::L2,
    Resource::MemoryPath,
    Resource::BranchPredictor,
    Resource::Tlb,
];

/// Parts that add up to the time: utilisation, the resources and what is left.
const PARTS: usize = RESOURCES.len() + 2;

impl Change<'_> {
    /// Attributions of a program of the pair, seed by seed.
    fn attributions(&self, place: usize) -> Vec<Attribution> {
        let from = self.runs.both(self.pair, self.from);
        let both = from.iter().zip(self.runs.both(self.pair, self.to));
        let usage = |programs: &[consort_experiment::Repeated]| self.runs.usage(&programs[place]);
        both.filter_map(|(from, to)| attribute(&usage(from), &usage(to)))
            .collect()
    }

    /// Table `attribution`.
    pub fn table(&self) -> Result<Table, StudyError> {
        let column = |key: &str, title: &str| Column::with_unit(key, title, "log %");
        let mut columns = vec![column("time", "Time"), column("cycles", "Cycles")];
        columns.push(column("utilisation", "Utilisation"));
        columns.extend(RESOURCES.iter().map(|r| column(r.name(), r.name())));
        columns.push(column("other", "Other cycles"));
        let title = format!(
            "From {} to {}: parts of the logarithm of the ratio of times, above 0 where slower",
            self.from, self.to
        );
        let mut table = Table::new("attribution", &title, columns)?;
        for (place, program) in self.pair.iter().enumerate() {
            let found = self.attributions(place);
            let of = |value: fn(&Attribution) -> f64| over_seeds(&found, value);
            let mut cells = vec![of(|a| a.time), of(|a| a.cycles)];
            cells.extend(parts(&found));
            table.push(program, cells)?;
        }
        Ok(table)
    }

    /// Figure `attribution`.
    pub fn figure(&self) -> Result<Figure, StudyError> {
        let columns: Vec<[Cell; PARTS]> = (0..self.pair.len())
            .map(|place| parts(&self.attributions(place)))
            .collect();
        let series = |(n, name): (usize, &str)| {
            let cells = columns.iter().map(|parts| parts[n].clone());
            (name.to_owned(), cells.collect())
        };
        let series: Vec<(String, Vec<Cell>)> =
            names().into_iter().enumerate().map(series).collect();
        let title = format!("From {} to {}, by resource", self.from, self.to);
        let draft = Draft {
            key: "attribution",
            title: &title,
            text: "Parts sum to the logarithm of the ratio of times; above 0 they make the second \
                   mapping slower.",
            category: "Program",
        };
        let axis = Axis::linear("Part of the log ratio of times", Some("%"));
        let groups = self.pair.map(str::to_owned).to_vec();
        bars(draft, self.runs.seeds, (axis, 0.0), groups, &series)
    }
}

fn names() -> [&'static str; PARTS] {
    let [a, b, c, d, e, f] = RESOURCES.map(Resource::name);
    ["utilisation", a, b, c, d, e, f, "other cycles"]
}

fn over_seeds(found: &[Attribution], value: impl Fn(&Attribution) -> f64) -> Cell {
    interval(&found.iter().map(|a| 100.0 * value(a)).collect::<Vec<_>>())
}

/// Parts in the order of [`names`].
fn parts(found: &[Attribution]) -> [Cell; PARTS] {
    let of = |value: fn(&Attribution) -> f64| over_seeds(found, value);
    let resource = |r: Resource| over_seeds(found, |a| a.resources.get(&r).copied().unwrap_or(0.0));
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
