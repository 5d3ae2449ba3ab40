//! The rounds that every scheduler finds, their measures relative to the gang, and whole runs.

use super::entrants::{
    ChosenRound, ENTRANTS, GANG, MAIN, READINGS, RoundMethod, RoundScheduler, TrialCache,
};
use super::{CoschedulingAloneRuns, part_error, quantum, run_seeds};
use crate::frame::{interval_cell, mean_ratio_cell, paired_ratio_cell};
use crate::simulate::{map_jobs, run_every_case};
use crate::studies::output::join;
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{
    CoscheduleSlot, ProgramMeasure, RoundObjective, SlotTrial, fairness, speedup,
    thread_throughput_gain,
};
use consort_data::Cell;
use consort_experiment::slots::{BestRound, SearchGoal, SlotTrials, Suite, best_rounds};
use consort_experiment::{
    AloneWork, Contender, Experiment, ExperimentContext, ExperimentError, RunResult,
};
use consort_sim::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Distance of the seeds of the last measurements from those of trials: a scheduler must not be
/// judged by the noise that it chose by.
const MEASURED: u64 = 1 << 32;
/// The operating system beneath the policies of whole runs.
const OS: &str = "linux";

/// Outcome of a scheduler's round in one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoundOutcome {
    /// Every slot, measured.
    pub(super) trials: Vec<SlotTrial>,
    /// Quanta until the round was found.
    pub(super) quanta: usize,
    /// Overall energy-delay of the round that was found, over the gang's.
    pub(super) overall: f64,
    /// True if that round was given up for the gang.
    pub(super) reverted: bool,
}

/// A slot and the measures of a program in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotMeasures<'a> {
    pub(super) slot: &'a CoscheduleSlot,
    pub(super) measure: &'a ProgramMeasure,
    /// The program alone on all cores, measured in the same run.
    pub(super) gang: &'a ProgramMeasure,
}

/// A value of a program in its slot.
pub(super) type SlotValue = fn(&SlotMeasures<'_>) -> f64;

/// Local speedup: fairness times the gain of thread throughput.
pub(super) fn local_speedup(place: &SlotMeasures<'_>) -> f64 {
    let new = (place.measure.cores, place.slot.quanta());
    let fair = fairness(new, (place.gang.cores, 1));
    speedup(fair, thread_throughput_gain(place.measure, place.gang))
}

/// Energy per instruction over the gang's.
pub(super) fn energy(place: &SlotMeasures<'_>) -> f64 {
    let per_work = |m: &ProgramMeasure| m.energy_j / m.instructions;
    per_work(place.measure) / per_work(place.gang)
}

/// Energy-delay per unit of work over the gang's.
pub(super) fn energy_delay(place: &SlotMeasures<'_>) -> f64 {
    let quanta = place.slot.quanta();
    place.measure.energy_delay(quanta) / place.gang.energy_delay(1)
}

/// Power per core that the program has, W.
pub(super) fn power_per_thread(place: &SlotMeasures<'_>) -> f64 {
    place.measure.power_w() / f64::from(place.measure.cores)
}

/// True if the program shares its slot.
pub(super) fn shares(place: &SlotMeasures<'_>) -> bool {
    place.slot.teams.len() > 1
}

/// Programs that a mean is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeanScope {
    /// Programs that share their slot.
    Sharing,
    /// The whole suite.
    All,
}

/// Every scope with its name in the headline and in figures.
pub(super) const SCOPES: [(&str, &str, MeanScope); 2] = [
    (
        "co-scheduled programs",
        "programs that share",
        MeanScope::Sharing,
    ),
    ("whole suite", "whole suite", MeanScope::All),
];

/// Name of a scheduler's rows.
pub(super) fn name(entrant: usize) -> &'static str {
    ENTRANTS[entrant].name
}

/// The rounds of every scheduler in every run.
pub(crate) struct CoscheduleGrid {
    pub(super) alone: Arc<CoschedulingAloneRuns>,
    /// Rounds that the exhaustive searches found, in the order of the schedulers.
    pub(super) searches: Vec<BestRound>,
    /// Outcomes by run, then scheduler.
    outcomes: Vec<Vec<RoundOutcome>>,
    /// Every program alone on all cores, by run.
    gang: Vec<BTreeMap<ProgramId, ProgramMeasure>>,
}

