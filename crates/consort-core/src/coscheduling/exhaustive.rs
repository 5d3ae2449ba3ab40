//! Search for the best round over every split of the programs into slots and of the cores among a
//! slot's programs.
//!
//! Source: Bhadauria and McKee, ICS 2010, the oracle with which their schedulers are compared. A
//! program is in exactly one slot of a round.
//!
//! A slot lasts as many quanta as it has programs, so a round of n programs lasts n quanta in any
//! arrangement, and the gain of each program depends on its own slot alone: the objective is a sum
//! over slots. The best slot of each set of programs is found by trying every split of the cores,
//! the best round by dynamic programming over sets: the first program of a set is in some slot, and
//! the rest is a smaller set.
//!
//! Call [`ExhaustiveSlots::new`] with the measure of every program alone on all cores,
//! [`ExhaustiveSlots::record_trial`] with the trial of each of [`ExhaustiveSlots::slots`], then
//! [`ExhaustiveSlots::best`]. Slots without a trial are not chosen. Cores may stay idle, since
//! fewer can be best. Only the given programs are searched: a caller that leaves out programs that
//! scale nearly linearly and calls [`ExhaustiveSlots::exclude_harmful_slots`] has the source's
//! oracle, otherwise the result is a bound.

use crate::coscheduling::measure::ProgramMeasure;
use crate::coscheduling::objective::RoundObjective;
use crate::coscheduling::slot::{CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;

/// Most programs, because the search takes 3 to their number steps.
pub const MOST_PROGRAMS: usize = 16;
/// Most slots; n programs on c cores make (n + c)! / (n! c!) − 1.
pub const MOST_SLOTS: u64 = 500_000;

/// Reason why a search is too large.
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

/// A round with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRound {
    /// The slots; each program is in exactly one.
    pub slots: Vec<CoscheduleSlot>,
    /// Value by the objective, the mean over programs.
    pub value: f64,
}

/// An exhaustive search, with the slots known so far.
#[doc(alias = "oracle")]
#[derive(Clone, Debug)]
pub struct ExhaustiveSlots {
    objective: RoundObjective,
    /// By what slots that make a program worse off than in the gang are left out, if they are.
    sparing: Option<RoundObjective>,
    gang: Vec<(ProgramId, ProgramMeasure)>,
    /// Splits of the cores by number of programs, each list sorted.
    splits: Vec<Vec<Vec<u32>>>,
    /// Cost by set of programs and index of the split; infinite if unknown.
    costs: Vec<Vec<f64>>,
}

