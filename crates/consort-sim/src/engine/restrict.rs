//! Masks: where threads may run.

use super::Engine;
use super::thread::ThreadStatus;
use crate::os::PlacementReason;
use consort_core::{PuId, PuSet};

impl Engine {
    /// Sets a thread's mask; [`Engine::enforce_masks`] then moves it if it must.
    pub(crate) fn restrict(&mut self, t: usize, mask: PuSet) {
        self.threads[t].allowed = mask;
    }

    /// Moves the threads that are where they may no longer be. All leave before any arrives, so
    /// that exchanges do not queue. Those that ran longest ago arrive first: several that are
    /// moved together again and again all get their turns, as under a scheduler that knows who has
    /// had least time. The time slice that they were in goes on where they come to: otherwise
    /// threads that share a PU by time would change in step with the moves, and always the same one
    /// would be on when it comes to a large core.
    pub(crate) fn enforce_masks(&mut self) {
        let astray: Vec<usize> = (0..self.threads.len())
            .filter(|&t| self.is_astray(t))
            .collect();
        let slices: Vec<_> = astray.iter().filter_map(|&t| self.slice_start(t)).collect();
        let mut homeless = Vec::new();
        for t in astray {
            if !self.sleep_at_once(t) {
                self.take_off(t);
                self.threads[t].status = ThreadStatus::Waiting;
                homeless.push(t);
            }
        }
        homeless.sort_by_key(|&t| self.threads[t].ran_until);
        for t in homeless {
            self.place(t, PlacementReason::Moved);
        }
        for (t, since) in slices {
            if let Some(pu) = self.threads[t].pu {
                self.kernel.carry_slice(pu, since);
            }
        }
    }

    fn is_astray(&self, t: usize) -> bool {
        let thread = &self.threads[t];
        let outside = |pu: usize| !thread.allowed.contains(PuId(pu as u32));
        thread.is_runnable() && thread.pu.is_some_and(outside)
    }

    /// Returns a thread on a PU and the start of its slice, ps, if others wait there.
    fn slice_start(&self, t: usize) -> Option<(usize, u64)> {
        let since = self.kernel.slice_since(t, self.threads[t].pu?)?;
        Some((t, since))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunMode;
    use super::super::testing::{engine, instances, program};
    use super::super::time::after;
    use super::*;

    /// Threads on one PU, moved together every so many slices, at the very end of one.
    fn is_shared_fairly(n: usize, slices: u32) {
        let work = instances(&program(), n, 1, 100.0);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        let slice_ps = after(0, engine.chip.spec().os.slice_ms * 1e-3);
        let turns = 12 * n as u32;
        for turn in 0..turns {
            if turn % slices == 0 {
                let pu = PuId(2 * (turn / slices % 2));
                (0..n).for_each(|t| engine.restrict(t, PuSet::from(pu)));
                engine.enforce_masks();
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
    fn a_slice_goes_on_where_its_threads_come_to() {
        let work = instances(&program(), 2, 1, 100.0);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        let slice_ps = after(0, engine.chip.spec().os.slice_ms * 1e-3);
        let to = |engine: &mut Engine, pu: u32| {
            (0..2).for_each(|t| engine.restrict(t, PuSet::from(PuId(pu))));
            engine.enforce_masks();
        };
        to(&mut engine, 0);
        // Half a slice of either on each of two visits to PU 2, each as long as a slice.
        let mut there = [0.0; 2];
        for visit in 0..2u64 {
            engine.run_until((4 * visit + 1) * slice_ps + slice_ps / 2);
            let before = [0, 1].map(|t| engine.threads[t].total().on_pu_s);
            to(&mut engine, 2);
            engine.run_until((4 * visit + 2) * slice_ps + slice_ps / 2);
            to(&mut engine, 0);
            for t in 0..2 {
                there[t] += engine.threads[t].total().on_pu_s - before[t];
            }
        }
        let share = there[0] / (there[0] + there[1]);
        assert!((share - 0.5).abs() < 0.05, "{there:?}");
    }

    #[test]
    fn threads_that_are_moved_together_all_get_their_turns() {
        for (n, slices) in [(6, 1), (2, 1), (2, 2), (2, 3), (4, 3)] {
            is_shared_fairly(n, slices);
        }
    }
}
