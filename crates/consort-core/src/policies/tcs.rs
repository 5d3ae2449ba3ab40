//! `tcs`: the most critical thread gets the large core, by two counters per logical core.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), TCS, trait-aware criticality scheduling.
//!
//! - *Short-term* criticality: length of the quantum / instructions committed in it. At the end of
//!   a quantum, a small core whose counter is higher than the large core's takes the large core,
//!   the highest first.
//! - *Long-term* criticality: sum of active interval / instructions committed in it, kept per
//!   software thread. A thread's interval ends, and its sum is updated, when the thread itself
//!   stalls or is switched out, and at the end of the quantum; never because another thread's
//!   ended. An interval without instructions adds nothing. It decides at the end of a quantum in
//!   which some thread stalled or went on or the operating system exchanged threads; with
//!   `immediate` at once when that happens, and the end of the quantum is short-term's.
//!
//! Whom the long-term sum sends to the large core is told in two ways: the rule says the highest,
//! the worked example sends there a new thread because its sum is the lowest, which has done least
//! so far. Both are implemented, `long-term=critical` and `long-term=lagging`. Over the studies A12,
//! A13 and A14 together critical does better, by 0.3 percent and beyond the interval, so it is the
//! default: single-threaded programs hardly tell them apart, and with several threads it is faster in
//! more cases than it is slower.
//!
//! Observes instructions, or CPU time where none are counted, and which threads wait for others;
//! threads that wait, spinning or asleep, are not active. In software form a thread that is queued
//! for a PU stays active. Where intervals do not end with activity, as on live machines, a change
//! of who is active is noticed at the end of the quantum.

use super::asymmetric::{FORM, Group, RoundRobin, Rule, Seat, Swap, Swapper, Tick, form};
use crate::ids::ThreadId;
use crate::policy::{OptionInfo, Options, Policy, PolicyError, PolicyInfo, PolicyRng};
use crate::signal::{Signal, Tier};
use std::collections::{BTreeMap, BTreeSet};

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
            default: "critical",
            meaning: "critical (the highest long-term sum gets the large core) or lagging (the lowest)",
        },
        OptionInfo {
            name: "immediate",
            default: "false",
            meaning: "decide by the long-term sum at once when a thread stalls or goes on",
        },
    ],
    build,
};

fn build(options: &Options<'_>) -> Result<Box<dyn Policy>, PolicyError> {
    let words = [
        ("lagging", LongTerm::Lagging),
        ("critical", LongTerm::Critical),
    ];
    let reading = options.one_of("long-term", &words, "critical or lagging")?;
    let immediate = options.flag("immediate")?;
    let form = form(options)?;
    Ok(Box::new(Swapper::new(Tcs::new(reading, immediate), form)))
}

/// Whom the long-term sum sends to the large core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongTerm {
    /// The one with the lowest.
    Lagging,
    /// The one with the highest.
    Critical,
}

/// Long-term criticality of a software thread.
#[derive(Clone, Copy, Debug, Default)]
struct Criticality {
    /// Active intervals over the instructions committed in them, ns per instruction, summed.
    sum: f64,
    /// Length of the active interval so far, ns.
    active_ns: f64,
    /// Instructions committed in it.
    done: f64,
}

impl Criticality {
    fn run(&mut self, interval_ns: u64, done: f64) {
        self.active_ns += interval_ns as f64;
        self.done += done;
    }

    /// Ends the active interval.
    fn stop(&mut self) {
        if self.done > 0.0 {
            self.sum += self.active_ns / self.done;
        }
        (self.active_ns, self.done) = (0.0, 0.0);
    }
}

#[derive(Debug)]
struct Tcs {
    reading: LongTerm,
    /// Whether the long-term sum decides at once, not at the end of the quantum.
    immediate: bool,
    long_term: BTreeMap<ThreadId, Criticality>,
    /// By logical core, what it has got done since the quantum began.
    done: BTreeMap<usize, f64>,
    /// Short-term criticality by logical core, of the last whole quantum, ns per instruction.
    short_term: BTreeMap<usize, f64>,
    groups: BTreeMap<usize, Occasion>,
}

