//! Rates of the running threads, solved or remembered.
//!
//! The key of a solution lists, in the order of the CPUs, each running thread's CPU, phase,
//! intensity, home node and group of siblings; groups are numbered by first appearance, so that
//! equal threads are interchangeable. Cores of one type under one LLC with an L2 of their own,
//! cores that share an L2, and the CPUs of a core can be exchanged without changing anything. Each
//! set of running threads is solved in the placement in which such cores hold their threads in a
//! fixed order, so that a scheduler that moves threads among equal cores meets solutions that are
//! there already.
//!
//! The table of solutions has a fixed number of places, each key has one, and a newer solution
//! takes the place of an older: bounded, without allocation once warm, and the same on every host.

use super::calendar::NEVER;
use super::draw::mix;
use super::energy::EnergyAccount;
use super::kernel::SimulatedKernel;
use super::thread::{SimulatedThread, ThreadStatus};
use super::warming::CacheWarming;
use crate::chip::Chip;
use crate::contention::{KnownPhases, RunningThread, Solution, Solver, ThreadRates};
use std::sync::Arc;

pub(crate) struct RateSolver {
    solver: Solver,
    known: KnownPhases,
    memo: Memo,
    canon: CanonicalPlacement,
    /// Running threads, in the order in which they were solved last.
    running: Vec<SolverSlot>,
    key: Vec<u64>,
    /// Group of siblings of each program, by first appearance; 0 for none yet.
    group: Vec<u64>,
}

impl RateSolver {
    pub(crate) fn new(chip: &Arc<Chip>) -> Self {
        Self {
            solver: Solver::new(Arc::clone(chip)),
            known: KnownPhases::default(),
            memo: Memo::new(),
            canon: CanonicalPlacement::new(chip),
            running: Vec::new(),
            key: Vec::new(),
            group: Vec::new(),
        }
    }

    /// Running threads with the solution for them, in its order.
    pub(crate) fn solve(
        &mut self,
        kernel: &SimulatedKernel,
        threads: &[SimulatedThread],
    ) -> (&[SolverSlot], &Solution) {
        self.list_running(kernel, threads);
        self.list_key(threads);
        let (solver, known, running) = (&self.solver, &mut self.known, &self.running);
        let solve = || {
            let demand = |slot: &SolverSlot| RunningThread {
                pu: slot.pu,
                demand: &threads[slot.thread].demand,
            };
            let running: Vec<RunningThread<'_>> = running.iter().map(demand).collect();
            solver.solve_with(known, &running)
        };
        (running, self.memo.get(&self.key, solve))
    }

    /// Number of times that solutions were reused.
    pub(crate) fn memo_use(&self) -> MemoUse {
        self.memo.usage()
    }

    fn list_running(&mut self, kernel: &SimulatedKernel, threads: &[SimulatedThread]) {
        self.running.clear();
        for (pu, t) in kernel.occupied_pus_in_order() {
            let thread = &threads[t];
            if thread.status == ThreadStatus::Running {
                self.running.push(SolverSlot {
                    thread: t,
                    pu,
                    what: [
                        thread.work.phase as u64,
                        thread.demand.intensity.to_bits(),
                        thread.demand.home_node as u64,
                        thread.program as u64,
                    ],
                });
            }
        }
        self.canon.arrange(&mut self.running);
    }

    /// Lists what the solution depends on, no more and no less: locks, sharing and common code
    /// follow from the phase, which belongs to one profile.
    fn list_key(&mut self, threads: &[SimulatedThread]) {
        self.key.clear();
        self.group.clear();
        let programs = threads.last().map_or(0, |t| t.program + 1);
        self.group.resize(programs, 0);
        let mut groups = 0;
        for slot in &self.running {
            let [phase, intensity, home, program] = slot.what;
            let group = &mut self.group[program as usize];
            if *group == 0 {
                groups += 1;
                *group = groups;
            }
            let place = (slot.pu as u64) << 32 | home;
            self.key.extend([place, phase << 32 | *group, intensity]);
        }
    }
}