impl ExhaustiveSlots {
    /// Prepares a search among programs with their measures alone on all `cores`.
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
            sparing: None,
            gang: gang.to_vec(),
            costs: costs.collect(),
            splits,
        })
    }

    /// Leaves out slots that make a program worse off than in the gang by an objective, which need
    /// not be that of the search.
    #[must_use]
    pub fn exclude_harmful_slots(mut self, by: RoundObjective) -> Self {
        self.sparing = Some(by);
        self
    }

    /// Every possible slot, with programs in the given order.
    pub fn slots(&self) -> impl Iterator<Item = CoscheduleSlot> + '_ {
        (1..self.costs.len()).flat_map(move |set| {
            let splits = self.splits.get(set.count_ones() as usize).into_iter();
            splits.flatten().map(move |split| self.slot(set, split))
        })
    }

    /// Records the trial of a slot and replaces an earlier one. Slots outside this search are
    /// ignored.
    pub fn record_trial(&mut self, trial: &SlotTrial) {
        let Some((set, split)) = self.place(&trial.slot) else {
            return;
        };
        let costs = |objective: RoundObjective| {
            let members = self.gang.iter().filter_map(move |(program, gang)| {
                let measure = trial.measure(*program)?;
                Some(objective.cost(measure, trial.slot.quanta(), gang))
            });
            members.collect::<Vec<f64>>()
        };
        let barred = self
            .sparing
            .is_some_and(|by| !costs(by).iter().all(|&cost| by.is_no_worse(cost)));
        self.costs[set][split] = if barred {
            f64::INFINITY
        } else {
            costs(self.objective).iter().sum()
        };
    }

    /// The best round of known slots; `None` if no such round contains every program.
    pub fn best(&self) -> Option<ScheduleRound> {
        // Index and cost of the best split of each set of programs.
        let mut cheapest: Vec<(usize, f64)> = Vec::with_capacity(self.costs.len());
        for costs in &self.costs {
            let known = costs.iter().copied().enumerate();
            let least = known.min_by(|a, b| a.1.total_cmp(&b.1));
            cheapest.push(least.unwrap_or((0, f64::INFINITY)));
        }
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

    /// Set of the programs and index of the split of a slot.
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

/// Number of slots of n programs on c cores: one less than (n + c)! / (n! c!).
pub fn slots_of(programs: usize, cores: u32) -> u64 {
    let mut count: u128 = 1;
    for i in 1..=programs as u128 {
        count = count.saturating_mul(u128::from(cores) + i) / i;
    }
    u64::try_from(count - 1).unwrap_or(u64::MAX)
}

/// Every split of at most `cores` cores into parts of at least one, sorted.
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

/// Every part of a set that contains the set's first member.
fn parts_with_first(set: usize) -> impl Iterator<Item = usize> {
    let first = set & set.wrapping_neg();
    let rest = set ^ first;
    let next = move |&part: &usize| (part != 0).then(|| (part - 1) & rest);
    std::iter::successors(Some(rest), next).map(move |part| part | first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coscheduling::testing::{Load, World, id};
    use crate::coscheduling::{
        Chooser, ChooserStep, ContendedResource, EnergyDelayBaseline, FairChooser, GangChooser,
        GreedyChooser, PdpaChooser, SecondaryCondition,
    };
    use proptest::prelude::*;

    fn world(cores: u32, loads: &[(f64, f64)]) -> World {
        let load = |&(scaling, weight): &(f64, f64)| Load { scaling, weight };
        World {
            cores,
            loads: loads.iter().map(load).collect(),
        }
    }

    /// The search with everything known.
    fn searched(world: &World, objective: RoundObjective) -> ExhaustiveSlots {
        let mut search = ExhaustiveSlots::new(world.cores, &world.rising(), objective).unwrap();
        for slot in search.slots().collect::<Vec<_>>() {
            search.record_trial(&world.run(&slot));
        }
        search
    }

    fn worth(world: &World, slots: &[CoscheduleSlot], objective: RoundObjective) -> f64 {
        let trials: Vec<SlotTrial> = slots.iter().map(|slot| world.run(slot)).collect();
        objective.round_value(&trials, &world.rising().into_iter().collect())
    }

    /// Returns true if `a` is at least as good as `b`, except for rounding.
    fn as_good(objective: RoundObjective, a: f64, b: f64) -> bool {
        let slack = 1e-9 * b.abs();
        match objective {
            RoundObjective::EnergyDelay => a <= b + slack,
            RoundObjective::Throughput | RoundObjective::Speedup => a >= b - slack,
        }
    }

    /// Visits every round: puts one program after the other into each slot or a new one, with any
    /// number of free cores.
    fn every_round(
        world: &World,
        next: usize,
        slots: &mut Vec<CoscheduleSlot>,
        visit: &mut dyn FnMut(&[CoscheduleSlot]),
    ) {
        if next == world.loads.len() {
            return visit(slots);
        }
        let program = id(next);
        for at in 0..=slots.len() {
            if at == slots.len() {
                slots.push(CoscheduleSlot::default());
            }
            for cores in 1..=world.cores - slots[at].cores() {
                slots[at].teams.push(ProgramTeam { program, cores });
                every_round(world, next + 1, slots, visit);
                slots[at].teams.pop();
            }
        }
        slots.pop();
    }

    fn loads(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((1.0f64..8.0, 0.0f64..1.0), 1..=most)
    }

    fn objectives() -> impl Strategy<Value = RoundObjective> {
        prop::sample::select(vec![
            RoundObjective::EnergyDelay,
            RoundObjective::Throughput,
            RoundObjective::Speedup,
        ])
    }

    /// Slots at which a chooser ends.
    fn round(world: &World, chooser: &mut dyn Chooser) -> Vec<CoscheduleSlot> {
        chooser.begin(world.cores, &world.rising());
        let mut last = None;
        loop {
            match chooser.next(last.take().as_ref()) {
                ChooserStep::Try(slot) => last = Some(world.run(&slot)),
                ChooserStep::Done(slots) => return slots,
            }
        }
    }

    fn choosers() -> Vec<Box<dyn Chooser>> {
        let fair = |order| {
            Box::new(FairChooser::new(
                order,
                EnergyDelayBaseline::Gang,
                SecondaryCondition::Off,
                0.1,
            )) as Box<dyn Chooser>
        };
        vec![
            Box::new(GangChooser::default()),
            fair(ContendedResource::Misses),
            fair(ContendedResource::Bus),
            Box::new(GreedyChooser::default()),
            Box::new(PdpaChooser::new(0.7, 0.95)),
        ]
    }

    proptest! {
        #[test]
        fn no_other_round_is_better(
            cores in 1u32..5, loads in loads(4), objective in objectives(),
        ) {
            let world = world(cores, &loads);
            let best = searched(&world, objective).best().unwrap();
            let mut naive = None;
            every_round(&world, 0, &mut Vec::new(), &mut |slots| {
                let value = worth(&world, slots, objective);
                let better = |than: f64| !as_good(objective, than, value);
                if naive.is_none_or(better) {
                    naive = Some(value);
                }
            });
            let naive = naive.unwrap();
            prop_assert!((best.value - naive).abs() <= 1e-9 * naive.abs(), "{} {}", best.value, naive);
            let value = worth(&world, &best.slots, objective);
            prop_assert!((best.value - value).abs() <= 1e-9 * value.abs());
        }

        #[test]
        fn no_chooser_finds_a_better_round(
            cores in 1u32..9, loads in loads(6), objective in objectives(),
        ) {
            let world = world(cores, &loads);
            let best = searched(&world, objective).best().unwrap();
            for mut chooser in choosers() {
                let slots = round(&world, chooser.as_mut());
                let value = worth(&world, &slots, objective);
                prop_assert!(as_good(objective, best.value, value), "{best:?} {slots:?} {value}");
            }
        }

        #[test]
        fn each_program_is_in_one_slot(
            cores in 1u32..9, loads in loads(6), objective in objectives(),
        ) {
            let world = world(cores, &loads);
            let search = searched(&world, objective);
            let best = search.best().unwrap();
            let mut all: Vec<u32> = { best.slots.iter().flat_map(|s| &s.teams) }
                .map(|team| team.program.0)
                .collect();
            all.sort_unstable();
            prop_assert_eq!(all, (1..=loads.len() as u32).collect::<Vec<_>>());
            prop_assert!(best.slots.iter().all(|slot| slot.cores() <= cores));
            prop_assert_eq!(search.slots().count() as u64, slots_of(loads.len(), cores));
            let known = search.costs.iter().flatten();
            prop_assert!(known.skip(1).all(|cost| cost.is_finite()));
        }
    }

    #[test]
    fn programs_of_half_the_cores_share_a_slot() {
        let best = searched(
            &world(8, &[(4.0, 0.0), (4.0, 0.0)]),
            RoundObjective::EnergyDelay,
        );
        let best = best.best().unwrap();
        // Two quanta for half of the energy each.
        assert_eq!(best.value, 0.25);
        let cores: Vec<u32> = best.slots[0].teams.iter().map(|team| team.cores).collect();
        assert_eq!((best.slots.len(), cores), (1, vec![4, 4]));
    }

    /// By hand: the second program halves the speed of the first. On six cores and two, for two
    /// quanta, the first does 6/2 · 2/8 = 0.75 times its work in the gang, the second 2 · 2/2 = 2
    /// times: 1.375 in the mean. On no number of cores next to the second does the first do as much
    /// as in the gang.
    #[test]
    fn harmful_slots_are_excluded_on_request() {
        let foes = world(8, &[(8.0, 0.0), (2.0, 1.0)]);
        let best = |mut search: ExhaustiveSlots| {
            for slot in search.slots().collect::<Vec<_>>() {
                search.record_trial(&foes.run(&slot));
            }
            search.best().unwrap()
        };
        let new = || ExhaustiveSlots::new(8, &foes.rising(), RoundObjective::Throughput).unwrap();
        let (any, spared) = (
            best(new()),
            best(new().exclude_harmful_slots(RoundObjective::Throughput)),
        );
        assert_eq!((any.slots.len(), any.value), (1, 1.375));
        assert_eq!((spared.slots.len(), spared.value), (2, 1.0));
    }

    #[test]
    fn unknown_slot_is_not_chosen() {
        let world = world(8, &[(4.0, 0.0), (4.0, 0.0)]);
        let mut search =
            ExhaustiveSlots::new(8, &world.rising(), RoundObjective::Throughput).unwrap();
        assert_eq!(search.best(), None);
        let alone = [
            CoscheduleSlot::alone(id(0), 8),
            CoscheduleSlot::alone(id(1), 8),
        ];
        alone
            .iter()
            .for_each(|slot| search.record_trial(&world.run(slot)));
        assert_eq!(search.best().unwrap().slots, alone);
    }

    #[test]
    fn later_trial_replaces_the_earlier() {
        let world = world(8, &[(4.0, 0.0), (4.0, 0.0)]);
        let mut search = searched(&world, RoundObjective::Throughput);
        let pair = search.best().unwrap().slots;
        let mut trial = world.run(&pair[0]);
        trial.measures.iter_mut().for_each(|m| m.instructions = 0.0);
        search.record_trial(&trial);
        assert_ne!(search.best().unwrap().slots, pair);
    }

    #[test]
    fn foreign_trials_are_ignored() {
        let world = world(4, &[(4.0, 0.0), (4.0, 0.0)]);
        let mut search =
            ExhaustiveSlots::new(4, &world.rising()[..1], RoundObjective::Throughput).unwrap();
        let pair = CoscheduleSlot {
            teams: [0, 1]
                .map(|i| ProgramTeam {
                    program: id(i),
                    cores: 2,
                })
                .into(),
        };
        for slot in [
            pair,
            CoscheduleSlot::alone(id(1), 4),
            CoscheduleSlot::alone(id(0), 5),
            CoscheduleSlot::default(),
        ] {
            let trial = SlotTrial {
                measures: vec![ProgramMeasure::default(); slot.teams.len()],
                slot,
            };
            search.record_trial(&trial);
        }
        assert_eq!(search.best(), None);
    }

    #[test]
    fn searches_beyond_the_bounds_are_refused() {
        let gang = |n: u32| {
            (1..=n)
                .map(|i| (ProgramId(i), ProgramMeasure::default()))
                .collect::<Vec<_>>()
        };
        let new = |n, cores| ExhaustiveSlots::new(cores, &gang(n), RoundObjective::default());
        assert_eq!(new(12, 8).unwrap().slots().count(), 125_969);
        assert_eq!(
            new(17, 1).unwrap_err(),
            ExhaustiveError::Programs { programs: 17 }
        );
        let text = new(12, 16).unwrap_err().to_string();
        assert!(
            text.starts_with("12 programs on 16 cores make 30421754 slots"),
            "{text}"
        );
        assert_eq!(slots_of(16, u32::MAX), u64::MAX);
    }

    #[test]
    fn empty_search_has_an_empty_round() {
        let search = ExhaustiveSlots::new(4, &[], RoundObjective::default()).unwrap();
        assert_eq!(search.best().unwrap().slots, []);
    }
}