impl CoscheduleGrid {
    /// Returns the rounds of this context, which the studies share.
    pub(super) fn get_or_run(context: &ExperimentContext<'_>) -> Result<Arc<Self>, StudyError> {
        context.get_or_compute("rounds of co-schedules", || {
            let alone = CoschedulingAloneRuns::get_or_run(context)?;
            let goals = ENTRANTS.iter().filter_map(|entrant| match entrant.how {
                RoundMethod::Exhaustive(goal) => Some(goal),
                _ => None,
            });
            let goals: Vec<SearchGoal> = goals.collect();
            let chosen = choose_rounds(&alone, context).map_err(part_error("trials"))?;
            let met = chosen.iter().flatten().flatten();
            let met: Vec<CoscheduleSlot> = met.flat_map(|one| one.slots.clone()).collect();
            let searches = best_rounds(&alone.suite, &goals, &met, quantum(context), context)
                .map_err(part_error("exhaustive search"))?;
            let mut rounds = Vec::new();
            for run in chosen {
                // The searches' rounds go to the schedulers that have no choice of their own.
                let mut found = searches.iter().map(|search| ChosenRound {
                    slots: search.round.slots.clone(),
                    quanta: 0,
                });
                let run = run
                    .into_iter()
                    .filter_map(|chosen| chosen.or_else(|| found.next()));
                rounds.push(run.collect());
            }
            let mut grid = Self {
                alone,
                searches,
                outcomes: Vec::new(),
                gang: Vec::new(),
            };
            grid.measure(&rounds, context)?;
            Ok(grid)
        })
    }

    /// Measures every round, by run and scheduler.
    fn measure(
        &mut self,
        rounds: &[Vec<ChosenRound>],
        context: &ExperimentContext<'_>,
    ) -> Result<(), StudyError> {
        let mut jobs: Vec<(u64, &CoscheduleSlot)> = Vec::new();
        for (seed, chosen) in run_seeds(context).into_iter().zip(rounds) {
            let slots = chosen.iter().flat_map(|chosen| &chosen.slots);
            jobs.extend(slots.map(|slot| (seed.wrapping_add(MEASURED), slot)));
        }
        let trials = map_jobs(context, &jobs, |(seed, slot)| {
            let trial = SlotTrials::new(self.suite(), quantum(context), *seed).run(slot);
            trial.map_err(part_error("rounds"))
        })?;
        // The trials have the order of the jobs: run, then scheduler, then slot.
        let mut trials = trials.into_iter();
        for chosen in rounds {
            let trials: Vec<Vec<SlotTrial>> = { chosen.iter() }
                .map(|one| trials.by_ref().take(one.slots.len()).collect())
                .collect();
            let alone = trials[GANG].iter().filter_map(|trial| {
                Some((trial.slot.teams.first()?.program, *trial.measures.first()?))
            });
            let gang: BTreeMap<ProgramId, ProgramMeasure> = alone.collect();
            let outcome = |(entrant, one): (usize, &ChosenRound)| {
                let overall = RoundObjective::EnergyDelay.round_value(&trials[entrant], &gang);
                // As the policies do with `revert` on the live machine.
                let reverted = ENTRANTS[entrant].is_fair() && overall > 1.0;
                RoundOutcome {
                    trials: trials[if reverted { GANG } else { entrant }].clone(),
                    quanta: one.quanta,
                    overall,
                    reverted,
                }
            };
            self.outcomes
                .push(chosen.iter().enumerate().map(outcome).collect());
            self.gang.push(gang);
        }
        Ok(())
    }

    /// The programs and the machine.
    pub(super) fn suite(&self) -> &Suite {
        &self.alone.suite
    }

    /// Number of runs.
    pub(super) fn runs(&self) -> usize {
        self.outcomes.len()
    }

    /// Outcome of a scheduler in a run.
    pub(super) fn outcome(&self, run: usize, entrant: usize) -> &RoundOutcome {
        &self.outcomes[run][entrant]
    }

