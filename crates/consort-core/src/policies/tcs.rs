//! `tcs`: the most critical thread gets the large core, by two counters per logical core.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), TCS, trait-aware criticality scheduling.
//!
//! - *Short-term* criticality: length of the quantum / instructions committed in it. At the end of
//!   a quantum, a small core whose counter is higher than the large core's takes the large core,
//!   the highest first.
//! - *Long-term* criticality: sum of active interval / instructions committed in it, kept per
//!   software thread. It decides whenever a thread stalls or goes on.
//!
//! Whom the long-term sum sends to the large core is told in two ways: the rule says the highest,
//! the worked example sends there a new thread because its sum is the lowest, which has done least
//! so far. Both are implemented, `long-term=critical` and `long-term=lagging`. Over the studies A12,
//! A13 and A14 together lagging does better by a hair that is within the interval, so it is the
//! default: programs of one thread never stall, and the two do the same with them; with several
//! threads it is faster in more cases than it is slower.
//!
//! Observes instructions, or CPU time where none are counted, and which threads wait for others;
//! threads that wait, spinning or asleep, are not active. Where intervals do not end with
//! activity, as on live machines, a change of who is active is noticed at the end of the quantum.

use super::asymmetric::{FORM, Group, RoundRobin, Rule, Seat, Swap, Swapper, Tick, form};
use crate::ids::ThreadId;
use crate::policy::{OptionInfo, Options, Policy, PolicyError, PolicyInfo, PolicyRng};
use crate::signal::{Signal, Tier};
use std::collections::BTreeMap;

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "tcs",
    family: "asymmetry",
    source: "Markovic, PhD thesis, UPC 2015",
    needs: &[Signal::CpuTime],
    tier_min: Tier::Proc,
    quantum_ms: 4,
    live: true,
    simulated: true,
    summary: "gives the large core to the thread that goes slowest, or that has done least",
    options: &[
        FORM,
        OptionInfo {
            name: "long-term",
            default: "lagging",
            meaning: "lagging (the lowest long-term sum gets the large core) or critical (the highest)",
        },
    ],
    build,
};

fn build(options: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let words = [
        ("lagging", LongTerm::Lagging),
        ("critical", LongTerm::Critical),
    ];
    let reading = options.one_of("long-term", &words, "lagging or critical")?;
    let form = form(options)?;
    Ok(Box::new(Swapper::new(Tcs::new(reading), form)))
}

/// Whom the long-term sum sends to the large core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongTerm {
    /// The one with the lowest.
    Lagging,
    /// The one with the highest.
    Critical,
}

#[derive(Debug)]
struct Tcs {
    reading: LongTerm,
    /// Long-term criticality by software thread, ns per instruction summed over intervals.
    long_term: BTreeMap<ThreadId, f64>,
    /// By logical core, what it has got done since the quantum began.
    done: BTreeMap<usize, f64>,
    /// By group, who was active when it was last decided.
    active: BTreeMap<usize, Vec<ThreadId>>,
    /// By group, whose turn it is among equals.
    turns: BTreeMap<usize, RoundRobin>,
    /// Groups whose exchange waits for the large core to leave the kernel.
    due: BTreeMap<usize, Due>,
}

/// By which counter an exchange is to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    ShortTerm,
    LongTerm,
}

impl Tcs {
    fn new(reading: LongTerm) -> Self {
        Self {
            reading,
            long_term: BTreeMap::new(),
            done: BTreeMap::new(),
            active: BTreeMap::new(),
            turns: BTreeMap::new(),
            due: BTreeMap::new(),
        }
    }

    /// Adds the interval to the counters of those that were active in it.
    fn count(&mut self, group: &Group<'_>, tick: Tick) {
        for seat in group.seats() {
            *self.done.entry(seat.logical).or_default() += seat.progress();
            for ran in seat.ran.iter().filter(|ran| ran.progress > 0.0) {
                let sum = self.long_term.entry(ran.thread).or_default();
                *sum += tick.interval_ns as f64 / ran.progress;
            }
        }
    }

