//! Gap between co-schedulers and exhaustive search.
//!
//! Small suites of PARSEC on the machine of the co-schedulers' source. All slots of four programs
//! can be simulated ([`SuiteSlotTrials`]), so the best round is known, not estimated. Schedulers
//! choose by the same simulations, which also give the value of the round that each ends with. So
//! they do for the searches by estimates, `oracle-coschedule`, which stand for the best in the
//! studies of co-scheduling, where there are too many slots to simulate all.
//!
//! Pitfall: the best round is the best by trials of one seed that are shorter than those of the
//! studies of co-scheduling; [`BestRoundGaps::again`] shows the part of it that longer ones with
//! another seed take away.

use super::slots::SuiteSlotTrials;
use super::{PolicyGaps, gap_figure, gap_table, join_texts, list_gaps, missing_percent};
use crate::simulate::map_jobs;
use crate::simulate::mixes::draw_sets;
use crate::studies::coscheduling::PUBLISHED;
use crate::studies::coscheduling::entrants::{ENTRANTS, MAIN, RoundMethod, RoundScheduler};
use crate::studies::coscheduling::{part_error, quantum, suite_of};
use crate::study::{StudyError, StudyOutput};
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, ExhaustiveSlots, ProgramMeasure, RoundObjective};
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;
use consort_experiment::slots::{SearchGoal, SlotTrials, Suite, TrialLengths, best_rounds};

/// Programs of a suite, at the quick and the full scale.
const PROGRAMS: [usize; 2] = [3, 4];
/// Suites that are drawn.
const SUITES: [usize; 2] = [1, 12];
/// Time for which slots are measured, s.
const LENGTH_S: [f64; 2] = [0.2, 0.4];
/// Time for which they run before that, s.
const WARM_S: f64 = 0.1;
/// Distance of the seed of repeated measurements from that of the trials. Seeds of runs follow the
/// study's own, so none is as far away.
const AGAIN: u64 = 1 << 32;
/// Objectives by which rounds are compared, with the keys of rows.
const OBJECTIVES: [(&str, RoundObjective); 2] = [
    ("energy-delay", RoundObjective::EnergyDelay),
    ("throughput", RoundObjective::Throughput),
];

/// The schedulers, the gang first.
fn schedulers() -> &'static [RoundScheduler] {
    &ENTRANTS[..MAIN.end]
}

/// Results of one suite.
struct SuiteGaps {
    /// Number of slots of the suite.
    slots: usize,
    /// Number of slots of the round of each scheduler.
    rounds: Vec<usize>,
    /// Best round by objective.
    found: Vec<BestRoundGaps>,
}

/// The best round by an objective, and the gaps of others to it.
struct BestRoundGaps {
    /// Gaps by scheduler, percent.
    gaps: Vec<f64>,
    /// Slots of the best round.
    slots: usize,
    /// Gap of the best round when it is measured for longer with another seed, percent.
    again: f64,
}

