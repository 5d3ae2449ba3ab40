//! Gap between co-schedulers and exhaustive search.
//!
//! Small suites of PARSEC on the machine of the co-schedulers' source. Of four programs all slots
//! can be simulated ([`SuiteSlotTrials`]), so the best round is known, not estimated. The schedulers ask for
//! trials and are told the same simulations; the round that each ends with is worth what these say.
//! So are those of the searches by estimates, `oracle-coschedule`, which stand for the best in the
//! studies of co-scheduling, where there are too many slots to simulate all.
//!
//! Pitfall: the best round is the best by trials of one seed that are shorter than those of the
//! studies of co-scheduling; [`BestRoundGaps::again`] shows the part of it that longer ones with another
//! seed take away.

use super::chosen::chosen;
use super::gaps::{PolicyGaps, missing_percent};
use super::slots::{SuiteSlotTrials, all};
use crate::simulate::map_jobs;
use crate::simulate::mixes::draw_sets;
use crate::studies::coscheduling::PUBLISHED;
use crate::studies::coscheduling::entrants::{ENTRANTS, MAIN, RoundMethod, RoundScheduler};
use crate::studies::coscheduling::{part_error, quantum, suite_of};
use crate::study::StudyError;
use consort_core::coscheduling::{CoscheduleSlot, RoundObjective};
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
/// Distance of the seed of repeated measurements from that of the trials.
const AGAIN: u64 = 1 << 32;

/// Objectives by which rounds are compared, with the keys of rows.
pub(super) const OBJECTIVES: [(&str, RoundObjective); 2] = [
    ("energy-delay", RoundObjective::EnergyDelay),
    ("throughput", RoundObjective::Throughput),
];

/// All suites.
pub(super) struct Coschedules {
    suites: Vec<SuiteGaps>,
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

/// The schedulers, the gang first.
fn schedulers() -> &'static [RoundScheduler] {
    &ENTRANTS[..MAIN.end]
}

/// Draws suites, simulates all of their slots and lets every scheduler choose.
///
/// # Errors
/// What fails in a simulation.
pub(super) fn search(context: &ExperimentContext<'_>) -> Result<Coschedules, StudyError> {
    let suites = drawn(context)?.into_iter();
    let suites = suites.map(|suite| SuiteContext { suite, context }.searched());
    let suites = suites.collect::<Result<_, _>>()?;
    Ok(Coschedules { suites })
}

fn drawn(context: &ExperimentContext<'_>) -> Result<Vec<Suite>, StudyError> {
    let [size, count] = [PROGRAMS, SUITES].map(|[quick, full]| context.by_scale(quick, full));
    let suite = |mut drawn: Vec<usize>| {
        drawn.sort_unstable();
        let names: Vec<&str> = drawn.iter().map(|&at| PUBLISHED[at].name).collect();
        suite_of(&names.join("+"), &names)
    };
    let all = draw_sets(context.seed(), PUBLISHED.len(), size, count);
    all.into_iter().map(suite).collect()
}

/// One suite and the context of its simulation.
struct SuiteContext<'a> {
    suite: Suite,
    context: &'a ExperimentContext<'a>,
}

impl SuiteContext<'_> {
    fn quantum(&self) -> TrialLengths {
        TrialLengths {
            warm_s: WARM_S,
            length_s: self.context.by_scale(LENGTH_S[0], LENGTH_S[1]),
        }
    }

    fn simulated(
        &self,
        slots: &[CoscheduleSlot],
        length: TrialLengths,
        seed: u64,
    ) -> Result<SuiteSlotTrials, StudyError> {
        let trials = SlotTrials::new(&self.suite, length, seed);
        let reported = map_jobs(self.context, slots, |slot| {
            trials.run(slot).map_err(part_error("slots"))
        })?;
        Ok(SuiteSlotTrials::new(self.suite.cores(), reported))
    }

    fn searched(&self) -> Result<SuiteGaps, StudyError> {
        let all = all(&self.suite).map_err(part_error("slots"))?;
        let slots = self.simulated(&all, self.quantum(), self.context.seed())?;
        let rounds = self.rounds(&slots)?;
        let found = OBJECTIVES.map(|(_, objective)| self.found(&slots, &rounds, objective));
        Ok(SuiteGaps {
            slots: all.len(),
            rounds: rounds.iter().map(Vec::len).collect(),
            found: found.into_iter().collect::<Result<_, _>>()?,
        })
    }

    fn found(
        &self,
        slots: &SuiteSlotTrials,
        rounds: &[Vec<CoscheduleSlot>],
        objective: RoundObjective,
    ) -> Result<BestRoundGaps, StudyError> {
        let best = slots
            .best(objective)
            .map_err(part_error("exhaustive search"))?;
        let gap = |round: &Vec<CoscheduleSlot>| {
            let value = slots
                .value(round, objective)
                .map_err(part_error("rounds"))?;
            Ok(gap_percent(objective, value, best.value))
        };
        let again = self.again(slots, &best.slots, objective)?;
        Ok(BestRoundGaps {
            gaps: rounds.iter().map(gap).collect::<Result<_, StudyError>>()?,
            slots: best.slots.len(),
            again: gap_percent(objective, again, best.value),
        })
    }

    /// The round of every scheduler.
    fn rounds(&self, slots: &SuiteSlotTrials) -> Result<Vec<Vec<CoscheduleSlot>>, StudyError> {
        let quests = schedulers().iter().filter_map(|entrant| match entrant.how {
            RoundMethod::Exhaustive(quest) => Some(quest),
            _ => None,
        });
        let quests: Vec<SearchGoal> = quests.collect();
        let estimated = best_rounds(&self.suite, &quests, self.quantum(), self.context);
        let mut estimated = estimated
            .map_err(part_error("search by estimates"))?
            .into_iter();
        let round = |entrant: &RoundScheduler| match entrant.how {
            RoundMethod::Exhaustive(_) => {
                let found = estimated.next();
                Ok(found.map_or_else(Vec::new, |found| found.round.slots))
            }
            _ => chosen(entrant, self.suite.cores(), slots).map_err(part_error(entrant.name)),
        };
        schedulers().iter().map(round).collect()
    }

    /// Value of a round with another seed, for as long as in the studies of co-scheduling.
    fn again(
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
        let slots = self.simulated(&needed, quantum(self.context), seed)?;
        slots.value(round, objective).map_err(part_error("rounds"))
    }
}