/// Applies new rates to a thread at a CPU of the chip; `returns` as
/// [`super::lock::returns_per_instr`] computes them.
pub(crate) fn apply_rates(
    thread: &mut SimulatedThread,
    (pu, rates, returns): (usize, &ThreadRates, f64),
    account: &EnergyAccount,
    now: u64,
) {
    let changed = thread.rates.ips.to_bits() != rates.ips.to_bits();
    thread.rates = *rates;
    // Exchangeable cores have equal energies, so the CPU for which it is solved will do.
    thread.instruction_j = account.instruction_j(thread, pu);
    let warming = &thread.caches.warming;
    let warms = warming.is_new() || changed && warming.is_open();
    if warms {
        thread.halt(now);
        account.update_warming(thread, pu, CacheWarming::apply_rates);
    }
    let returns_changed = thread.work.returns.differs(returns);
    // An unchanged deadline stands, so that splitting time at other instants changes nothing.
    if changed || warms || thread.clock.deadline == NEVER || returns_changed {
        thread.halt(now);
        thread.work.returns.set_rate(returns);
        thread.set_deadline(now);
    }
}

/// Places of the table, a power of two: at 20 threads about 8 KiB each.
const PLACES: usize = 4096;

/// Number of times that solutions were reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoUse {
    /// Solutions found in the table.
    pub hits: u64,
    /// Solutions solved anew.
    pub misses: u64,
}

#[derive(Clone, Debug)]
struct MemoEntry {
    key: Vec<u64>,
    solution: Solution,
}

#[derive(Clone, Debug)]
pub(crate) struct Memo {
    entries: Vec<Option<MemoEntry>>,
    usage: MemoUse,
}

impl Memo {
    pub(crate) fn new() -> Self {
        Self {
            entries: vec![None; PLACES],
            usage: MemoUse::default(),
        }
    }

    pub(crate) fn get(&mut self, key: &[u64], solve: impl FnOnce() -> Solution) -> &Solution {
        let hash = key.iter().fold(0, |hash, part| mix(hash ^ part));
        let place = &mut self.entries[hash as usize % PLACES];
        let entry = match place.take() {
            Some(entry) if entry.key == key => {
                self.usage.hits += 1;
                entry
            }
            _ => {
                self.usage.misses += 1;
                MemoEntry {
                    key: key.to_vec(),
                    solution: solve(),
                }
            }
        };
        &place.insert(entry).solution
    }