    /// By which counter to decide now, if at all.
    fn occasion(&mut self, group: &Group<'_>, tick: Tick) -> Option<Due> {
        let mut active: Vec<ThreadId> = group.seats().flat_map(|s| s.active.clone()).collect();
        active.sort_unstable();
        let before = self.active.insert(group.index, active.clone());
        if before.as_ref() != Some(&active) {
            self.due.insert(group.index, Due::LongTerm);
        } else if tick.is_quantum {
            self.due.insert(group.index, Due::ShortTerm);
        }
        let busy = group.large.iter().any(Seat::in_kernel);
        self.due.get(&group.index).copied().filter(|_| !busy)
    }

    /// How much a logical core wants the large one; none when nobody is active on it.
    fn urgency(&self, due: Due, seat: &Seat<'_>, tick: Tick) -> Option<f64> {
        if seat.active.is_empty() {
            return None;
        }
        match due {
            Due::ShortTerm => {
                let done = self.done.get(&seat.logical).copied().unwrap_or(0.0);
                Some(tick.quantum_ns as f64 / done)
            }
            Due::LongTerm => seat
                .active
                .iter()
                .map(|t| self.claim(*t))
                .max_by(f64::total_cmp),
        }
    }

    /// A thread's claim to the large core by its long-term sum.
    fn claim(&self, thread: ThreadId) -> f64 {
        let sum = self.long_term.get(&thread).copied().unwrap_or(0.0);
        match self.reading {
            LongTerm::Critical => sum,
            LongTerm::Lagging => -sum,
        }
    }

    /// The exchange of the most urgent small core with the least urgent large one, if it is more
    /// urgent.
    fn most_urgent(&self, due: Due, group: &Group<'_>, tick: Tick) -> Option<Swap> {
        // An idle core is less urgent than any.
        let of = |seat: &Seat<'_>| self.urgency(due, seat, tick).map_or((0, 0.0), |u| (1, u));
        let order = |a: &(u8, f64), b: &(u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let turns = self.turns.get(&group.index)?;
        let ready = turns.in_turn(group).filter(|seat| seat.is_ready());
        // Of equals the one whose turn it is.
        let small = ready.rev().max_by(|a, b| order(&of(a), &of(b)))?;
        let large = group.large.iter().min_by(|a, b| order(&of(a), &of(b)))?;
        let why = match due {
            Due::ShortTerm => "its short-term criticality is the highest",
            Due::LongTerm => "by its long-term criticality, as somebody has stalled or gone on",
        };
        order(&of(small), &of(large)).is_gt().then(|| Swap {
            small: small.logical,
            large: large.logical,
            why: why.into(),
        })
    }
}

impl Rule for Tcs {
    const NAME: &'static str = INFO.name;

    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.long_term.retain(|&id, _| !is_gone(id));
    }

