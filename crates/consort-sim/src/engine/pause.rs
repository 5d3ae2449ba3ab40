//! Pausing programs, as a freezer does: their threads leave their PUs and none comes back.

use super::Engine;
use super::thread::ThreadStatus;
use crate::os::PlacementReason;

impl Engine {
    /// Pauses a program or lets it go on; nothing when that is how it is.
    pub(crate) fn set_paused(&mut self, p: usize, on: bool) {
        if self.programs[p].paused == on {
            return;
        }
        self.programs[p].paused = on;
        for t in self.programs[p].members.clone() {
            if on {
                self.freeze(t);
            } else if self.threads[t].status == ThreadStatus::Paused {
                self.place(t, PlacementReason::Moved);
            }
        }
    }

    /// A thread that sleeps is frozen where it would be woken: see [`Engine::place`].
    fn freeze(&mut self, t: usize) {
        match self.threads[t].status {
            ThreadStatus::Running | ThreadStatus::Ready => self.sleep(t, ThreadStatus::Paused),
            ThreadStatus::Spinning(_) | ThreadStatus::Calling(..) => {
                self.sleep_at_once(t);
            }
            ThreadStatus::Unborn
            | ThreadStatus::Waiting
            | ThreadStatus::Io(_)
            | ThreadStatus::Paused
            | ThreadStatus::Finished => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunMode;
    use super::super::testing::{engine, instances, program, program_with};
    use super::super::time::PS_PER_MS;
    use proptest::prelude::*;

    const BARRIERS: &str = "[io]\nper_ginstr = 500.0\nblocked_us = 40.0\n\
        [threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }\n\
        lock = { per_minstr = 5.0, hold_instr = 20000.0, count = 1 }";

    #[test]
    fn a_paused_program_does_nothing_and_loses_nothing() {
        let work = instances(&program(), 2, 1, 0.02);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        engine.run_until(PS_PER_MS);
        engine.set_paused(0, true);
        let done = engine.results()[0].instructions;
        engine.run_until(5 * PS_PER_MS);
        assert_eq!(engine.results()[0].instructions, done);
        engine.set_paused(0, false);
        engine.run_until(1000 * PS_PER_MS);
        assert!(engine.is_done());
        let whole = engine.results()[0].instructions;
        assert!((whole / 0.02e9 - 1.0).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn programs_paused_and_resumed_at_any_time_end_with_their_work_done(
            turns in prop::collection::vec((1u64..400, any::<bool>(), any::<bool>()), 1..60),
            threads in 1u32..7,
        ) {
            let work = instances(&program_with(BARRIERS), 2, threads, 0.01);
            let mut engine = engine("linux", RunMode::Once, &work, 1);
            let mut now = 0;
            for (us, first, second) in turns {
                engine.set_paused(0, first);
                engine.set_paused(1, second);
                now += us * PS_PER_MS / 1000;
                engine.run_until(now);
            }
            engine.set_paused(0, false);
            engine.set_paused(1, false);
            engine.run_until(now + 10_000 * PS_PER_MS);
            prop_assert!(engine.is_done());
            for result in engine.results() {
                prop_assert!((result.instructions / 0.01e9 - 1.0).abs() < 1e-9);
            }
        }
    }
}
