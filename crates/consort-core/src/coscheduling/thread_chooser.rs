//! The thread chooser: finds the number of cores of each member of a co-schedule.
//!
//! Source: Bhadauria and McKee, ICS 2010, section on the thread chooser.
//!
//! 1. The measure of each member with even cores is recorded.
//! 2. Members are tried with one core more and one fewer, in two quanta if their number is even and in
//!    three if it is odd: the pairs of giver and taker are the edges of a ring, and edges without a
//!    common member are tried at once. List 1 is each member's gain in energy-delay by one core more,
//!    list 2 each member's loss by one core fewer.
//! 3. The first of list 1 gets a core from the last of list 2, and so on down list 1, in at most
//!    two rounds. The search ends if the giver is worse off than in the gang, or if the overall
//!    energy-delay, the mean over members of energy-delay relative to the gang's, no longer falls.
//!
//! *Secondary condition* for taking a core ([`SecondaryCondition`]). The source prints Ir(t+1) /
//! (Ir(t)·(1 − α)) < (N+1)/N with α < 1 − N/(N+1), where Ir are the instructions of the whole chip
//! before and after and N the taker's cores before. The stated purpose is that a near-linear
//! program must not strip its neighbours, and that a core without a gain is not kept. As printed it
//! does the first: a chip that gains nearly as much as a linear taker alone would is refused. It
//! does not do the second: without any gain, 1 / (1 − α) < (N+1)/N holds for every α that is
//! allowed. With the comparison reversed it does the second and not the first.

use super::slot::{CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;
use std::collections::{BTreeMap, VecDeque};

/// Rounds of transfers, as in the source.
const ROUNDS: u32 = 2;

/// Reading of the secondary condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondaryCondition {
    /// The condition as printed.
    Printed,
    /// The condition with the comparison reversed.
    Reversed,
    /// No condition.
    Off,
}