    fn choose(&mut self, group: &Group<'_>, tick: Tick, _: &mut PolicyRng) -> Vec<Swap> {
        self.count(group, tick);
        self.turns.entry(group.index).or_default().follow(group);
        let due = self.occasion(group, tick);
        let swap = due.and_then(|due| self.most_urgent(due, group, tick));
        if due.is_some() {
            self.due.remove(&group.index);
        }
        if let Some(swap) = &swap {
            let turns = self.turns.entry(group.index).or_default();
            turns.exchanged(swap.small, swap.large);
        }
        if tick.is_quantum {
            group.seats().for_each(|seat| {
                self.done.remove(&seat.logical);
            });
        }
        swap.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::asymmetric::testing::{BUSY, Bench, Did, IDLE, QUANTUM_NS, chip};
    use super::*;
    use crate::sample::Ended;

    /// A thread that committed so many instructions.
    fn ran(occupant: u32, instructions: f64) -> Did {
        Did {
            instructions,
            occupant: Some(occupant),
            ..BUSY
        }
    }

    fn waits(occupant: u32) -> Did {
        Did {
            waits: true,
            ..ran(occupant, 0.0)
        }
    }

    /// Four threads that have just come, of which it is known.
    fn bench(reading: LongTerm) -> Bench<Tcs> {
        let mut bench = Bench::new(chip(1, 3, 1), Tcs::new(reading));
        let all = [1, 2, 3, 4].map(|t| ran(t, 1e6));
        assert_eq!(bench.turn(&all, QUANTUM_NS, Ended::Activity), [0, 1, 2, 3]);
        bench
    }

    #[test]
    fn the_highest_short_term_counter_above_the_large_core_s_is_swapped_in() {
        let mut bench = bench(LongTerm::Critical);
        // The first interval belongs to the quantum: 4, 2, 1.5 and 1.75 million instructions.
        let did = [ran(1, 3e6), ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
        assert_eq!(bench.quantum(&did), [2, 1, 0, 3]);
    }

    #[test]
    fn equals_take_turns() {
        let mut bench = bench(LongTerm::Critical);
        let slow_but =
            |fast: u32| [0, 1, 2, 3].map(|t| ran(t + 1, if t == fast { 2e6 } else { 1e6 }));
        bench.quantum(&slow_but(0));
        let mut had = Vec::new();
        for _ in 0..4 {
            let large = had.last().copied().unwrap_or(1);
            let pus = bench.quantum(&slow_but(large));
            had.push(pus.iter().position(|&pu| pu == 0).unwrap() as u32);
        }
        assert_eq!(had, [2, 3, 0, 1]);
    }

    #[test]
    fn nobody_is_swapped_in_while_the_large_core_s_counter_is_the_highest() {
        let mut bench = bench(LongTerm::Critical);
        let did = [ran(1, 0.1e6), ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
    }

    #[test]
    fn when_a_thread_stalls_the_highest_long_term_sum_decides() {
        let mut bench = bench(LongTerm::Critical);
        // Sums grow by 1, 1/2, 1/4 and 1/8 ns per instruction; then thread 1 begins to wait.
        let did = [waits(1), ran(2, 2e6), ran(3, 4e6), ran(4, 8e6)];
        assert_eq!(bench.turn(&did, QUANTUM_NS, Ended::Activity), [1, 0, 2, 3]);
    }

    #[test]
    fn when_a_thread_stalls_the_lowest_long_term_sum_decides_by_the_other_reading() {
        let mut bench = bench(LongTerm::Lagging);
        let did = [waits(1), ran(2, 2e6), ran(3, 4e6), ran(4, 8e6)];
        assert_eq!(bench.turn(&did, QUANTUM_NS, Ended::Activity), [3, 1, 2, 0]);
    }

    #[test]
    fn a_new_thread_with_the_lowest_sum_goes_to_the_large_core_as_in_the_worked_example() {
        let did = [ran(1, 1e6), ran(2, 1e6), ran(5, 0.0), ran(4, 1e6)];
        let at = |reading| bench(reading).turn(&did, QUANTUM_NS, Ended::Activity);
        assert_eq!(at(LongTerm::Lagging), [2, 1, 0, 3]);
        assert_eq!(at(LongTerm::Critical), [0, 1, 2, 3]);
    }

    #[test]
    fn threads_that_wait_are_not_active() {
        let mut bench = bench(LongTerm::Critical);
        let did = [ran(1, 1e6), waits(2), waits(3), IDLE];
        bench.turn(&did, QUANTUM_NS, Ended::Activity);
        // Slow as they are, they are not swapped in.
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
    }

    #[test]
    fn sums_belong_to_software_threads_not_to_logical_cores() {
        let mut bench = bench(LongTerm::Critical);
        // Thread 4 goes slowly, and is then switched out for a new one.
        let slow = [ran(1, 1e6), ran(2, 1e6), ran(3, 1e6), ran(9, 1e3)];
        assert_eq!(bench.turn(&slow, QUANTUM_NS, Ended::Activity), [0, 1, 2, 3]);
        // It comes back on another logical core.
        let back = [ran(1, 1e6), ran(4, 1e6), ran(3, 1e6), ran(9, 1e6)];
        assert_eq!(bench.turn(&back, QUANTUM_NS, Ended::Activity), [1, 0, 2, 3]);
    }
}