/// When a group's next exchange is decided.
#[derive(Debug, Default)]
struct Occasion {
    /// Whose turn it is among equals.
    turns: RoundRobin,
    /// Who was active when the last interval ended, and on which logical core.
    active: BTreeSet<(usize, ThreadId)>,
    /// Whether that has changed since the quantum began.
    stirred: bool,
    /// The exchange that waits for the large core to leave the kernel.
    due: Option<Due>,
}

/// By which counter an exchange is to be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    ShortTerm,
    LongTerm,
}

impl Occasion {
    /// Notes the end of an interval.
    fn note(&mut self, group: &Group<'_>, tick: Tick, immediate: bool) {
        let on = |seat: &Seat<'_>| -> Vec<_> {
            seat.active.iter().map(|t| (seat.logical, *t)).collect()
        };
        let active = group.seats().flat_map(on).collect();
        let changed = self.active != active;
        self.active = active;
        self.stirred |= changed;
        if immediate && changed {
            self.due = Some(Due::LongTerm);
        } else if tick.is_quantum {
            let long = self.stirred && !immediate;
            self.due = Some(if long { Due::LongTerm } else { Due::ShortTerm });
        }
        self.stirred &= !tick.is_quantum;
    }

    /// By which counter to decide now, if at all.
    fn take_due(&mut self, group: &Group<'_>) -> Option<Due> {
        let waits = group.large.iter().any(Seat::in_kernel);
        if waits { None } else { self.due.take() }
    }
}

