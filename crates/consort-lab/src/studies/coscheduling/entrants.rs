//! The schedulers that are compared, and their choice of a round by simulated trials.

use super::AloneMeasures;
use RoundMethod::Fair;
use consort_core::ProgramId;
use consort_core::coscheduling::{
    Chooser, ChooserStep, ContendedResource, CoscheduleSlot, EnergyDelayBaseline, FairChooser,
    GangChooser, GreedyChooser, PdpaChooser, ProgramMeasure, RoundObjective, SecondaryCondition,
    SlotTrial,
};
use consort_experiment::ExperimentError;
use consort_experiment::slots::{NEAR_LINEAR, SearchGoal, SlotMembers, SlotTrials};
use std::collections::BTreeMap;
use {ContendedResource::*, EnergyDelayBaseline::*, RoundObjective::*, SecondaryCondition::*};
use {SlotMembers::All, SlotMembers::Gaining};

/// Distance from linear scaling within which a program runs alone under the fair schedulers and
/// `pdpa`, and the α of the secondary condition: the source's 10 percent.
pub(super) const ALPHA: f64 = NEAR_LINEAR;
/// Efficiencies between which `pdpa` is content; the policy's own.
const PDPA: (f64, f64) = (0.5, 0.9);

/// A scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct RoundScheduler {
    /// Key of its rows; the policy with its options.
    pub name: &'static str,
    pub how: RoundMethod,
}

/// Way in which a scheduler finds its round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) enum RoundMethod {
    Gang,
    Fair(ContendedResource, EnergyDelayBaseline, SecondaryCondition),
    Greedy,
    Pdpa,
    /// Search of all rounds.
    Exhaustive(SearchGoal),
}

/// All schedulers, the gang first; after [`MAIN`] come other readings of the fair ones and [`CEILINGS`].
pub(in crate::studies) const ENTRANTS: [RoundScheduler; 16] = [
    scheduler("gang", RoundMethod::Gang),
    scheduler("fair-mis", Fair(Misses, Gang, Printed)),
    scheduler("fair-com", Fair(Bus, Gang, Printed)),
    scheduler("greedy", RoundMethod::Greedy),
    scheduler("pdpa", RoundMethod::Pdpa),
    scheduler("oracle-coschedule", search(EnergyDelay, Gaining)),
    scheduler("oracle-coschedule:members=all", search(EnergyDelay, All)),
    scheduler(
        "oracle-coschedule:members=all,objective=throughput",
        search(Throughput, All),
    ),
    scheduler("fair-mis:secondary=reversed", Fair(Misses, Gang, Reversed)),
    scheduler("fair-mis:secondary=off", Fair(Misses, Gang, Off)),
    scheduler("fair-mis:better-than=slot", Fair(Misses, Slot, Printed)),
    scheduler("fair-com:secondary=reversed", Fair(Bus, Gang, Reversed)),
    scheduler("fair-com:secondary=off", Fair(Bus, Gang, Off)),
    scheduler("fair-com:better-than=slot", Fair(Bus, Slot, Printed)),
    scheduler(
        "oracle-coschedule:objective=speedup",
        search(Speedup, Gaining),
    ),
    scheduler(
        "oracle-coschedule:members=all,objective=speedup",
        search(Speedup, All),
    ),
];

/// The baseline.
pub(in crate::studies) const GANG: usize = 0;
/// Schedulers that figures show.
pub(in crate::studies) const MAIN: std::ops::Range<usize> = 1..8;
/// Schedulers that the source compares.
pub(super) const SOURCES: std::ops::Range<usize> = 1..6;
/// The fair schedulers as the source has them.
pub(super) const FAIR: [usize; 2] = [1, 2];
/// The source's oracle.
#[cfg(test)]
pub(super) const ORACLE: usize = 5;
/// The best round by energy-delay of all rounds.
pub(super) const BOUND: usize = 6;
/// The best rounds by what H4 prints: of those that fair schedulers accept, and of all.
pub(super) const CEILINGS: [usize; 2] = [14, 15];
/// Every reading of the fair schedulers, in the order of [`READING_NAMES`].
pub(super) const READINGS: [[usize; 4]; 2] = [[1, 8, 9, 10], [2, 11, 12, 13]];
/// Names of the readings: of the secondary condition, and of the standard that a newcomer's slot
/// must beat.
pub(super) const READING_NAMES: [&str; 4] = ["printed", "reversed", "off", "slot"];

const fn search(objective: RoundObjective, members: SlotMembers) -> RoundMethod {
    RoundMethod::Exhaustive(SearchGoal { objective, members })
}

const fn scheduler(name: &'static str, how: RoundMethod) -> RoundScheduler {
    RoundScheduler { name, how }
}

impl RoundScheduler {
    /// Name in a legend.
    pub fn short(&self) -> &'static str {
        match self.how {
            RoundMethod::Exhaustive(goal) => match (goal.members, goal.objective) {
                (Gaining, Speedup) => "oracle, speedup",
                (Gaining, _) => "oracle",
                (All, Speedup) => "bound, speedup",
                (All, EnergyDelay) => "bound, energy-delay",
                (All, Throughput) => "bound, throughput",
            },
            _ => self.name,
        }
    }

    /// Its chooser; `None` if it searches all rounds.
    pub fn chooser(&self) -> Option<Box<dyn Chooser>> {
        Some(match self.how {
            RoundMethod::Gang => Box::new(GangChooser::default()),
            Fair(order, standard, secondary) => {
                Box::new(FairChooser::new(order, standard, secondary, ALPHA))
            }
            RoundMethod::Greedy => Box::new(GreedyChooser::default()),
            RoundMethod::Pdpa => Box::new(PdpaChooser::new(PDPA.0, PDPA.1)),
            RoundMethod::Exhaustive(_) => return None,
        })
    }

    /// True if it gives up rounds that prove worse than the gang.
    pub fn is_fair(&self) -> bool {
        matches!(self.how, Fair(..))
    }
}

