//! Barriers: words on which threads wait until one wakes them all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::futex::Futex;
use crate::recorder::SystemCall;

/// `-EAGAIN`: the word had changed before the call, so the barrier was open already.
const AGAIN: i64 = -11;

/// Barriers that all threads of a role meet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Barriers {
    /// Times that one opened.
    pub opened: u64,
    /// Standard deviation of threads' work between two barriers, relative to its mean.
    pub imbalance: f64,
}

#[derive(Debug, Clone, Default)]
struct BarrierWord {
    opened: u64,
    met: BTreeSet<usize>,
    /// Instructions executed at arrival, by thread: of the threads that wait, of the threads that
    /// the latest opening released, and of the threads of the opening before.
    waiting: BTreeMap<usize, u64>,
    last: BTreeMap<usize, u64>,
    before: BTreeMap<usize, u64>,
    /// Threads that wait for the next opening already, because the thread that opens the barrier
    /// may report it late.
    next: BTreeMap<usize, u64>,
    /// Values of the word that distinguish openings.
    value: Option<u64>,
    last_value: Option<u64>,
    next_value: Option<u64>,
    /// Relative variances of threads' work, by the number of threads whose work is known: sum and
    /// number.
    variances: BTreeMap<usize, (f64, u64)>,
}

impl BarrierWord {
    /// Adds a thread that waits for the word to change from a value.
    fn arrive(&mut self, thread: usize, value: u64, executed: u64) {
        let is_known = self.last_value == Some(value);
        let is_next = !is_known && self.value.is_some_and(|now| now != value);
        let (arrivals, known) = match is_next {
            true => (&mut self.next, &mut self.next_value),
            false => (&mut self.waiting, &mut self.value),
        };
        arrivals.entry(thread).or_insert(executed);
        if !is_known {
            *known = Some(value);
        }
    }

    /// Opens the barrier for the waiting threads. Threads that found the previous opening done have
    /// been added to it by now.
    fn open(&mut self) {
        self.opened += 1;
        self.record_imbalance();
        self.met.extend(self.waiting.keys());
        self.before = std::mem::take(&mut self.last);
        self.last = std::mem::replace(&mut self.waiting, std::mem::take(&mut self.next));
        self.last_value = self.value.or(self.last_value);
        self.value = self.next_value.take();
    }

    fn record_imbalance(&mut self) {
        let since = |(thread, now): (&usize, &u64)| {
            let before = self.before.get(thread)?;
            Some(now.saturating_sub(*before) as f64)
        };
        let works: Vec<f64> = self.last.iter().filter_map(since).collect();
        if let Some(variance) = relative_variance(&works) {
            let (sum, number) = self.variances.entry(works.len()).or_default();
            *sum += variance;
            *number += 1;
        }
    }
}

fn relative_variance(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (n - 1.0) / mean.powi(2))
}

/// Takes futex calls in the order of the whole program.
#[derive(Debug, Clone, Default)]
pub(super) struct BarrierMeter {
    words: HashMap<u64, BarrierWord>,
    waits: HashMap<usize, u64>,
}

impl BarrierMeter {
    /// Adds a call that a thread makes after `executed` instructions.
    pub(super) fn handle_call(&mut self, thread: usize, call: &SystemCall, executed: u64) {
        match Futex::from_call(call) {
            Some(Futex::Wait(word, value)) => {
                self.waits.insert(thread, word);
                let word = self.words.entry(word).or_default();
                word.arrive(thread, value, executed);
            }
            Some(Futex::Wake(word, count)) if count > 1 => {
                let word = self.words.entry(word).or_default();
                word.waiting.insert(thread, executed);
                word.open();
            }
            Some(Futex::Wake(..)) | None => {}
        }
    }

    /// Adds the result of a thread's call.
    pub(super) fn handle_return(&mut self, thread: usize, result: i64) {
        let Some(word) = self.waits.remove(&thread).filter(|_| result == AGAIN) else {
            return;
        };
        if let Some(word) = self.words.get_mut(&word) {
            word.met.insert(thread);
            if let Some(executed) = word.waiting.remove(&thread) {
                word.last.entry(thread).or_insert(executed);
            }
        }
    }

