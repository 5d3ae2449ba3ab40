//! Values of a grid's rounds, relative to the gang.

use super::entrants::ENTRANTS;
use super::grid::{CoscheduleGrid, SlotMeasures};
use crate::frame::{interval_cell, mean_ratio_cell};
use consort_core::ProgramId;
use consort_core::coscheduling::{fairness, speedup, thread_throughput_gain};
use consort_data::Cell;

/// A value of a program in its slot.
pub(in crate::studies) type SlotValue = fn(&SlotMeasures<'_>) -> f64;

/// Programs that a mean is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum MeanScope {
    /// Programs that share their slot.
    Sharing,
    /// The whole suite.
    All,
}

/// Local speedup: fairness times the gain of thread throughput.
pub(in crate::studies) fn local_speedup(place: &SlotMeasures<'_>) -> f64 {
    let cores = |n: u32, quanta| (n, quanta);
    let new = cores(place.measure.cores, place.slot.quanta());
    let fair = fairness(new, cores(place.gang.cores, 1));
    speedup(fair, thread_throughput_gain(place.measure, place.gang))
}

/// Energy per instruction over the gang's.
pub(in crate::studies) fn energy(place: &SlotMeasures<'_>) -> f64 {
    let per_work = |m: &consort_core::coscheduling::ProgramMeasure| m.energy_j / m.instructions;
    per_work(place.measure) / per_work(place.gang)
}

/// Energy-delay per unit of work over the gang's.
pub(in crate::studies) fn energy_delay(place: &SlotMeasures<'_>) -> f64 {
    let quanta = place.slot.quanta();
    place.measure.energy_delay(quanta) / place.gang.energy_delay(1)
}

/// Power per core that the program has, W.
pub(in crate::studies) fn power_per_thread(place: &SlotMeasures<'_>) -> f64 {
    place.measure.power_w() / f64::from(place.measure.cores)
}

/// Returns true where the program shares its slot.
pub(in crate::studies) fn shares(place: &SlotMeasures<'_>) -> bool {
    place.slot.teams.len() > 1
}

impl CoscheduleGrid {
    /// A value of a program in every run.
    pub fn values(&self, entrant: usize, id: ProgramId, value: SlotValue) -> Vec<f64> {
        let of = |run| Some(value(&self.place(run, entrant, id)?));
        (0..self.runs()).filter_map(of).collect()
    }

    /// Mean of a program's value over runs.
    pub fn mean(&self, entrant: usize, id: ProgramId, value: SlotValue) -> Cell {
        interval_cell(&self.values(entrant, id, value))
    }

    /// Geometric mean of a ratio over runs.
    pub fn ratio(&self, entrant: usize, id: ProgramId, value: SlotValue) -> Cell {
        mean_ratio_cell(&self.values(entrant, id, value))
    }

    /// Values of programs in a run.
    fn of_run(&self, run: usize, entrant: usize, over: MeanScope, value: SlotValue) -> Vec<f64> {
        let place = |id| self.place(run, entrant, id);
        let places = self.suite().ids().filter_map(place);
        let counts = |place: &SlotMeasures<'_>| over == MeanScope::All || shares(place);
        places.filter(counts).map(|place| value(&place)).collect()
    }

    /// Geometric mean of a ratio over programs, then over runs.
    pub fn ratio_over(&self, entrant: usize, over: MeanScope, value: SlotValue) -> Cell {
        let mean = |run| {
            let values = self.of_run(run, entrant, over, value);
            let logs: f64 = values.iter().map(|v| libm::log(*v)).sum();
            (!values.is_empty()).then(|| libm::exp(logs / values.len() as f64))
        };
        let means: Vec<f64> = (0..self.runs()).filter_map(mean).collect();
        if means.is_empty() {
            return Cell::missing("no program shares its slot");
        }
        mean_ratio_cell(&means)
    }

    /// Reduction against the gang, over runs: 1 less the mean over programs of what is relative to
    /// the gang.
    pub fn reduction(&self, entrant: usize, over: MeanScope, value: SlotValue) -> Cell {
        self.of_means(entrant, over, value, |mean| 1.0 - mean)
    }

    /// Arithmetic mean over programs, then over runs.
    pub fn mean_over(&self, entrant: usize, over: MeanScope, value: SlotValue) -> Cell {
        self.of_means(entrant, over, value, |mean| mean)
    }

    fn of_means(
        &self,
        entrant: usize,
        over: MeanScope,
        value: SlotValue,
        of: fn(f64) -> f64,
    ) -> Cell {
        let mean = |run| {
            let values = self.of_run(run, entrant, over, value);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then(|| of(mean))
        };
        let means: Vec<f64> = (0..self.runs()).filter_map(mean).collect();
        if means.is_empty() {
            return Cell::missing("no program shares its slot");
        }
        interval_cell(&means)
    }

    /// Mean over runs of a value of a scheduler's outcomes.
    pub fn outcomes(&self, entrant: usize, of: impl Fn(&super::grid::RoundOutcome) -> f64) -> Cell {
        let values = (0..self.runs()).map(|run| of(self.outcome(run, entrant)));
        interval_cell(&values.collect::<Vec<_>>())
    }

    /// Names of the programs, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |id| self.suite().name(id).map(str::to_owned);
        self.suite().ids().filter_map(name).collect()
    }

    /// Programs that some run under a scheduler has in a slot with others.
    pub fn sharing(&self, entrant: usize) -> Vec<ProgramId> {
        let in_run = |run, id| self.place(run, entrant, id).is_some_and(|p| shares(&p));
        let some = |id: &ProgramId| (0..self.runs()).any(|run| in_run(run, *id));
        self.suite().ids().filter(some).collect()
    }
}

/// Name of a scheduler's rows.
pub(in crate::studies) fn name(entrant: usize) -> &'static str {
    ENTRANTS[entrant].name
}