    pub(crate) fn usage(&self) -> MemoUse {
        self.usage
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SolverSlot {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// The CPU that it runs on; after [`CanonicalPlacement::arrange`] the one for which it is
    /// solved.
    pub(crate) pu: usize,
    /// Key of the properties of the thread that its rates depend on.
    pub(crate) what: [u64; 4],
}

/// Classes of exchangeable cores.
#[derive(Clone, Debug)]
pub(crate) struct CanonicalPlacement {
    /// Class of each core.
    class: Vec<usize>,
    /// Cores of each class.
    cores: Vec<Vec<usize>>,
    core_of: Vec<usize>,
    /// First CPU of each core.
    first_pu: Vec<usize>,
    /// Runs of slots on one core: class, begin, end.
    runs: Vec<(usize, usize, usize)>,
    arranged: Vec<SolverSlot>,
}

impl CanonicalPlacement {
    pub(crate) fn new(chip: &Chip) -> Self {
        let places = chip.places();
        let count = chip.domains().cores;
        let mut first_pu = vec![places.len(); count];
        for (pu, place) in places.iter().enumerate().rev() {
            first_pu[place.core] = pu;
        }
        let of = |core: usize| places[first_pu[core]];
        let alone = |core: usize| (0..count).filter(|&c| of(c).l2 == of(core).l2).count() == 1;
        let key = |core: usize| match alone(core) {
            true => (0, of(core).llc, of(core).core_type),
            false => (1, of(core).l2, of(core).core_type),
        };
        let mut keys: Vec<(i32, usize, usize)> = (0..count).map(key).collect();
        let class_keys = keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let class_of = |core: usize| keys.partition_point(|k| *k < class_keys[core]);
        let class: Vec<usize> = (0..count).map(class_of).collect();
        let members = |c| (0..count).filter(|&core| class[core] == c).collect();
        Self {
            cores: (0..keys.len()).map(members).collect(),
            core_of: places.iter().map(|p| p.core).collect(),
            class,
            first_pu,
            runs: Vec::new(),
            arranged: Vec::new(),
        }
    }

    /// Arranges running threads on exchangeable cores in the order of their properties.
    pub(crate) fn arrange(&mut self, slots: &mut Vec<SolverSlot>) {
        slots.sort_unstable_by_key(|s| (self.core_of[s.pu], s.what, s.thread));
        self.list_runs(slots);
        let what = |run: &(usize, usize, usize)| slots[run.1..run.2].iter().map(|s| s.what);
        self.runs
            .sort_by(|a, b| a.0.cmp(&b.0).then_with(|| what(a).cmp(what(b))));
        self.arranged.clear();
        let (mut class, mut nth) = (usize::MAX, 0);
        for &(own, begin, end) in &self.runs {
            nth = if own == class { nth + 1 } else { 0 };
            class = own;
            let first = self.first_pu[self.cores[class][nth]];
            for (way, slot) in slots[begin..end].iter().enumerate() {
                let pu = first + way;
                self.arranged.push(SolverSlot { pu, ..*slot });
            }
        }
        std::mem::swap(slots, &mut self.arranged);
    }

    fn list_runs(&mut self, slots: &[SolverSlot]) {
        self.runs.clear();
        let mut begin = 0;
        while begin < slots.len() {
            let core = self.core_of[slots[begin].pu];
            let same = slots[begin..].iter();
            let length = same.take_while(|s| self.core_of[s.pu] == core).count();
            self.runs.push((self.class[core], begin, begin + length));
            begin += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::chip;
    use proptest::prelude::*;

    fn solution(iterations: u32) -> Solution {
        Solution {
            threads: Vec::new(),
            converged: true,
            residual: 0.0,
            iterations,
            memory_utilisation: Vec::new(),
            interconnect_utilisation: Vec::new(),
        }
    }

    #[test]
    fn every_key_gets_its_own_solution() {
        let mut memo = Memo::new();
        for round in 0..2 {
            for key in 0..3 * PLACES as u32 {
                let got = memo.get(&[u64::from(key), 7], || solution(key)).iterations;
                assert_eq!(got, key, "round {round}");
            }
        }
        let requested = memo.usage().hits + memo.usage().misses;
        assert_eq!(requested, 6 * PLACES as u64);
        assert!(memo.entries.len() == PLACES);
    }

    #[test]
    fn known_key_is_not_solved_again() {
        let mut memo = Memo::new();
        memo.get(&[1], || solution(1));
        let again = memo.get(&[1], || solution(2)).iterations;
        assert_eq!((again, memo.usage().hits), (1, 1));
    }

    /// Threads `t` on the CPUs given, each like no other.
    fn arranged(pus: &[usize]) -> Vec<SolverSlot> {
        let slot = |(thread, &pu): (usize, &usize)| SolverSlot {
            thread,
            pu,
            what: [thread as u64, 0, 0, 0],
        };
        let mut slots: Vec<SolverSlot> = pus.iter().enumerate().map(slot).collect();
        CanonicalPlacement::new(&chip(1)).arrange(&mut slots);
        slots
    }

    #[test]
    fn equal_cores_are_exchangeable_and_sharing_counts() {
        assert_eq!(arranged(&[0, 2, 4]), arranged(&[7, 1, 3]));
        assert_ne!(arranged(&[0, 1, 4]), arranged(&[0, 2, 4]));
    }

    proptest! {
        #[test]
        fn arrangement_keeps_core_mates_and_single_occupancy(
            order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
            n in 1usize..=8,
        ) {
            let slots = arranged(&order[..n]);
            let mut pus: Vec<usize> = slots.iter().map(|s| s.pu).collect();
            pus.sort_unstable();
            pus.dedup();
            prop_assert_eq!(pus.len(), n);
            for a in &slots {
                for b in &slots {
                    let before = order[a.thread] / 2 == order[b.thread] / 2;
                    prop_assert_eq!(a.pu / 2 == b.pu / 2, before);
                }
            }
        }
    }
}