/// Lets the scheduler choose a round by trials, among the programs that are known alone;
/// `None` if it searches all rounds.
///
/// # Errors
/// Those of the trials.
pub(in crate::studies) fn choose<E>(
    scheduler: &RoundScheduler,
    cores: u32,
    alone: &AloneMeasures,
    mut trial: impl FnMut(&CoscheduleSlot) -> Result<SlotTrial, E>,
) -> Result<Option<ChosenRound>, E> {
    let Some(mut chooser) = scheduler.chooser() else {
        return Ok(None);
    };
    // Programs that scale nearly linearly are sampled on one core, too, and left alone.
    let leaves_linear = scheduler.is_fair() || scheduler.how == RoundMethod::Pdpa;
    let throughput = |id, cores| {
        let measure = alone.get(&(id, cores));
        measure.map_or(0.0, ProgramMeasure::throughput)
    };
    let (mut linear, mut others) = (Vec::new(), Vec::new());
    for (&(id, with), &measure) in alone {
        if with != cores {
            continue;
        }
        let least = (1.0 - ALPHA) * f64::from(cores) * throughput(id, 1);
        if leaves_linear && throughput(id, cores) >= least {
            linear.push(CoscheduleSlot::alone(id, cores));
        } else {
            others.push((id, measure));
        }
    }
    let sampled: &[u32] = if leaves_linear { &[cores, 1] } else { &[cores] };
    let samples = (linear.len() + others.len()) * sampled.len();
    chooser.begin(cores, &others);
    let (mut last, mut tried) = (None, 0);
    let mut slots = loop {
        match chooser.next(last.as_ref()) {
            ChooserStep::Try(slot) => {
                last = Some(trial(&slot)?);
                // The samples are counted above, once for each program.
                let is_sample = matches!(slot.teams[..], [team] if sampled.contains(&team.cores));
                tried += usize::from(!is_sample);
            }
            ChooserStep::Done(slots) => break slots,
        }
    };
    slots.extend(linear);
    Ok(Some(ChosenRound {
        slots,
        quanta: samples + tried,
    }))
}

/// Round that a scheduler chose.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct ChosenRound {
    pub slots: Vec<CoscheduleSlot>,
    /// Quanta that the choice took: samples alone on all cores and on one, and trials.
    pub quanta: usize,
}

/// Trials of one run, each simulated once.
pub(super) struct TrialCache<'a> {
    trials: SlotTrials<'a>,
    alone: &'a AloneMeasures,
    shared: BTreeMap<Vec<(ProgramId, u32)>, SlotTrial>,
}

impl<'a> TrialCache<'a> {
    pub(super) fn new(trials: SlotTrials<'a>, alone: &'a AloneMeasures) -> Self {
        Self {
            trials,
            alone,
            shared: BTreeMap::new(),
        }
    }

    /// See [`choose`].
    pub(super) fn choose(
        &mut self,
        scheduler: &RoundScheduler,
    ) -> Result<Option<ChosenRound>, ExperimentError> {
        let (cores, alone) = (self.trials.suite().cores(), self.alone);
        choose(scheduler, cores, alone, |slot| self.trial(slot))
    }

    fn trial(&mut self, slot: &CoscheduleSlot) -> Result<SlotTrial, ExperimentError> {
        // Every program alone was measured before, with the seed of this run.
        if let [team] = slot.teams[..]
            && let Some(measure) = self.alone.get(&(team.program, team.cores))
        {
            return Ok(SlotTrial {
                slot: slot.clone(),
                measures: vec![*measure],
            });
        }
        let teams = slot.teams.iter().map(|team| (team.program, team.cores));
        let key: Vec<(ProgramId, u32)> = teams.collect();
        if let Some(trial) = self.shared.get(&key) {
            return Ok(trial.clone());
        }
        let trial = self.trials.run(slot)?;
        self.shared.insert(key, trial.clone());
        Ok(trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_schedulers_match_their_names() {
        assert_eq!(ENTRANTS[GANG].how, RoundMethod::Gang);
        assert_eq!(FAIR.map(|i| ENTRANTS[i].name), ["fair-mis", "fair-com"]);
        for (readings, first) in READINGS.iter().zip(FAIR) {
            assert_eq!(readings[0], first);
            for scheduler in readings.map(|i| ENTRANTS[i]) {
                assert!(scheduler.name.starts_with(ENTRANTS[first].name));
                assert!(scheduler.is_fair());
            }
        }
        assert!(MAIN.into_iter().all(|i| i < 3 || !ENTRANTS[i].is_fair()));
        let goal = |objective, members| SearchGoal { objective, members };
        let how = [ORACLE, BOUND, CEILINGS[0], CEILINGS[1]].map(|i| ENTRANTS[i].how);
        let goals = [EnergyDelay, Speedup].map(|by| [goal(by, Gaining), goal(by, All)]);
        assert_eq!(
            how,
            [goals[0][0], goals[0][1], goals[1][0], goals[1][1]].map(RoundMethod::Exhaustive)
        );
    }
}
