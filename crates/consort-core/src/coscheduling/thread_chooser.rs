//! The thread chooser: number of cores of each member of a co-schedule.
//!
//! Source: Bhadauria and McKee, ICS 2010, section on the thread chooser.
//!
//! 1. The outcome for each member with even cores is noted.
//! 2. Members are tried with one core more and one fewer, in two quanta when they are even in
//!    number and three when odd: the pairs of giver and taker are the edges of a ring, of which
//!    those that have no member in common are tried at once. List 1 is what each gains in
//!    energy-delay by one more, list 2 what each loses by one fewer.
//! 3. The first of list 1 gets a core from the last of list 2, and so on down list 1, in at most
//!    two rounds. It ends when the giver is worse off than in the gang, or when the overall
//!    energy-delay, the mean over members of energy-delay relative to the gang's, no longer falls.
//!
//! *Secondary condition* for taking a core ([`SecondaryCondition`]). The source prints
//! Ir(t+1) / (Ir(t)·(1 − α)) < (N+1)/N with α < 1 − N/(N+1), where Ir are the instructions of the
//! whole chip before and after and N the taker's cores before. Its purpose is said to be that a
//! near-linear program must not strip its neighbours, and that no gain is seen where there is none.
//! As printed it does the first: a chip that gains nearly as much as a linear taker alone would is
//! refused. It does not do the second: where nothing is gained, 1 / (1 − α) < (N+1)/N holds for
//! every α that is allowed. Turned round it does the second and not the first.

use super::slot::{CoscheduleSlot, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;
use std::collections::{BTreeMap, VecDeque};

/// Rounds in which cores are given.
const ROUNDS: u32 = 2;

/// Reading of the secondary condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondaryCondition {
    /// The condition as printed.
    Printed,
    /// The condition with the comparison turned round.
    Reversed,
    /// No condition.
    Off,
}

impl SecondaryCondition {
    /// Says whether a member that had `cores` may keep the core that it got, when the chip's
    /// instructions went from `before` to `after`.
    pub fn allows(self, before: f64, after: f64, cores: u32, alpha: f64) -> bool {
        let n = f64::from(cores);
        // What the source allows for α at most.
        let alpha = alpha.min(1.0 - n / (n + 1.0));
        let (left, right) = (after / (before * (1.0 - alpha)), (n + 1.0) / n);
        match self {
            Self::Printed => left < right,
            Self::Reversed => left > right,
            Self::Off => true,
        }
    }
}

/// State of the search for the best cores.
#[derive(Clone, Debug, PartialEq)]
enum CoreSearchState {
    /// The even slot is being tried.
    Even,
    /// One core more and one fewer: the transfers of the quantum that runs.
    Probing(Vec<(ProgramId, ProgramId)>),
    /// A core has been given, by the first program to the second.
    Giving(ProgramId, ProgramId),
    Over,
}

/// The chooser's state.
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
    /// Chooser for a co-schedule with even cores and its trial, if it has been tried; `gang` is the
    /// energy-delay of each member in the gang, `alpha` that of the secondary condition.
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

    /// The slot to try next, given the outcome of the last; none when [`ThreadChooser::best`] is final.
    pub fn next(&mut self, last: Option<&SlotTrial>) -> Option<CoscheduleSlot> {
        match std::mem::replace(&mut self.state, CoreSearchState::Over) {
            CoreSearchState::Even => {
                if let Some(trial) = last {
                    self.known = Some(trial.clone());
                }
                self.next_after_even()
            }
            CoreSearchState::Probing(moves) => {
                self.record_probe(&moves, last?);
                self.probe()
            }
            CoreSearchState::Giving(giver, taker) => self.judge(giver, taker, last?),
            CoreSearchState::Over => None,
        }
    }

    /// The slot as it is to run.
    pub fn best(&self) -> &CoscheduleSlot {
        &self.best
    }

    fn next_after_even(&mut self) -> Option<CoscheduleSlot> {
        if self.best.teams.len() < 2 {
            return None;
        }
        if self.known.is_none() {
            self.state = CoreSearchState::Even;
            return Some(self.best.clone());
        }
        self.probe()
    }

    /// The next quantum in which members have one core more and one fewer.
    fn probe(&mut self) -> Option<CoscheduleSlot> {
        while let Some(mut moves) = self.probes.pop_front() {
            // Who has one core keeps it.
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

    /// Gives the next taker of list 1 a core of the member that it hurts least.
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

/// The slot after some cores have gone from giver to taker.
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

/// The ring's edges by quantum: of an even ring every second, then the others; of an odd one the
/// last by itself.
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
    fn an_even_number_of_members_is_probed_in_two_quanta() {
        let (_, tried) = choose(&world(&[2.0; 4]), &slot(&[2; 4]), SecondaryCondition::Off);
        assert_eq!(tried[..2], [[3, 1, 3, 1], [1, 3, 1, 3]]);
    }

    #[test]
    fn an_odd_number_of_members_is_probed_in_three_quanta() {
        let (_, tried) = choose(
            &world(&[2.0; 3]),
            &slot(&[3, 3, 2]),
            SecondaryCondition::Off,
        );
        assert_eq!(tried[..3], [[4, 2, 2], [3, 4, 1], [2, 3, 3]]);
    }

    #[test]
    fn who_gains_most_gets_cores_of_whom_it_hurts_least() {
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
    fn it_ends_when_the_overall_energy_delay_no_longer_falls() {
        // Both use all that they have.
        let (best, _) = choose(&world(&[8.0, 8.0]), &slot(&[4, 4]), SecondaryCondition::Off);
        assert_eq!(best, [4, 4]);
    }

    #[test]
    fn who_has_one_core_gives_none() {
        let (best, tried) = choose(&world(&[8.0, 8.0]), &slot(&[7, 1]), SecondaryCondition::Off);
        assert!(tried.iter().all(|cores| cores[1] >= 1));
        assert!(best.iter().all(|&cores| cores >= 1));
    }

    #[test]
    fn as_printed_the_secondary_condition_refuses_a_near_linear_taker() {
        // From 4 cores to 5 a linear program gains 5/4; 1.25 / 0.95 is above 5/4.
        assert!(!SecondaryCondition::Printed.allows(4.0, 5.0, 4, 0.05));
        assert!(SecondaryCondition::Reversed.allows(4.0, 5.0, 4, 0.05));
    }

    #[test]
    fn as_printed_the_secondary_condition_lets_nothing_for_a_gain_pass() {
        for cores in 1..16 {
            assert!(SecondaryCondition::Printed.allows(4.0, 4.0, cores, 0.05));
            assert!(!SecondaryCondition::Reversed.allows(4.0, 4.0, cores, 0.05));
        }
    }

    proptest! {
        #[test]
        fn it_ends_within_its_bound_and_keeps_all_cores(
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