    /// Slot and measures of a program under a scheduler in a run.
    pub(super) fn place(
        &self,
        run: usize,
        entrant: usize,
        id: ProgramId,
    ) -> Option<SlotMeasures<'_>> {
        let gang = self.gang[run].get(&id)?;
        let mut trials = self.outcome(run, entrant).trials.iter();
        trials.find_map(|trial| {
            Some(SlotMeasures {
                slot: &trial.slot,
                measure: trial.measure(id)?,
                gang,
            })
        })
    }

    /// Name of a program.
    pub(super) fn program(&self, id: ProgramId) -> &str {
        self.suite().name(id).unwrap_or("?")
    }

    /// Names of the programs, in order.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.suite().ids().map(|id| self.program(id))
    }

    /// Programs that some run under a scheduler has in a slot with others.
    pub(super) fn sharing(&self, entrant: usize) -> Vec<ProgramId> {
        let shared = |run, id| self.place(run, entrant, id).is_some_and(|p| shares(&p));
        let some = |id: &ProgramId| (0..self.runs()).any(|run| shared(run, *id));
        self.suite().ids().filter(some).collect()
    }

    /// A value of a program in every run.
    pub(super) fn values(&self, entrant: usize, id: ProgramId, value: SlotValue) -> Vec<f64> {
        let places = (0..self.runs()).filter_map(|run| self.place(run, entrant, id));
        places.map(|place| value(&place)).collect()
    }

    /// Mean over programs in each run, then the cell of these means.
    fn over_programs(
        &self,
        (entrant, scope, value): (usize, MeanScope, SlotValue),
        mean: fn(&[f64]) -> f64,
        cell: fn(&[f64]) -> Cell,
    ) -> Cell {
        let mut means = Vec::new();
        for run in 0..self.runs() {
            let places = { self.suite().ids() }.filter_map(|id| self.place(run, entrant, id));
            let counted = places.filter(|place| scope == MeanScope::All || shares(place));
            let values: Vec<f64> = counted.map(|place| value(&place)).collect();
            // A run in which no program shares its slot has no mean.
            if !values.is_empty() {
                means.push(mean(&values));
            }
        }
        match means.is_empty() {
            true => Cell::missing("no program shares its slot"),
            false => cell(&means),
        }
    }

    /// Geometric mean of a ratio over programs, then over runs.
    pub(super) fn ratio_over(&self, entrant: usize, scope: MeanScope, value: SlotValue) -> Cell {
        let mean = |values: &[f64]| {
            let logs: f64 = values.iter().map(|v| libm::log(*v)).sum();
            libm::exp(logs / values.len() as f64)
        };
        self.over_programs((entrant, scope, value), mean, mean_ratio_cell)
    }

    /// Reduction against the gang, over runs: 1 less the mean over programs of a value that is
    /// relative to the gang.
    pub(super) fn reduction(&self, entrant: usize, scope: MeanScope, value: SlotValue) -> Cell {
        let mean = |values: &[f64]| 1.0 - values.iter().sum::<f64>() / values.len() as f64;
        self.over_programs((entrant, scope, value), mean, interval_cell)
    }

    /// Arithmetic mean over programs, then over runs.
    pub(super) fn mean_over(&self, entrant: usize, scope: MeanScope, value: SlotValue) -> Cell {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        self.over_programs((entrant, scope, value), mean, interval_cell)
    }

    /// Mean over runs of a value of a scheduler's outcomes.
    pub(super) fn outcomes(&self, entrant: usize, value: impl Fn(&RoundOutcome) -> f64) -> Cell {
        let values = (0..self.runs()).map(|run| value(self.outcome(run, entrant)));
        interval_cell(&values.collect::<Vec<_>>())
    }

    /// A row for each program, with a cell for each of these schedulers.
    pub(super) fn by_program(
        &self,
        entrants: &(impl Iterator<Item = usize> + Clone),
        cell: impl Fn(usize, ProgramId) -> Cell,
    ) -> Vec<(&str, Vec<Cell>)> {
        let cells = |id| entrants.clone().map(|entrant| cell(entrant, id)).collect();
        self.suite()
            .ids()
            .map(|id| (self.program(id), cells(id)))
            .collect()
    }

    /// Series of a figure: the cells of each of these schedulers for each program.
    pub(super) fn by_scheduler(
        &self,
        entrants: impl Iterator<Item = usize>,
        cell: impl Fn(usize, ProgramId) -> Cell,
    ) -> Vec<(&'static str, Vec<Cell>)> {
        let cells = |entrant| self.suite().ids().map(|id| cell(entrant, id)).collect();
        entrants
            .map(|entrant| (ENTRANTS[entrant].short(), cells(entrant)))
            .collect()
    }

    /// Notes on the programs of fair co-schedules that are worse off than in the gang: in which
    /// runs, and by how much.
    pub(super) fn slower_programs_note(&self, entrant: usize) -> String {
        let mut losers = Vec::new();
        for id in self.suite().ids() {
            let places = (0..self.runs()).filter_map(|run| self.place(run, entrant, id));
            let speedups = places.filter(shares).map(|place| local_speedup(&place));
            let below: Vec<f64> = speedups.filter(|speedup| *speedup < 1.0).collect();
            if let Some(least) = below.iter().copied().reduce(f64::min) {
                losers.push(format!(
                    "{} in {} of {} runs, {least:.3} at least",
                    self.program(id),
                    below.len(),
                    self.runs()
                ));
            }
        }
        let name = name(entrant);
        if losers.is_empty() {
            return format!(
                "{name}: no member of a co-schedule has a local speedup below 1 in any run."
            );
        }
        format!(
            "{name}: members of co-schedules with a local speedup below 1: {}. The application \
             chooser heeds energy-delay, not speed, so a member may become slower while its energy \
             falls by more; and the thread chooser lets who gives a core lose down to its \
             energy-delay in the gang.",
            losers.join("; ")
        )
    }
}