    /// The barriers that as many threads of a role met as live at a time. A role is given by its
    /// threads and that number.
    pub(super) fn barriers(&self, roles: &[(Vec<usize>, usize)]) -> Option<Barriers> {
        let joins_all = |word: &&BarrierWord| {
            let met = |threads: &[usize]| threads.iter().filter(|t| word.met.contains(t)).count();
            let is_met = |(threads, most): &(Vec<usize>, usize)| *most > 1 && met(threads) >= *most;
            roles.iter().any(is_met)
        };
        let words = || self.words.values().filter(joins_all);
        // A part of the threads may be more alike than all of them.
        let whole = |word: &BarrierWord| word.variances.last_key_value().map(|(_, known)| *known);
        let (variance, compared) = words()
            .filter_map(whole)
            .fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        words().next().map(|_| Barriers {
            opened: words().map(|word| word.opened).sum(),
            imbalance: (variance / f64::max(compared as f64, 1.0)).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::call;
    use super::*;

    const WORD: u64 = 0x9000;

    /// Barriers of three threads; the last one wakes the others.
    fn met(works: [u64; 3], times: u64) -> BarrierMeter {
        let mut meter = BarrierMeter::default();
        for time in 1..=times {
            for (thread, work) in works.iter().enumerate().take(2) {
                meter.handle_call(thread, &call(128, WORD, time), work * time);
            }
            meter.handle_call(2, &call(129, WORD, 0x7fff_ffff), works[2] * time);
            meter.handle_return(0, 0);
            meter.handle_return(1, 0);
        }
        meter
    }

    #[test]
    fn barriers_are_counted_with_what_threads_did_unevenly() {
        let roles = [(vec![0, 1, 2], 3)];
        let even = met([100, 100, 100], 10).barriers(&roles).unwrap();
        assert_eq!((even.opened, even.imbalance), (10, 0.0));
        let uneven = met([80, 100, 120], 10).barriers(&roles).unwrap();
        assert!((uneven.imbalance - 0.2).abs() < 1e-9, "{uneven:?}");
    }

    #[test]
    fn word_of_part_of_a_role_is_no_barrier() {
        let meter = met([100, 100, 100], 10);
        assert_eq!(meter.barriers(&[(vec![0, 1, 2, 3], 4)]), None);
        assert_eq!(meter.barriers(&[(vec![0], 1)]), None);
        // Waking one is what locks do.
        let mut lock = BarrierMeter::default();
        lock.handle_call(0, &call(128, WORD, 2), 1);
        lock.handle_call(1, &call(129, WORD, 1), 2);
        assert_eq!(lock.barriers(&[(vec![0, 1], 2)]), None);
    }

    #[test]
    fn late_thread_met_the_barrier_before() {
        let mut meter = met([100, 100, 100], 2);
        meter.handle_call(0, &call(128, WORD, 2), 200);
        meter.handle_return(0, AGAIN);
        meter.handle_call(1, &call(128, WORD, 3), 300);
        meter.handle_call(2, &call(129, WORD, 0x7fff_ffff), 300);
        let barriers = meter.barriers(&[(vec![0, 1, 2], 3)]).unwrap();
        assert_eq!((barriers.opened, barriers.imbalance), (3, 0.0));
    }

    #[test]
    fn early_second_wait_belongs_to_next_opening() {
        let mut meter = met([80, 100, 120], 2);
        for time in [3, 4, 5] {
            meter.handle_call(0, &call(128, WORD, time), 80 * time);
            // Found the barrier open without a call.
            meter.handle_call(0, &call(128, WORD, time + 1), 80 * (time + 1));
            meter.handle_call(1, &call(128, WORD, time), 100 * time);
            meter.handle_call(2, &call(129, WORD, 0x7fff_ffff), 120 * time);
        }
        let barriers = meter.barriers(&[(vec![0, 1, 2], 3)]).unwrap();
        assert!((barriers.imbalance - 0.2).abs() < 1e-9, "{barriers:?}");
    }
}
