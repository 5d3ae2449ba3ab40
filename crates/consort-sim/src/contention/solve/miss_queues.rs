//! Miss queues that the threads of a core share: lines on their way.
//!
//! By Little's law a thread has as many lines on their way as it asks for per cycle, times the
//! cycles that each takes. Of a queue a thread may have what co-runners leave, and an equal share
//! at least: who asks for little leaves more to the others. Prefetches have what demand misses
//! leave; those that find no room are dropped, and their lines are then missed.

use super::SolverState;
use crate::contention::layout::SharedStructures;
use crate::contention::thread_setting::ThreadSetting;
use crate::machine::{PrefetchScope, Scope};

/// Lines that a thread has on their way, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinesInFlight {
    /// Demand misses of the L1D.
    l1d: f64,
    /// Demand misses of the L2.
    l2: f64,
    /// Prefetches behind the L2, if all found room.
    prefetches: f64,
    /// Share of them that found room, 0 to 1.
    kept: f64,
}

impl LinesInFlight {
    /// Lines behind the L2.
    fn behind_l2(&self) -> f64 {
        self.l2 + self.kept * self.prefetches
    }
}

impl SolverState<'_> {
    /// Notes the demand misses that each thread can have on their way, and the share of its
    /// prefetches that find room.
    pub(super) fn divide_miss_queues(&mut self, sharing: &SharedStructures<'_>) {
        let mut flights = core::mem::take(&mut self.flights);
        for members in &sharing.cores {
            if self.rests[members[0]] {
                continue;
            }
            flights.clear();
            flights.extend(members.iter().map(|&i| self.lines_in_flight(sharing, i)));
            for (at, &i) in members.iter().enumerate() {
                let setting = &sharing.settings[i];
                let entries = f64::from(setting.core.outstanding_misses);
                let behind_l2 = entries_left(entries, &flights, at, LinesInFlight::behind_l2);
                let own = flights[at];
                let held = &mut self.held[i];
                held.misses = behind_l2.min(l1d_entries(setting, &flights, at));
                held.prefetching = kept_share(behind_l2 - own.l2, own.prefetches);
            }
        }
        self.flights = flights;
    }

    fn lines_in_flight(&self, sharing: &SharedStructures<'_>, i: usize) -> LinesInFlight {
        let setting = &sharing.settings[i];
        let misses = &self.terms[i].misses;
        let cycles = self.guess[i].time_s * setting.hz;
        let wait = self.line_wait_s(sharing, i) * setting.hz;
        let from_memory = setting.llc_cycles + setting.memory_cycles + wait;
        let from_llc = (misses.data[1] - misses.data[2]) * setting.llc_cycles;
        let from_other = (misses.data[2] - misses.data[3]) * setting.remote_cycles.unwrap_or(0.0);
        let cached = from_llc + from_other;
        let demand = misses.exposed * cached + misses.demand * from_memory;
        let from_l2 = (misses.data[0] - misses.data[1]) * setting.l2_cycles();
        let prefetched = misses.covered * cached + misses.wanted * from_memory;
        LinesInFlight {
            l1d: (from_l2 + demand) / cycles,
            l2: demand / cycles,
            prefetches: if takes_room(setting) {
                prefetched / cycles
            } else {
                0.0
            },
            kept: self.guess[i].prefetching,
        }
    }
}

/// Returns true where a core's prefetches wait in its miss queue; those of an LLC do not.
fn takes_room(setting: &ThreadSetting<'_>) -> bool {
    let prefetcher = setting.core.prefetcher.as_ref();
    prefetcher.is_some_and(|p| p.per != PrefetchScope::Llc)
}

/// Demand misses that a thread's L1D can have on their way, whose queue co-runners share where they
/// share the cache. A cache that tells no queue sets no limit of its own.
fn l1d_entries(setting: &ThreadSetting<'_>, flights: &[LinesInFlight], at: usize) -> f64 {
    let l1d = &setting.core.l1d;
    match (l1d.miss_queue.map(f64::from), l1d.per) {
        (None, _) => f64::INFINITY,
        (Some(entries), Scope::Pu) => entries,
        (Some(entries), Scope::Core) => entries_left(entries, flights, at, |flight| flight.l1d),
    }
}

/// Entries of a queue that are left to the thread `at`: all, less what each co-runner has on its
/// way, of which no more than an equal share counts.
fn entries_left(
    entries: f64,
    flights: &[LinesInFlight],
    at: usize,
    lines: impl Fn(&LinesInFlight) -> f64,
) -> f64 {
    let most = entries / flights.len() as f64;
    let others = flights.iter().enumerate().filter(|(other, _)| *other != at);
    entries
        - others
            .map(|(_, flight)| lines(flight).min(most))
            .sum::<f64>()
}

/// Share of prefetches for which there is room, 0 to 1.
fn kept_share(entries: f64, prefetches: f64) -> f64 {
    let entries = entries.max(0.0);
    if prefetches <= entries {
        1.0
    } else {
        entries / prefetches
    }
}