/// Series of a figure: the cells of the main schedulers for each of [`SCOPES`].
pub(super) fn by_scope(
    cell: impl Fn(usize, MeanScope) -> Cell,
) -> impl Iterator<Item = (&'static str, Vec<Cell>)> {
    MAIN.map(move |entrant| {
        let cells = SCOPES.map(|(.., scope)| cell(entrant, scope));
        (ENTRANTS[entrant].short(), cells.into())
    })
}

/// A row for each scheduler.
pub(super) fn scheduler_rows(
    cells: impl Fn(usize) -> Vec<Cell>,
) -> impl Iterator<Item = (&'static str, Vec<Cell>)> {
    (0..ENTRANTS.len()).map(move |entrant| (name(entrant), cells(entrant)))
}

/// The main schedulers, each with the text of a cell.
pub(super) fn main_texts(cell: impl Fn(usize) -> Cell) -> String {
    join(MAIN, |entrant| {
        format!("{} {}", name(entrant), cell(entrant).text())
    })
}

/// Lets every scheduler choose, by run and scheduler; searches have no choice.
fn choose_rounds(
    alone: &CoschedulingAloneRuns,
    context: &ExperimentContext<'_>,
) -> Result<Vec<Vec<Option<ChosenRound>>>, ExperimentError> {
    let runs = run_seeds(context);
    // Readings of one order begin with the same trials, so one job has them all.
    let is_reading = |i: &usize| READINGS.as_flattened().contains(i);
    let others = (0..ENTRANTS.len()).filter(|i| !is_reading(i));
    let groups: [Vec<usize>; 3] = [READINGS[0].to_vec(), READINGS[1].to_vec(), others.collect()];
    let mut jobs: Vec<(u64, usize, &Vec<usize>)> = Vec::new();
    for (run, &seed) in runs.iter().enumerate() {
        jobs.extend(groups.iter().map(|group| (seed, run, group)));
    }
    let reported = context.map(&jobs, |&(seed, run, group)| {
        let trials = SlotTrials::new(&alone.suite, quantum(context), seed);
        let mut known = TrialCache::new(trials, &alone.runs[run]);
        let each = group.iter().map(|&i| Ok((i, known.choose(&ENTRANTS[i])?)));
        each.collect::<Result<Vec<_>, ExperimentError>>()
    })?;
    let mut chosen = vec![vec![None; ENTRANTS.len()]; runs.len()];
    for ((_, run, _), reported) in jobs.iter().zip(reported) {
        for (entrant, round) in reported? {
            chosen[*run][entrant] = round;
        }
    }
    Ok(chosen)
}

/// Whole runs: every scheduler from its first sample on, until all programs have done their work.
/// Unlike in the grid the time to find a round counts, and the policies decide by noisy counters.
pub(super) struct CoschedulingRuns {
    /// Time of a program's work alone on all cores, s.
    pub(super) alone_s: f64,
    pub(super) runs: usize,
    /// Results by scheduler, the gang first, then run.
    results: Vec<Vec<RunResult>>,
}