/// Draws suites, simulates all of their slots, lets every scheduler choose, and adds the gaps.
pub(super) fn add_coschedules(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let suites = search_suites(context)?;
    let rows = gap_rows(&suites);
    let of_objective = |key: &'static str| rows.iter().filter(move |row| row.group == key);
    let average = |value: &dyn Fn(&SuiteGaps) -> f64| {
        let values: Vec<f64> = suites.iter().map(value).collect();
        mean(&values).unwrap_or(f64::NAN)
    };
    let mut round_slots = Vec::new();
    for (n, scheduler) in schedulers().iter().enumerate() {
        let slots = average(&|suite| suite.rounds[n] as f64);
        round_slots.push(format!("{} {slots:.1}", scheduler.name));
    }
    for (n, (key, _)) in OBJECTIVES.iter().enumerate() {
        let slots = average(&|suite| suite.found[n].slots as f64);
        round_slots.push(format!("the best by {key} {slots:.1}"));
    }
    let by_objective =
        OBJECTIVES.map(|(key, _)| format!("by {key} {}", list_gaps(of_objective(key))));
    output.notes.push(format!(
        "Xeon E5320, {} suites of programs of PARSEC with eight threads each, all {:.0} \
         slots of each simulated. What rounds are worse than the best of all, mean and worst: {}. \
         Slots of a round on average: {}. oracle-coschedule estimates slots, since twelve programs \
         have too many to simulate, and simulates those of the rounds that it takes for the best; \
         with members=all its gap, by its own objective, is what that costs; else it leaves programs \
         that scale nearly linearly alone and lets no program lose. The best rounds have nearly all programs in one slot, where all \
         quanta are everyone's and what each cannot use of the machine goes to others; greedy packs \
         programs at the numbers of cores that suit them by themselves, the fair ones add a program \
         only where every member's energy-delay stays below that in the gang. The best rounds are the best by the trials by which \
         they were chosen: measured for longer with another seed, their energy-delay changes by \
         {:+.2} % and their throughput by {:+.2} %.",
        suites.len(),
        average(&|suite| suite.slots as f64),
        join_texts(by_objective),
        join_texts(round_slots),
        average(&|suite| suite.found[0].again),
        -average(&|suite| suite.found[1].again),
    ));
    let title = "Rounds of co-schedulers against the best of all: energy-delay above the least, \
                 throughput missing to the most, over suites";
    output.tables.push(gap_table("coschedules", title, &rows)?);
    for (key, _) in OBJECTIVES {
        let title = format!("Xeon E5320, small suites: {key} against the best round");
        let text = "Every slot is simulated. Workloads are suites.";
        let figure = format!("coschedules-{key}");
        let figure = gap_figure(&figure, &title, text, 1, of_objective(key))?;
        output.figures.push(figure);
    }
    Ok(())
}

/// Rows `OBJECTIVE/SCHEDULER`.
fn gap_rows(suites: &[SuiteGaps]) -> Vec<PolicyGaps> {
    let mut rows = Vec::new();
    for (objective, (key, _)) in OBJECTIVES.iter().enumerate() {
        for (n, scheduler) in schedulers().iter().enumerate() {
            let gaps = suites.iter().map(|suite| suite.found[objective].gaps[n]);
            rows.push(PolicyGaps::new(key, scheduler.name, gaps));
        }
    }
    rows
}

fn search_suites(context: &ExperimentContext<'_>) -> Result<Vec<SuiteGaps>, StudyError> {
    let [size, count] = [PROGRAMS, SUITES].map(|[quick, full]| context.by_scale(quick, full));
    let mut suites = Vec::new();
    for mut drawn in draw_sets(context.seed(), PUBLISHED.len(), size, count) {
        drawn.sort_unstable();
        let names: Vec<&str> = drawn.iter().map(|&n| PUBLISHED[n].name).collect();
        suites.push(suite_of(&names.join("+"), &names)?);
    }
    let suites = suites.into_iter();
    suites
        .map(|suite| SuiteContext { suite, context }.search())
        .collect()
}

/// One suite and the context of its simulation.
struct SuiteContext<'a> {
    suite: Suite,
    context: &'a ExperimentContext<'a>,
}

