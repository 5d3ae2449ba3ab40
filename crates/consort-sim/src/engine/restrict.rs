//! Masks: where threads may run.

use super::Engine;
use super::thread::Status;
use crate::os::Arrival;
use consort_core::{PuId, PuSet};

impl Engine {
    /// Sets a thread's mask; [`Engine::obey`] then moves it if it must.
    pub(crate) fn restrict(&mut self, t: usize, mask: PuSet) {
        self.threads[t].allowed = mask;
    }

    /// Moves the threads that are where they may no longer be. All leave before any arrives, so
    /// that exchanges do not queue. Those that have waited longest arrive first, and those that
    /// ran last of all: several that are moved together again and again all get their turns, as
    /// under a scheduler that knows who has had least time.
    pub(crate) fn obey(&mut self) {
        let turns = self.turns();
        let mut homeless = Vec::new();
        for t in 0..self.threads.len() {
            let thread = &self.threads[t];
            let astray = |pu: usize| !thread.allowed.contains(PuId(pu as u32));
            if !thread.runnable() || !thread.pu.is_some_and(astray) {
                continue;
            }
            if let Status::Spinning(_) = thread.status {
                self.sleep(t, Status::Waiting);
            } else {
                self.take_off(t);
                self.threads[t].status = Status::Waiting;
                homeless.push(t);
            }
        }
        homeless.sort_by_key(|&t| turns[t]);
        for t in homeless {
            self.place(t, Arrival::Moved);
        }
    }

    /// Of each thread, how many are before it where it waits; those that run are behind all.
    fn turns(&self) -> Vec<usize> {
        let mut turns = vec![usize::MAX; self.threads.len()];
        for pu in &self.pus {
            for (turn, &t) in pu.queue.iter().enumerate() {
                turns[t] = turn;
            }
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunMode;
    use super::super::testing::{engine, instances, program};
    use super::super::time::PS_PER_MS;
    use super::*;

    /// Six threads on one PU, moved together to and fro at the end of every slice.
    #[test]
    fn threads_that_are_moved_together_all_get_their_turns() {
        let work = instances(&program(), 6, 1, 100.0);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        let slice_ps = engine.slice_ps;
        for turn in 0..36 {
            let pu = PuId(2 * (turn % 2));
            for t in 0..6 {
                engine.restrict(t, PuSet::from(pu));
            }
            engine.obey();
            engine.run_until(u64::from(turn + 1) * slice_ps);
        }
        let of = |t: usize| engine.threads[t].total().on_pu_s;
        let all: Vec<f64> = (0..6).map(of).collect();
        let fair = 36.0 * (slice_ps / PS_PER_MS) as f64 * 1e-3 / 6.0;
        assert!(all.iter().all(|s| (s / fair - 1.0).abs() < 0.2), "{all:?}");
    }
}
