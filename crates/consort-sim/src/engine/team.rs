//! Malleable programs: how many of a program's threads share its work.
//!
//! A program that divides its work, and is no pipeline, gives what is left of its step to the first
//! n threads at once, as a loop that is scheduled dynamically does; the others wait for the end of
//! the step, and have no part in those that follow. A serial section is finished first. A thread
//! that is blocked, or waits for a lock or holds one, keeps what it has until the step ends.

use super::Engine;
use super::lock::point::LockState;
use super::thread::ThreadStatus;

impl Engine {
    /// Lets `n` threads of a program share its work, at least one and at most all. Programs that
    /// are not malleable keep the threads that they have.
    pub(crate) fn set_team(&mut self, p: usize, n: usize) {
        let program = &mut self.programs[p];
        let serial = program.steps.is_serial();
        if program.steps.resize(n) && program.begun && !serial {
            self.share_out(p);
        }
        let progress = self.programs[p].steps.progress;
        for t in self.programs[p].members.clone() {
            let now = self.calendar.now();
            let thread = &mut self.threads[t];
            thread.halt(now);
            thread.progress = progress;
            thread.set_deadline(now);
        }
        self.calendar.void_rates();
    }

    /// Shares out what is left of the step.
    fn share_out(&mut self, p: usize) {
        let free = |thread: &super::SimulatedThread| {
            !matches!(
                thread.status,
                ThreadStatus::Calling(_, Some(_)) | ThreadStatus::Io(_) | ThreadStatus::Finished
            ) && thread.locks.place == LockState::Outside
                && !thread.again
        };
        let members = self.programs[p].members.clone();
        let mut left = 0.0;
        for t in members
            .clone()
            .filter(|&t| free(&self.threads[t]))
            .collect::<Vec<_>>()
        {
            let thread = &mut self.threads[t];
            thread.halt(self.calendar.now());
            left += thread.step_left;
        }
        let team = self.programs[p].steps.team();
        let takers = members.clone().take(team);
        let takers = takers.filter(|&t| free(&self.threads[t])).count();
        // What nobody can take stays where it is until the step ends.
        if left <= 0.0 || takers == 0 {
            return;
        }
        let each = left / takers as f64;
        for (rank, t) in members.enumerate() {
            if free(&self.threads[t]) {
                let work = if rank < team { each } else { 0.0 };
                self.assign_work(p, t, work);
            }
        }
    }

    /// Gives a thread its new part of the step.
    fn assign_work(&mut self, p: usize, t: usize, work: f64) {
        let had = std::mem::replace(&mut self.threads[t].step_left, work) > 0.0;
        match (had, work > 0.0) {
            (false, true) => {
                self.programs[p].arrived -= 1;
                self.release(t);
            }
            (true, false) => {
                self.programs[p].arrived += 1;
                match self.threads[t].status {
                    ThreadStatus::Running => self.wait(t),
                    ThreadStatus::Ready | ThreadStatus::Paused => {
                        self.sleep(t, ThreadStatus::Waiting)
                    }
                    _ => {}
                }
            }
            _ => self.threads[t].set_deadline(self.calendar.now()),
        }
        let arrived = self.programs[p].arrived;
        self.programs[p].waited.set(self.calendar.now(), arrived);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunMode;
    use super::super::testing::{engine, instances, program_with};
    use super::super::time::{PS_PER_MS, seconds};
    use proptest::prelude::*;

    const PLAIN: &str = "[threads]\ndefault = 4\nmax = 8\nspin_us = 5.0";
    const BARRIERS: &str = "[threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\nserial_share = 0.05\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }";
    const LOCKS: &str = "[io]\nper_ginstr = 500.0\nblocked_us = 40.0\n\
        [threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }\n\
        lock = { per_minstr = 5.0, hold_instr = 20000.0, count = 1 }";

    /// Seconds that four threads take when `team` of them share the work from the beginning.
    fn time(spec: &str, team: usize) -> f64 {
        let work = instances(&program_with(spec), 1, 4, 0.1);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        engine.set_team(0, team);
        engine.run_until(100_000 * PS_PER_MS);
        assert!(engine.is_done());
        seconds(engine.now_ps())
    }

    #[test]
    fn fewer_threads_take_as_many_times_longer() {
        let even = BARRIERS.replace("imbalance = 0.2", "imbalance = 0.0");
        for (spec, serial) in [(PLAIN, 0.0), (&even, 0.05)] {
            let amdahl = |n: usize| serial + (1.0 - serial) / n as f64;
            let four = time(spec, 4);
            for team in 1..4 {
                let (ratio, expected) = (time(spec, team) / four, amdahl(team) / amdahl(4));
                assert!((ratio / expected - 1.0).abs() < 0.02, "{team}: {ratio}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn whatever_the_teams_and_pauses_the_work_is_done(
            turns in prop::collection::vec((1u64..400, 1usize..7, any::<bool>()), 1..60),
            threads in 2u32..7,
            spec in prop::sample::select(vec![PLAIN, BARRIERS, LOCKS]),
        ) {
            let work = instances(&program_with(spec), 1, threads, 0.02);
            let mut engine = engine("linux", RunMode::Once, &work, 1);
            let mut now = 0;
            for (us, team, paused) in turns {
                engine.set_team(0, team);
                engine.set_paused(0, paused);
                now += us * PS_PER_MS / 1000;
                engine.run_until(now);
            }
            engine.set_paused(0, false);
            engine.run_until(now + 10_000 * PS_PER_MS);
            prop_assert!(engine.is_done());
            let done = engine.results()[0].instructions;
            prop_assert!((done / 0.02e9 - 1.0).abs() < 1e-9, "{}", done);
        }
    }
}