impl SuiteContext<'_> {
    fn lengths(&self) -> TrialLengths {
        TrialLengths {
            warm_s: WARM_S,
            length_s: self.context.by_scale(LENGTH_S[0], LENGTH_S[1]),
        }
    }

    fn simulate(
        &self,
        slots: &[CoscheduleSlot],
        lengths: TrialLengths,
        seed: u64,
    ) -> Result<SuiteSlotTrials, StudyError> {
        let trials = SlotTrials::new(&self.suite, lengths, seed);
        let reported = map_jobs(self.context, slots, |slot| {
            trials.run(slot).map_err(part_error("slots"))
        })?;
        Ok(SuiteSlotTrials::new(self.suite.cores(), reported))
    }

    fn search(&self) -> Result<SuiteGaps, StudyError> {
        // Every set of the programs with every split of the cores, idle ones among them.
        let programs = self.suite.ids().map(|id| (id, ProgramMeasure::default()));
        let programs: Vec<(ProgramId, ProgramMeasure)> = programs.collect();
        let all = ExhaustiveSlots::new(self.suite.cores(), &programs, RoundObjective::default());
        let all: Vec<CoscheduleSlot> = all.map_err(part_error("slots"))?.slots().collect();
        let slots = self.simulate(&all, self.lengths(), self.context.seed())?;
        let rounds = self.choose_rounds(&slots)?;
        let mut found = Vec::new();
        for (_, objective) in OBJECTIVES {
            let best = slots.best(objective);
            let best = best.map_err(part_error("exhaustive search"))?;
            let mut gaps = Vec::new();
            for round in &rounds {
                let value = slots
                    .value(round, objective)
                    .map_err(part_error("rounds"))?;
                gaps.push(gap_percent(objective, value, best.value));
            }
            let again = self.measure_again(&slots, &best.slots, objective)?;
            found.push(BestRoundGaps {
                gaps,
                slots: best.slots.len(),
                again: gap_percent(objective, again, best.value),
            });
        }
        Ok(SuiteGaps {
            slots: all.len(),
            rounds: rounds.iter().map(Vec::len).collect(),
            found,
        })
    }

    /// The round of every scheduler.
    fn choose_rounds(
        &self,
        slots: &SuiteSlotTrials,
    ) -> Result<Vec<Vec<CoscheduleSlot>>, StudyError> {
        let goals = schedulers()
            .iter()
            .filter_map(|scheduler| match scheduler.how {
                RoundMethod::Exhaustive(goal) => Some(goal),
                _ => None,
            });
        let goals: Vec<SearchGoal> = goals.collect();
        let estimated = best_rounds(&self.suite, &goals, &[], self.lengths(), self.context);
        let estimated = estimated.map_err(part_error("search by estimates"))?;
        let mut estimated = estimated.into_iter();
        let round = |scheduler: &RoundScheduler| match scheduler.how {
            RoundMethod::Exhaustive(_) => {
                let found = estimated.next();
                Ok(found.map_or_else(Vec::new, |found| found.round.slots))
            }
            _ => slots.choose(scheduler).map_err(part_error(scheduler.name)),
        };
        schedulers().iter().map(round).collect()
    }

    /// Value of a round with another seed, for as long as in the studies of co-scheduling.
    fn measure_again(
        &self,
        slots: &SuiteSlotTrials,
        round: &[CoscheduleSlot],
        objective: RoundObjective,
    ) -> Result<f64, StudyError> {
        let gang = slots.gang();
        let gang = gang
            .keys()
            .map(|&id| CoscheduleSlot::alone(id, self.suite.cores()));
        let needed: Vec<CoscheduleSlot> = gang.chain(round.iter().cloned()).collect();
        let seed = self.context.seed().wrapping_add(AGAIN);
        let slots = self.simulate(&needed, quantum(self.context), seed)?;
        slots.value(round, objective).map_err(part_error("rounds"))
    }
}

/// Gap of a value to the best, percent; above 0 if the value is worse.
fn gap_percent(objective: RoundObjective, value: f64, best: f64) -> f64 {
    match objective {
        RoundObjective::EnergyDelay => 100.0 * (value / best - 1.0),
        RoundObjective::Throughput | RoundObjective::Speedup => missing_percent(value, best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::coscheduling::entrants::GANG;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn no_scheduler_finds_more_than_the_best() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let suites = search_suites(&context).unwrap();
        // Three programs on eight cores: 11! / (3! 8!) − 1.
        assert_eq!((suites.len(), suites[0].slots), (1, 164));
        let rows = gap_rows(&suites);
        assert_eq!(rows.len(), 2 * schedulers().len());
        for row in &rows {
            assert!(row.gaps_percent.iter().all(|gap| *gap >= -1e-9), "{row:?}");
        }
        let mean = |group: &str, policy: &str| {
            let mut rows = rows.iter();
            let row = rows.find(|row| row.group == group && row.policy == policy);
            row.unwrap().mean_percent()
        };
        for (key, oracle) in [
            ("energy-delay", "oracle-coschedule:members=all"),
            (
                "throughput",
                "oracle-coschedule:members=all,objective=throughput",
            ),
        ] {
            // Estimates may be a little wrong; blind turns are further off.
            assert!(mean(key, oracle) < 10.0 && mean(key, oracle) < mean(key, "gang"));
        }
        assert_eq!(
            (schedulers()[GANG].name, suites[0].rounds[GANG]),
            ("gang", 3)
        );
    }

    #[test]
    fn worse_values_have_gaps_above_0() {
        assert!((gap_percent(RoundObjective::EnergyDelay, 0.6, 0.5) - 20.0).abs() < 1e-9);
        assert_eq!(gap_percent(RoundObjective::Throughput, 1.5, 2.0), 25.0);
    }
}