impl SecondaryCondition {
    /// Returns true if a member that had `cores` may keep the new core, when the chip's
    /// instructions went from `before` to `after`.
    pub fn allows(self, before: f64, after: f64, cores: u32, alpha: f64) -> bool {
        let n = f64::from(cores);
        // Largest α that the source allows.
        let alpha = alpha.min(1.0 - n / (n + 1.0));
        let (left, right) = (after / (before * (1.0 - alpha)), (n + 1.0) / n);
        match self {
            Self::Printed => left < right,
            Self::Reversed => left > right,
            Self::Off => true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum CoreSearchState {
    /// The even slot is running.
    Even,
    /// A probe with one core more and one fewer is running: giver and taker of each transfer.
    Probing(Vec<(ProgramId, ProgramId)>),
    /// A transfer from the first program to the second is running.
    Giving(ProgramId, ProgramId),
    Over,
}

/// The thread chooser.
#[doc(alias = "thread chooser")]
#[derive(Clone, Debug)]
pub struct ThreadChooser {
    secondary: SecondaryCondition,
    alpha: f64,
    gang: BTreeMap<ProgramId, f64>,
    /// The best slot so far; `known` is its trial.
    best: CoscheduleSlot,
    known: Option<SlotTrial>,
    state: CoreSearchState,
    /// Transfers, giver and taker, still to be tried, by quantum.
    probes: VecDeque<Vec<(ProgramId, ProgramId)>>,
    gain: BTreeMap<ProgramId, f64>,
    loss: BTreeMap<ProgramId, f64>,
    /// Takers of the round, the next first.
    takers: VecDeque<ProgramId>,
    round: u32,
}

impl ThreadChooser {
    /// Returns a chooser for a co-schedule with even cores and its trial, if there is one. `gang`
    /// is the energy-delay of each member in the gang, `alpha` that of the secondary condition.
    pub fn new(
        even: CoscheduleSlot,
        known: Option<SlotTrial>,
        gang: BTreeMap<ProgramId, f64>,
        (secondary, alpha): (SecondaryCondition, f64),
    ) -> Self {
        Self {
            secondary,
            alpha,
            gang,
            probes: transfers_by_quantum(&even).into(),
            state: CoreSearchState::Even,
            best: even,
            known,
            gain: BTreeMap::new(),
            loss: BTreeMap::new(),
            takers: VecDeque::new(),
            round: 0,
        }
    }

    /// The slot to try next, given the result of the last trial; `None` if [`ThreadChooser::best`]
    /// is final.
    pub fn next(&mut self, last: Option<&SlotTrial>) -> Option<CoscheduleSlot> {
        match std::mem::replace(&mut self.state, CoreSearchState::Over) {
            CoreSearchState::Even => {
                if let Some(trial) = last {
                    self.known = Some(trial.clone());
                }
                if self.best.teams.len() < 2 {
                    return None;
                }
                if self.known.is_none() {
                    self.state = CoreSearchState::Even;
                    return Some(self.best.clone());
                }
                self.probe()
            }
            CoreSearchState::Probing(moves) => {
                self.record_probe(&moves, last?);
                self.probe()
            }
            CoreSearchState::Giving(giver, taker) => self.judge(giver, taker, last?),
            CoreSearchState::Over => None,
        }
    }

    /// The best slot so far.
    pub fn best(&self) -> &CoscheduleSlot {
        &self.best
    }

    /// Starts the next probe with one core more and one fewer.
    fn probe(&mut self) -> Option<CoscheduleSlot> {
        while let Some(mut moves) = self.probes.pop_front() {
            // A member with one core keeps it, otherwise it could not run.
            moves.retain(|(giver, _)| self.best.cores_of(*giver) > Some(1));
            if moves.is_empty() {
                continue;
            }
            let slot = move_cores(&self.best, &moves);
            self.state = CoreSearchState::Probing(moves);
            return Some(slot);
        }
        self.give()
    }

    fn record_probe(&mut self, moves: &[(ProgramId, ProgramId)], trial: &SlotTrial) {
        let even = self.known.as_ref();
        let even = |id| even.map_or(f64::INFINITY, |known| known.energy_delay(id));
        for &(giver, taker) in moves {
            self.gain
                .insert(taker, even(taker) - trial.energy_delay(taker));
            self.loss
                .insert(giver, trial.energy_delay(giver) - even(giver));
        }
    }

    /// Gives the next taker of list 1 a core of the member that loses least.
    fn give(&mut self) -> Option<CoscheduleSlot> {
        loop {
            if self.takers.is_empty() {
                self.begin_round()?;
            }
            let taker = self.takers.pop_front()?;
            if let Some(giver) = self.least_hurt(taker) {
                self.state = CoreSearchState::Giving(giver, taker);
                return Some(move_cores(&self.best, &[(giver, taker)]));
            }
        }
    }

    fn begin_round(&mut self) -> Option<()> {
        if self.round == ROUNDS {
            return None;
        }
        self.round += 1;
        let mut gains: Vec<(ProgramId, f64)> = self.gain.clone().into_iter().collect();
        gains.retain(|(_, gain)| *gain > 0.0);
        gains.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.takers = gains.into_iter().map(|(id, _)| id).collect();
        (!self.takers.is_empty()).then_some(())
    }

    fn least_hurt(&self, taker: ProgramId) -> Option<ProgramId> {
        let able = |id: &&ProgramId| **id != taker && self.best.cores_of(**id) > Some(1);
        let hurt = |id: &&ProgramId| self.loss.get(*id).copied().unwrap_or(f64::INFINITY);
        let least = self.loss.keys().filter(able);
        least.min_by(|a, b| hurt(a).total_cmp(&hurt(b))).copied()
    }

    fn judge(
        &mut self,
        giver: ProgramId,
        taker: ProgramId,
        trial: &SlotTrial,
    ) -> Option<CoscheduleSlot> {
        let known = self.known.as_ref()?;
        let cores = self.best.cores_of(taker).unwrap_or(1);
        let (before, after) = (known.instructions(), trial.instructions());
        let gang = self.gang.get(&giver).copied().unwrap_or(f64::INFINITY);
        let better = trial.energy_delay(giver) <= gang
            && self.overall_energy_delay(trial) < self.overall_energy_delay(known)
            && self.secondary.allows(before, after, cores, self.alpha);
        if !better {
            return None;
        }
        self.best = trial.slot.clone();
        self.known = Some(trial.clone());
        self.give()
    }

    /// Mean energy-delay of the members relative to the gang's.
    fn overall_energy_delay(&self, trial: &SlotTrial) -> f64 {
        let relative = |team: &ProgramTeam| {
            let gang = self
                .gang
                .get(&team.program)
                .copied()
                .unwrap_or(f64::INFINITY);
            trial.energy_delay(team.program) / gang
        };
        let teams = &trial.slot.teams;
        teams.iter().map(relative).sum::<f64>() / teams.len().max(1) as f64
    }
}

/// Returns the slot after transfers from givers to takers.
fn move_cores(slot: &CoscheduleSlot, moves: &[(ProgramId, ProgramId)]) -> CoscheduleSlot {
    let mut slot = slot.clone();
    for team in &mut slot.teams {
        for (giver, taker) in moves {
            team.cores += u32::from(team.program == *taker);
            team.cores -= u32::from(team.program == *giver);
        }
    }
    slot
}

/// Transfers by quantum: of an even ring every second edge, then the others; of an odd ring the
/// last edge by itself.
fn transfers_by_quantum(slot: &CoscheduleSlot) -> Vec<Vec<(ProgramId, ProgramId)>> {
    let ids: Vec<ProgramId> = slot.teams.iter().map(|team| team.program).collect();
    let n = ids.len();
    if n < 2 {
        return Vec::new();
    }
    let mut quanta = vec![Vec::new(); 2 + n % 2];
    for i in 0..n {
        let quantum = if n % 2 == 1 && i == n - 1 { 2 } else { i % 2 };
        quanta[quantum].push((ids[(i + 1) % n], ids[i]));
    }
    quanta
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Load, World, id};
    use super::*;
    use proptest::prelude::*;

    fn slot(cores: &[u32]) -> CoscheduleSlot {
        let team = |(i, &cores): (usize, &u32)| ProgramTeam {
            program: id(i),
            cores,
        };
        CoscheduleSlot {
            teams: cores.iter().enumerate().map(team).collect(),
        }
    }

    fn cores(slot: &CoscheduleSlot) -> Vec<u32> {
        slot.teams.iter().map(|team| team.cores).collect()
    }

    /// Runs the chooser; returns the final cores, and those of every trial.
    fn choose(
        world: &World,
        even: &CoscheduleSlot,
        secondary: SecondaryCondition,
    ) -> (Vec<u32>, Vec<Vec<u32>>) {
        let gang = world
            .rising()
            .into_iter()
            .map(|(id, m)| (id, m.energy_delay(1)));
        let known = Some(world.run(even));
        let mut chooser =
            ThreadChooser::new(even.clone(), known, gang.collect(), (secondary, 0.05));
        let (mut tried, mut last) = (Vec::new(), None);
        while let Some(slot) = chooser.next(last.as_ref()) {
            tried.push(cores(&slot));
            last = Some(world.run(&slot));
        }
        (cores(chooser.best()), tried)
    }

    fn world(scaling: &[f64]) -> World {
        let load = |&scaling: &f64| Load {
            scaling,
            weight: 0.0,
        };
        World {
            cores: 8,
            loads: scaling.iter().map(load).collect(),
        }
    }

    #[test]
    fn even_members_are_probed_in_two_quanta() {
        let (_, tried) = choose(&world(&[2.0; 4]), &slot(&[2; 4]), SecondaryCondition::Off);
        assert_eq!(tried[..2], [[3, 1, 3, 1], [1, 3, 1, 3]]);
    }

    #[test]
    fn odd_members_are_probed_in_three_quanta() {
        let (_, tried) = choose(
            &world(&[2.0; 3]),
            &slot(&[3, 3, 2]),
            SecondaryCondition::Off,
        );
        assert_eq!(tried[..3], [[4, 2, 2], [3, 4, 1], [2, 3, 3]]);
    }

    #[test]
    fn largest_gain_takes_from_the_least_loss() {
        // Program 1 uses six cores, program 2 two: at 4 + 4 two cores are wasted.
        let (best, tried) = choose(&world(&[6.0, 2.0]), &slot(&[4, 4]), SecondaryCondition::Off);
        assert_eq!(tried, [[5, 3], [3, 5], [5, 3], [6, 2]]);
        assert_eq!(best, [6, 2]);
    }

    #[test]
    fn cores_are_given_in_at_most_two_rounds() {
        let (best, tried) = choose(&world(&[7.0, 1.0]), &slot(&[4, 4]), SecondaryCondition::Off);
        assert_eq!((best, tried.len()), (vec![6, 2], 4));
    }

    #[test]
    fn search_ends_without_an_overall_gain() {
        // Both use all that they have.
        let (best, _) = choose(&world(&[8.0, 8.0]), &slot(&[4, 4]), SecondaryCondition::Off);
        assert_eq!(best, [4, 4]);
    }

    #[test]
    fn member_with_one_core_keeps_it() {
        let (best, tried) = choose(&world(&[8.0, 8.0]), &slot(&[7, 1]), SecondaryCondition::Off);
        assert!(tried.iter().all(|cores| cores[1] >= 1));
        assert!(best.iter().all(|&cores| cores >= 1));
    }

    #[test]
    fn printed_condition_refuses_a_near_linear_taker() {
        // From 4 cores to 5 a linear program gains 5/4; 1.25 / 0.95 is above 5/4.
        assert!(!SecondaryCondition::Printed.allows(4.0, 5.0, 4, 0.05));
        assert!(SecondaryCondition::Reversed.allows(4.0, 5.0, 4, 0.05));
    }

    #[test]
    fn printed_condition_accepts_no_gain() {
        for cores in 1..16 {
            assert!(SecondaryCondition::Printed.allows(4.0, 4.0, cores, 0.05));
            assert!(!SecondaryCondition::Reversed.allows(4.0, 4.0, cores, 0.05));
        }
    }

    proptest! {
        #[test]
        fn search_is_bounded_and_keeps_all_cores(
            scaling in prop::collection::vec(1.0f64..16.0, 2..7),
            weights in prop::collection::vec(0.0f64..1.0, 6),
            extra in 0u32..10,
            secondary in prop::sample::select(vec![SecondaryCondition::Printed, SecondaryCondition::Reversed, SecondaryCondition::Off]),
        ) {
            let n = scaling.len() as u32;
            let loads: Vec<Load> = scaling.iter().zip(weights).map(|(&scaling, weight)| Load { scaling, weight }).collect();
            let world = World { cores: n + extra, loads };
            let mut even = vec![(n + extra) / n; n as usize];
            even[0] += (n + extra) % n;
            let (best, tried) = choose(&world, &slot(&even), secondary);
            prop_assert_eq!(best.iter().sum::<u32>(), n + extra);
            prop_assert!(best.iter().all(|&c| c >= 1));
            prop_assert!(tried.len() as u32 <= 3 + 2 * n);
        }
    }
}
