//! The best round of all: every split of the programs into slots and of the cores among a slot's
//! programs.
//!
//! Source: Bhadauria and McKee, ICS 2010, the oracle that their schedulers are compared with. A
//! program is in exactly one slot of a round.
//!
//! A slot lasts as many quanta as it has programs, so a round of n programs lasts n quanta however
//! they are put together, and what each program gains depends on its own slot alone: the objective
//! is a sum over slots. The best slot of each set of programs is found by trying every split of the
//! cores, the best round by dynamic programming over sets: the first program of a set is in some
//! slot, and what remains is a smaller set.
//!
//! Usage: [`ExhaustiveSlots::new`] with the measure of every program alone on all cores,
//! [`ExhaustiveSlots::record_trial`] with the trial of each of [`ExhaustiveSlots::slots`], then [`ExhaustiveSlots::best`].
//! Pitfalls: slots of which nothing is known are not chosen; cores may stay idle, since the fewest
//! of them can be best. Only programs that are given are searched: a caller that leaves out those
//! that scale nearly linearly and asks for [`ExhaustiveSlots::exclude_harmful_slots`] has the source's oracle, else it
//! is a bound.

use super::measure::ProgramMeasure;
use super::objective::RoundObjective;
use super::slot::{CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;

/// Programs at most: the search takes 3 to their number steps.
pub const MOST_PROGRAMS: usize = 16;
/// Slots at most: n programs on c cores make (n + c)! / (n! c!) − 1.
pub const MOST_SLOTS: u64 = 500_000;

/// Reason why there can be no search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExhaustiveError {
    /// Too many programs.
    #[error("{programs} programs, where an exhaustive search takes at most {MOST_PROGRAMS}")]
    Programs {
        /// Number of programs.
        programs: usize,
    },
    /// Too many slots.
    #[error(
        "{programs} programs on {cores} cores make {slots} slots, where an exhaustive search takes \
         at most {MOST_SLOTS}; take fewer programs or cores"
    )]
    Slots {
        /// Number of programs.
        programs: usize,
        /// Number of cores.
        cores: u32,
        /// Number of slots that they make.
        slots: u64,
    },
}

/// A round and its worth.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRound {
    /// The slots; each program is in exactly one.
    pub slots: Vec<CoscheduleSlot>,
    /// Worth by the objective, the mean over programs.
    pub value: f64,
}

/// The search, with the slots that are known so far.
#[doc(alias = "oracle")]
#[derive(Clone, Debug)]
pub struct ExhaustiveSlots {
    objective: RoundObjective,
    /// True where slots are left out in which a program is worse off than in the gang.
    sparing: bool,
    gang: Vec<(ProgramId, ProgramMeasure)>,
    /// Every split of the cores among so many programs, in order, by number of programs.
    splits: Vec<Vec<Vec<u32>>>,
    /// Cost by set of programs and number of the split; infinite where it is not known.
    costs: Vec<Vec<f64>>,
}

impl ExhaustiveSlots {
    /// Search among programs that do `gang` alone on all `cores`.
    ///
    /// # Errors
    /// More programs than [`MOST_PROGRAMS`] or more slots than [`MOST_SLOTS`].
    pub fn new(
        cores: u32,
        gang: &[(ProgramId, ProgramMeasure)],
        objective: RoundObjective,
    ) -> Result<Self, ExhaustiveError> {
        let programs = gang.len();
        if programs > MOST_PROGRAMS {
            return Err(ExhaustiveError::Programs { programs });
        }
        let slots = slots_of(programs, cores);
        if slots > MOST_SLOTS {
            return Err(ExhaustiveError::Slots {
                programs,
                cores,
                slots,
            });
        }
        let most = programs.min(cores as usize);
        let splits: Vec<_> = (0..=most).map(|parts| splits(parts, cores)).collect();
        let count = |set: usize| splits.get(set.count_ones() as usize).map_or(0, Vec::len);
        let costs = (0..1_usize << programs).map(|set| vec![f64::INFINITY; count(set)]);
        Ok(Self {
            objective,
            sparing: false,
            gang: gang.to_vec(),
            costs: costs.collect(),
            splits,
        })
    }

    /// Leaves out slots in which some program is worse off, by the objective, than in the gang.
    #[must_use]
    pub fn exclude_harmful_slots(mut self) -> Self {
        self.sparing = true;
        self
    }