/// Gap of a value to the best, percent.
fn gap_percent(objective: RoundObjective, value: f64, best: f64) -> f64 {
    match objective {
        RoundObjective::EnergyDelay => 100.0 * (value / best - 1.0),
        RoundObjective::Throughput => missing_percent(value, best),
    }
}

impl Coschedules {
    /// Rows `OBJECTIVE/SCHEDULER`.
    pub fn rows(&self) -> Vec<PolicyGaps> {
        let row = |at: usize, scheduler: usize| PolicyGaps {
            group: OBJECTIVES[at].0.to_owned(),
            policy: schedulers()[scheduler].name.to_owned(),
            gaps_percent: { self.suites.iter() }
                .map(|suite| suite.found[at].gaps[scheduler])
                .collect(),
        };
        let of = |at| (0..schedulers().len()).map(move |scheduler| (at, scheduler));
        { (0..OBJECTIVES.len()).flat_map(of) }
            .map(|(at, scheduler)| row(at, scheduler))
            .collect()
    }

    /// Number of suites, and mean number of slots of each.
    pub fn size(&self) -> (usize, f64) {
        (self.suites.len(), self.mean(|suite| suite.slots as f64))
    }

    /// Slots of a round on average, by scheduler, then of the best rounds by objective.
    pub fn slots(&self) -> Vec<(String, f64)> {
        let scheduler = |(at, entrant): (usize, &RoundScheduler)| {
            let slots = self.mean(|suite| suite.rounds[at] as f64);
            (entrant.name.to_owned(), slots)
        };
        let best = |(at, (key, _)): (usize, (&str, RoundObjective))| {
            let slots = self.mean(|suite| suite.found[at].slots as f64);
            (format!("the best by {key}"), slots)
        };
        let schedulers = schedulers().iter().enumerate().map(scheduler);
        schedulers
            .chain(OBJECTIVES.into_iter().enumerate().map(best))
            .collect()
    }

    /// Mean gaps that longer trials with another seed show of the best rounds, by objective,
    /// percent.
    pub fn again_percent(&self) -> [f64; 2] {
        [0, 1].map(|at| self.mean(|suite| suite.found[at].again))
    }

    fn mean(&self, value: impl Fn(&SuiteGaps) -> f64) -> f64 {
        let values: Vec<f64> = self.suites.iter().map(value).collect();
        mean(&values).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::coscheduling::entrants::GANG;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn no_scheduler_finds_more_than_there_is_and_the_gang_shares_nothing() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let coschedules = search(&context).unwrap();
        // Three programs on eight cores: 11! / (3! 8!) − 1.
        assert_eq!(coschedules.size(), (1, 164.0));
        let rows = coschedules.rows();
        assert_eq!(rows.len(), 2 * schedulers().len());
        for row in &rows {
            assert!(row.gaps_percent.iter().all(|gap| *gap >= -1e-9), "{row:?}");
        }
        let mean = |group: &str, policy: &str| {
            let row = rows
                .iter()
                .find(|row| row.group == group && row.policy == policy);
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
        assert_eq!(coschedules.slots()[GANG], ("gang".to_owned(), 3.0));
    }

    #[test]
    fn gaps_are_above_0_where_a_value_is_worse() {
        assert!((gap_percent(RoundObjective::EnergyDelay, 0.6, 0.5) - 20.0).abs() < 1e-9);
        assert_eq!(gap_percent(RoundObjective::Throughput, 1.5, 2.0), 25.0);
    }
}