impl CoschedulingRuns {
    /// Runs the gang and the main schedulers.
    pub(super) fn make(
        grid: &CoscheduleGrid,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
        let alone_s = context.by_scale(1.5, 60.0);
        let runs = context.by_scale(1, 2);
        let quantum_ms: u64 = context.by_scale(400, 2000);
        let suite = grid.suite();
        let workload = Workload {
            text: "PARSEC".to_owned(),
            entries: suite.programs().to_vec(),
        };
        let work = suite.ids().map(|id| AloneWork {
            instructions: alone_s
                * grid
                    .alone
                    .mean(id, suite.cores(), ProgramMeasure::throughput),
            alone_s,
        });
        let work: Vec<AloneWork> = work.collect();
        let contender = |entrant: usize| {
            let RoundScheduler { name, .. } = ENTRANTS[entrant];
            if ENTRANTS[entrant].chooser().is_some() {
                let text = format!("{name}:quantum={quantum_ms}");
                return Contender::new(&text, OS).map_err(part_error(name));
            }
            // A search has no policy, so its round is run as it is.
            let slots = grid.outcome(0, entrant).trials.iter();
            let slots: Vec<CoscheduleSlot> = slots.map(|trial| trial.slot.clone()).collect();
            Ok(Contender::from_slots(name, OS, &slots, quantum_ms))
        };
        let entrants = std::iter::once(GANG).chain(MAIN);
        let contenders: Vec<Contender> = entrants.map(contender).collect::<Result<_, _>>()?;
        let experiments = [Experiment::new(suite.chip(), workload, alone_s)];
        let run = |experiment: &Experiment, contender: &Contender, seed| {
            let run = experiment.run(contender, &work, seed, None);
            run.map_err(part_error("whole runs"))
        };
        let results = run_every_case(context, (&experiments, &contenders, runs), run)?;
        Ok(Self {
            alone_s,
            runs,
            results: results.chunks(runs).map(<[RunResult]>::to_vec).collect(),
        })
    }

    /// A value of a main scheduler's runs over that of the gang's, run by run.
    pub(super) fn over_gang(&self, entrant: usize, value: fn(&RunResult) -> f64) -> Cell {
        let values = |place: usize| self.results[place].iter().map(value).collect::<Vec<_>>();
        paired_ratio_cell(&values(entrant - MAIN.start + 1), &values(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::SEED;
    use super::super::entrants::{BOUND, CEILINGS, ORACLE};
    use super::*;
    use crate::testing::{made, workers};
    use consort_experiment::Scale;

    fn quick_grid() -> Arc<CoscheduleGrid> {
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ())
            .with_shared_results(&made());
        CoscheduleGrid::get_or_run(&context).unwrap()
    }

    /// The search uses other seeds than the measurement of its round, so that other schedulers may
    /// come near it; they do not pass it by more than that.
    #[test]
    fn no_scheduler_beats_the_search_but_by_chance() {
        let grid = quick_grid();
        for run in 0..grid.runs() {
            let overall = |entrant: usize| grid.outcome(run, entrant).overall;
            for (entrant, who) in ENTRANTS.iter().enumerate() {
                assert!(overall(BOUND) <= 1.05 * overall(entrant), "{}", who.name);
            }
            assert_eq!(overall(GANG), 1.0);
            assert!(overall(BOUND) <= 1.0 && overall(ORACLE) <= 1.0);
        }
    }

    /// The bound is of what H4 prints, over the rounds that the schedulers could choose from.
    #[test]
    fn ceilings_bound_printed_speedups() {
        let grid = quick_grid();
        let speedup = |entrant| {
            let cell = grid.ratio_over(entrant, MeanScope::All, local_speedup);
            cell.value().unwrap()
        };
        let [fair, any] = CEILINGS.map(speedup);
        for entrant in READINGS.into_iter().flatten().chain([ORACLE]) {
            assert!(speedup(entrant) <= 1.01 * fair, "{}", name(entrant));
        }
        for entrant in 0..ENTRANTS.len() {
            assert!(speedup(entrant) <= 1.01 * any, "{}", name(entrant));
        }
    }

    /// The oracle's programs lose nothing but by the difference of seeds.
    #[test]
    fn oracle_lets_no_program_lose() {
        let grid = quick_grid();
        for id in grid.suite().ids() {
            let relative = energy_delay(&grid.place(0, ORACLE, id).unwrap());
            assert!(relative < 1.05, "{id}: {relative}");
        }
    }

    #[test]
    fn fair_rounds_are_no_worse_than_the_gang() {
        let grid = quick_grid();
        for run in 0..grid.runs() {
            for entrant in 0..ENTRANTS.len() {
                let mut ids = grid.suite().ids();
                assert!(ids.all(|id| grid.place(run, entrant, id).is_some()));
            }
            for entrant in READINGS.map(|readings| readings[0]) {
                let outcome = grid.outcome(run, entrant);
                assert!(outcome.reverted || outcome.overall <= 1.0);
            }
        }
    }
}