    /// Every slot that there is, programs in the order in which they were given.
    pub fn slots(&self) -> impl Iterator<Item = CoscheduleSlot> + '_ {
        let of = move |set: usize| {
            let splits = self.splits.get(set.count_ones() as usize).into_iter();
            splits.flatten().map(move |split| self.slot(set, split))
        };
        (1..self.costs.len()).flat_map(of)
    }

    /// Takes the trial of a slot, in place of an earlier one. Slots that are none of this search's
    /// are passed over.
    pub fn record_trial(&mut self, trial: &SlotTrial) {
        let Some((set, split)) = self.place(&trial.slot) else {
            return;
        };
        let members = self.gang.iter().filter_map(|(program, gang)| {
            let measure = trial.measure(*program)?;
            Some(self.objective.cost(measure, trial.slot.quanta(), gang))
        });
        let costs: Vec<f64> = members.collect();
        let barred = self.sparing && !costs.iter().all(|&cost| self.objective.is_no_worse(cost));
        self.costs[set][split] = if barred {
            f64::INFINITY
        } else {
            costs.iter().sum()
        };
    }

    /// The best round of slots that are known; none where they leave a program out.
    pub fn best(&self) -> Option<ScheduleRound> {
        let cheapest: Vec<(usize, f64)> =
            self.costs.iter().map(|costs| least_cost(costs)).collect();
        let mut rounds = vec![(0, 0.0); self.costs.len()];
        for set in 1..rounds.len() {
            let (mut slot, mut cost) = (0, f64::INFINITY);
            for part in parts_with_first(set) {
                let sum = cheapest[part].1 + rounds[set ^ part].1;
                if sum < cost {
                    (slot, cost) = (part, sum);
                }
            }
            rounds[set] = (slot, cost);
        }
        let (mut left, (_, cost)) = (self.costs.len() - 1, rounds[self.costs.len() - 1]);
        let mut slots = Vec::new();
        while left > 0 && cost.is_finite() {
            let part = rounds[left].0;
            let split = &self.splits[part.count_ones() as usize][cheapest[part].0];
            slots.push(self.slot(part, split));
            left ^= part;
        }
        let programs = self.gang.len().max(1) as f64;
        let value = self.objective.value(cost / programs);
        cost.is_finite().then_some(ScheduleRound { slots, value })
    }

    fn slot(&self, set: usize, split: &[u32]) -> CoscheduleSlot {
        let members = (0..self.gang.len()).filter(|i| set >> i & 1 == 1);
        let team = |(i, &cores): (usize, &u32)| ProgramTeam {
            program: self.gang[i].0,
            cores,
        };
        CoscheduleSlot {
            teams: members.zip(split).map(team).collect(),
        }
    }

    /// Set and number of the split of a slot.
    fn place(&self, slot: &CoscheduleSlot) -> Option<(usize, usize)> {
        let (mut set, mut split) = (0, Vec::new());
        for (i, (program, _)) in self.gang.iter().enumerate() {
            if let Some(cores) = slot.cores_of(*program) {
                set |= 1 << i;
                split.push(cores);
            }
        }
        let splits = self.splits.get(split.len())?;
        let whole = split.len() == slot.teams.len() && !split.is_empty();
        let at = splits.binary_search(&split).ok().filter(|_| whole)?;
        Some((set, at))
    }
}

/// Number of slots that n programs make on c cores: one less than (n + c)! / (n! c!).
pub fn slots_of(programs: usize, cores: u32) -> u64 {
    let mut count: u128 = 1;
    for i in 1..=programs as u128 {
        count = count.saturating_mul(u128::from(cores) + i) / i;
    }
    u64::try_from(count - 1).unwrap_or(u64::MAX)
}

/// Every split of at most `cores` cores into so many parts of at least one, in order.
fn splits(parts: usize, cores: u32) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for part in 1..=parts {
        let later = (parts - part) as u32;
        let longer = |split: Vec<u32>| {
            let left = cores - split.iter().sum::<u32>() - later;
            (1..=left).map(move |last| [&split[..], &[last]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// The least and its place.
fn least_cost(costs: &[f64]) -> (usize, f64) {
    let known = costs.iter().copied().enumerate();
    known
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((0, f64::INFINITY))
}

/// Every part of a set that has the set's first member.
fn parts_with_first(set: usize) -> impl Iterator<Item = usize> {
    let first = set & set.wrapping_neg();
    let rest = set ^ first;
    let next = move |&part: &usize| (part != 0).then(|| (part - 1) & rest);
    std::iter::successors(Some(rest), next).map(move |part| part | first)
}

#[cfg(test)]
mod tests;