impl Tcs {
    fn new(reading: LongTerm, immediate: bool) -> Self {
        Self {
            reading,
            immediate,
            long_term: BTreeMap::new(),
            done: BTreeMap::new(),
            short_term: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// Adds the interval to the counters of those that were active in it.
    fn count(&mut self, group: &Group<'_>, tick: Tick) {
        for seat in group.seats() {
            let done = self.done.entry(seat.logical).or_default();
            *done += seat.progress();
            if tick.is_quantum {
                let done = std::mem::take(done);
                let criticality = tick.quantum_ns as f64 / done;
                self.short_term.insert(seat.logical, criticality);
            }
            for ran in &seat.ran {
                let own = self.long_term.entry(ran.thread).or_default();
                own.run(tick.interval_ns, ran.progress);
                if tick.is_quantum || !seat.active.contains(&ran.thread) {
                    own.stop();
                }
            }
        }
    }

    /// How much a logical core wants the large one; none when nobody is active on it.
    fn urgency(&self, due: Due, seat: &Seat<'_>) -> Option<f64> {
        let claims = seat.active.iter().map(|t| self.claim(*t));
        let most = claims.max_by(f64::total_cmp)?;
        match due {
            Due::ShortTerm => self.short_term.get(&seat.logical).copied(),
            Due::LongTerm => Some(most),
        }
    }

    /// A thread's claim to the large core by its long-term sum.
    fn claim(&self, thread: ThreadId) -> f64 {
        let sum = self.long_term.get(&thread).map_or(0.0, |own| own.sum);
        match self.reading {
            LongTerm::Critical => sum,
            LongTerm::Lagging => -sum,
        }
    }

    /// The exchange of the most urgent small core with the least urgent large one, if it is more
    /// urgent.
    fn most_urgent(&self, due: Due, group: &Group<'_>) -> Option<Swap> {
        // An idle core is less urgent than any.
        let of = |seat: &Seat<'_>| self.urgency(due, seat).map_or((0, 0.0), |u| (1, u));
        let order = |a: &(u8, f64), b: &(u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        let turns = &self.groups.get(&group.index)?.turns;
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
        let occasion = self.groups.entry(group.index).or_default();
        occasion.turns.follow(group);
        occasion.note(group, tick, self.immediate);
        let due = occasion.take_due(group);
        let swap = due.and_then(|due| self.most_urgent(due, group));
        if let Some((swap, occasion)) = swap.as_ref().zip(self.groups.get_mut(&group.index)) {
            occasion.turns.exchanged(swap.small, swap.large);
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

    /// A thread that committed so many instructions and waits for others by now.
    fn stalled(occupant: u32, instructions: f64) -> Did {
        Did {
            waits: true,
            ..ran(occupant, instructions)
        }
    }

    /// Four threads after a quantum in which they came, with sums of 0.
    fn bench(reading: LongTerm) -> Bench<Tcs> {
        with(Tcs::new(reading, false))
    }

    fn with(rule: Tcs) -> Bench<Tcs> {
        let mut bench = Bench::new(chip(1, 3, 1), rule);
        let all = [1, 2, 3, 4].map(|t| ran(t, 1e6));
        assert_eq!(bench.quantum(&all), [0, 1, 2, 3]);
        bench
    }

    /// Four threads after 0.4 ms of a quantum, at the end of which the first stalls, and where
    /// they are then.
    fn after_a_stall(rule: Tcs) -> (Bench<Tcs>, Vec<u32>) {
        let mut bench = with(rule);
        let did = [stalled(1, 1e6), ran(2, 2e6), ran(3, 4e6), ran(4, 8e6)];
        let pus = bench.turn(&did, 2 * QUANTUM_NS / 5, Ended::Activity);
        (bench, pus)
    }

    /// What they do for the rest of that quantum.
    fn rest() -> [Did; 4] {
        [stalled(1, 0.0), ran(2, 1e6), ran(3, 4e6), ran(4, 2e6)]
    }

    fn sums(bench: &Bench<Tcs>) -> Vec<f64> {
        let sums = bench.rule().long_term.values().map(|own| own.sum);
        sums.collect()
    }

    #[test]
    fn the_highest_short_term_counter_above_the_large_core_s_is_swapped_in() {
        let mut bench = bench(LongTerm::Critical);
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
    fn an_interval_is_charged_to_its_own_thread_when_it_ends() {
        let (mut bench, _) = after_a_stall(Tcs::new(LongTerm::Lagging, false));
        // 0.4 ms / 10^6; the others' intervals go on.
        assert_eq!(sums(&bench), [0.4, 0.0, 0.0, 0.0]);
        bench.turn(&rest(), 3 * QUANTUM_NS / 5, Ended::Quantum);
        // 1 ms / 3, 8 and 10 million.
        assert_eq!(sums(&bench), [0.4, 1.0 / 3.0, 0.125, 0.1]);
    }

    #[test]
    fn a_sum_does_not_depend_on_how_often_others_stop() {
        let mut bench = bench(LongTerm::Lagging);
        for step in 0..9 {
            let first = [ran(1, 1e5), stalled(1, 1e5)][step % 2];
            let did = [first, ran(2, 1e5), ran(3, 3e5), ran(4, 4e5)];
            bench.turn(&did, QUANTUM_NS / 10, Ended::Activity);
        }
        let last = [ran(1, 1e5), ran(2, 1e5), ran(3, 3e5), ran(4, 4e5)];
        bench.turn(&last, QUANTUM_NS / 10, Ended::Quantum);
        assert_eq!(sums(&bench)[1..], [1.0, 1.0 / 3.0, 0.25]);
    }

    #[test]
    fn when_a_thread_stalls_the_long_term_sum_decides_at_the_end_of_the_quantum() {
        for (reading, then) in [
            (LongTerm::Critical, [1, 0, 2, 3]),
            (LongTerm::Lagging, [3, 1, 2, 0]),
        ] {
            let (mut bench, at_once) = after_a_stall(Tcs::new(reading, false));
            assert_eq!(at_once, [0, 1, 2, 3]);
            // By short term the second would be first, and the first has nothing to run.
            let pus = bench.turn(&rest(), 3 * QUANTUM_NS / 5, Ended::Quantum);
            assert_eq!(pus, then);
            // A quantum in which nothing happens is short-term's again.
            let quiet = [stalled(1, 0.0), ran(2, 3e6), ran(3, 1e6), ran(4, 2e6)];
            let large = bench.quantum(&quiet).iter().position(|&pu| pu == 0);
            assert_eq!(large, Some(2));
        }
    }

    #[test]
    fn immediate_decides_by_the_long_term_sum_at_once() {
        // The second has the sum 1/3, the others 1, and the first stalls.
        let mut bench = with(Tcs::new(LongTerm::Lagging, true));
        let did = [ran(1, 1e6), ran(2, 3e6), ran(3, 1e6), ran(4, 1e6)];
        bench.quantum(&did);
        let stall = [stalled(1, 1e5), ran(2, 1e5), ran(3, 1e5), ran(4, 1e5)];
        let at_once = bench.turn(&stall, QUANTUM_NS / 10, Ended::Activity);
        assert_eq!(at_once.iter().position(|&pu| pu == 0), Some(1));
    }

    #[test]
    fn a_new_thread_with_the_lowest_sum_goes_to_the_large_core_as_in_the_worked_example() {
        let at = |reading| {
            let mut bench = bench(reading);
            bench.quantum(&[1, 2, 3, 4].map(|t| ran(t, 1e6)));
            let switched = [1, 2, 5, 4].map(|t| ran(t, 5e5));
            bench.turn(&switched, QUANTUM_NS / 2, Ended::Activity);
            // The sums are 2 and, for the new thread, 1/2.
            let did = [ran(1, 5e5), ran(2, 5e5), ran(5, 1e6), ran(4, 5e5)];
            let pus = bench.turn(&did, QUANTUM_NS / 2, Ended::Quantum);
            assert_eq!(sums(&bench), [2.0, 2.0, 2.0, 2.0, 0.5]);
            pus
        };
        assert_eq!(at(LongTerm::Lagging), [2, 1, 0, 3]);
        assert_eq!(at(LongTerm::Critical), [0, 1, 2, 3]);
    }

    #[test]
    fn threads_that_wait_are_not_active() {
        let mut bench = bench(LongTerm::Critical);
        let did = [ran(1, 1e6), stalled(2, 1e6), stalled(3, 1e6), IDLE];
        bench.quantum(&did);
        // Slow as they are, they are not swapped in.
        let did = [ran(1, 1e6), stalled(2, 0.0), stalled(3, 0.0), IDLE];
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
    }

    #[test]
    fn sums_belong_to_software_threads_not_to_logical_cores() {
        let mut bench = bench(LongTerm::Critical);
        // Thread 4 goes slowly, and is then switched out for a new one.
        let slow = [ran(1, 5e5), ran(2, 5e5), ran(3, 5e5), ran(9, 1e3)];
        bench.turn(&slow, QUANTUM_NS / 2, Ended::Activity);
        let all = [1, 2, 3, 9].map(|t| ran(t, 5e5));
        assert_eq!(
            bench.turn(&all, QUANTUM_NS / 2, Ended::Quantum),
            [0, 1, 2, 3]
        );
        // It comes back on another logical core.
        let back = [1, 4, 3, 9].map(|t| ran(t, 1e6));
        assert_eq!(bench.quantum(&back), [1, 0, 2, 3]);
    }

    #[test]
    fn a_large_core_in_the_kernel_is_waited_for_and_the_ended_quantum_decides() {
        let mut bench = bench(LongTerm::Critical);
        let kernel = Did {
            kernel: true,
            ..ran(1, 3e6)
        };
        let did = [kernel, ran(2, 1e6), ran(3, 0.5e6), ran(4, 0.75e6)];
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
        let left = [ran(1, 1.0), ran(2, 1.0), ran(3, 9.0), ran(4, 1.0)];
        assert_eq!(bench.activity(&left), [2, 1, 0, 3]);
    }
}
