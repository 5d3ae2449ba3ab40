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
    /// that exchanges do not queue. Those that ran longest ago arrive first: several that are
    /// moved together again and again all get their turns, as under a scheduler that knows who has
    /// had least time.
    pub(crate) fn obey(&mut self) {
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
        homeless.sort_by_key(|&t| self.threads[t].ran_until);
        for t in homeless {
            self.place(t, Arrival::Moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunMode;
    use super::super::testing::{engine, instances, program};
    use super::*;

    /// Threads on one PU, moved together every so many slices, at the very end of one.
    fn is_shared_fairly(n: usize, slices: u32) {
        let work = instances(&program(), n, 1, 100.0);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        let slice_ps = engine.slice_ps;
        let turns = 12 * n as u32;
        for turn in 0..turns {
            if turn % slices == 0 {
                let pu = PuId(2 * (turn / slices % 2));
                (0..n).for_each(|t| engine.restrict(t, PuSet::from(pu)));
                engine.obey();
            }
            engine.run_until(u64::from(turn + 1) * slice_ps);
        }
        let all: Vec<f64> = { engine.threads.iter() }
            .map(|thread| thread.total().on_pu_s)
            .collect();
        let fair = f64::from(turns) * slice_ps as f64 * 1e-12 / n as f64;
        assert!(all.iter().all(|s| (s / fair - 1.0).abs() < 0.2), "{all:?}");
    }

    #[test]
    fn threads_that_are_moved_together_all_get_their_turns() {
        for (n, slices) in [(6, 1), (2, 1), (2, 2), (2, 3), (4, 3)] {
            is_shared_fairly(n, slices);
        }
    }
}
