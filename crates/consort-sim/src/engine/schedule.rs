//! Threads on CPUs: placing them, taking them off, moving them, and what that costs.

use super::Engine;
use super::calendar::picoseconds;
use super::thread::ThreadStatus;
use crate::os::PlacementReason;
use consort_core::{PuId, PuSet};

impl Engine {
    /// Finds a CPU for a thread that has none and queues it there, unless its program is paused.
    pub(crate) fn place(&mut self, t: usize, why: PlacementReason) {
        if self.programs[self.threads[t].program].paused {
            self.threads[t].status = ThreadStatus::Paused;
            return;
        }
        let pu = self.kernel.choose(&self.threads, t, why);
        let now = self.calendar.now();
        self.kernel.put(&mut self.threads, t, (pu, why), now);
        if why == PlacementReason::Wake {
            self.kernel.preempt(&self.threads, t, pu, now);
        }
    }

    /// Queues a thread that could run already.
    fn requeue(&mut self, t: usize, pu: usize) {
        let now = self.calendar.now();
        let moved = (pu, PlacementReason::Moved);
        self.kernel.put(&mut self.threads, t, moved, now);
    }

    /// Takes a thread off its CPU or out of its queue; the caller sets its status.
    pub(crate) fn take_off(&mut self, t: usize) {
        let now = self.calendar.now();
        let threads = &mut self.threads;
        let on = threads[t]
            .queue
            .pu
            .filter(|&pu| self.kernel.current_thread(pu) == Some(t));
        if let Some(pu) = on {
            self.kernel.charge(threads, pu, now);
            threads[t].halt(now);
            let physical = self.kernel.physical_pu(pu);
            self.moves.leave_caches(&self.kernel, threads, t, physical);
            threads[t].clock.keep_debt(now);
            threads[t].clock.kernel_until = None;
        }
        self.kernel.remove(&self.chip, (t, &mut threads[t]), now);
        if on.is_some() {
            self.note_stop(t);
        }
    }

    pub(crate) fn sleep(&mut self, t: usize, status: ThreadStatus) {
        self.take_off(t);
        self.threads[t].status = status;
        self.calendar.note_activity();
    }

    /// Moves a thread to another CPU; one that spins or is calling the kernel to sleep does so at
    /// once instead.
    pub(crate) fn move_thread(&mut self, t: usize, pu: usize) {
        if self.sleep_at_once(t) {
            return;
        }
        if self.threads[t].is_runnable() {
            self.take_off(t);
            self.requeue(t, pu);
        }
    }

    /// Gives every free CPU its next thread: from its own queue first, then from the queues of
    /// others.
    pub(crate) fn fill_free_pus(&mut self) {
        for pu in 0..self.kernel.len() {
            self.dispatch_next(pu);
        }
        for pu in 0..self.kernel.len() {
            if !self.kernel.has_queued() {
                return;
            }
            if self.kernel.current_thread(pu).is_none() {
                if let Some(t) = self
                    .kernel
                    .pull_thread(&self.threads, (pu, self.calendar.now()))
                {
                    self.move_thread(t, pu);
                }
                self.dispatch_next(pu);
            }
        }
    }

    fn dispatch_next(&mut self, pu: usize) {
        if let Some(t) = self.kernel.take_next(&self.threads, pu) {
            self.dispatch(pu, t);
        }
    }

    /// Begins a thread on a free CPU and charges it for the switch.
    fn dispatch(&mut self, pu: usize, t: usize) {
        let (physical, now) = (self.kernel.physical_pu(pu), self.calendar.now());
        let place = self.chip.places()[physical];
        let hz = self.chip.frequency_hz(place);
        let switch_s = self.chip.spec().os.switch_cycles / hz;
        self.enter_caches(t, physical);
        let thread = &mut self.threads[t];
        thread.status = ThreadStatus::Running;
        thread.clock.hz = hz;
        thread.clock.first_tick = self.kernel.first_tick(pu);
        if !thread.caches.has_home {
            thread.caches.has_home = true;
            thread.demand.home_node = self.chip.memory_node(place.node);
        }
        thread.counters.recent.context_switches += 1;
        let relearn_s = std::mem::take(&mut thread.clock.relearn_s);
        thread.clock.kernel_until = Some(now + picoseconds(switch_s));
        thread.owe(now, picoseconds(switch_s + relearn_s));
        self.kernel.begin(pu, (t, thread), now);
        self.calendar.void_rates();
        self.calendar.note_activity();
    }

    pub(crate) fn end_slices(&mut self) {
        for pu in 0..self.kernel.len() {
            let Some(t) = self.kernel.expired_thread(pu, self.calendar.now()) else {
                continue;
            };
            if !self.sleep_at_once(t) {
                self.take_off(t);
                self.requeue(t, pu);
            }
        }
    }

    pub(crate) fn balance(&mut self) {
        let ms = self.calendar.now_ms();
        // Each move makes loads more even; bounded, so that a model that never stops cannot hang
        // the run.
        for _ in 0..self.threads.len() {
            let Some((t, pu)) = self.kernel.balance_move(&self.threads, ms) else {
                return;
            };
            self.move_thread(t, pu);
            self.fill_free_pus();
        }
    }

    pub(crate) fn expect_tick(&mut self) {
        let next = self.kernel.next_tick(&self.threads, self.calendar.now_ms());
        self.calendar.set_tick(next);
    }

    pub(crate) fn begin_quantum(&mut self) {
        let moves = self.kernel.deal_threads(&self.threads);
        // All leave before any arrives, so that exchanges do not queue.
        for &(t, _) in &moves {
            self.take_off(t);
        }
        for (t, pu) in moves {
            self.move_thread(t, pu);
        }
    }

    pub(crate) fn enter_caches(&mut self, t: usize, physical: usize) {
        let threads = &mut self.threads;
        if self.moves.enter_caches(&self.kernel, threads, t, physical) {
            self.calendar.void_rates();
        }
    }

    /// Notes that a thread no longer uses what it shared with others.
    ///
    /// Others on its core feel that at once. On other cores caches and queues of memory take some
    /// time to change, so that rates there are worked out again after [`super::calendar::LAG_PS`]
    /// or when a thread begins to run, whichever is first: siblings that wait for each other only
    /// for a moment are one change, not as many as there are of them.
    pub(crate) fn note_stop(&mut self, t: usize) {
        self.account.note_stop();
        if self.kernel.shares_core(&self.chip, &self.threads[t]) {
            self.calendar.void_rates();
        } else {
            self.calendar.void_rates_soon();
        }
    }

    /// Sets a thread's mask; [`Engine::enforce_masks`] then moves it if it must.
    pub(crate) fn restrict(&mut self, t: usize, mask: PuSet) {
        self.threads[t].queue.allowed = mask;
    }

    /// Moves the threads that are on CPUs outside their masks. All leave before any arrives, so
    /// that exchanges do not queue. The threads that ran longest ago arrive first, so that several
    /// that are moved together again and again all get their turns. They continue their time slice
    /// where they arrive: otherwise threads that share a CPU by time would change in step with the
    /// moves, and always the same one would run when the CPU is a large core.
    pub(crate) fn enforce_masks(&mut self) {
        let (mut astray, mut slices) = (Vec::new(), Vec::new());
        for (t, thread) in self.threads.iter().enumerate() {
            let outside = |pu: &usize| !thread.queue.allowed.contains(PuId(*pu as u32));
            if let Some(pu) = thread.queue.pu.filter(outside)
                && thread.is_runnable()
            {
                astray.push(t);
                slices.extend(self.kernel.slice_since(t, pu).map(|since| (t, since)));
            }
        }
        let mut homeless = Vec::new();
        for t in astray {
            if !self.sleep_at_once(t) {
                self.take_off(t);
                self.threads[t].status = ThreadStatus::Waiting;
                homeless.push(t);
            }
        }
        homeless.sort_by_key(|&t| self.threads[t].queue.ran_until);
        for t in homeless {
            self.place(t, PlacementReason::Moved);
        }
        for (t, since) in slices {
            if let Some(pu) = self.threads[t].queue.pu {
                self.kernel.carry_slice(pu, since);
            }
        }
    }

    /// Pauses or resumes a program.
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

    /// Pauses a thread; one that sleeps is paused when it would be woken, see [`Engine::place`].
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
    use super::*;
    use crate::engine::RunMode;
    use crate::engine::calendar::{PS_PER_MS, after};
    use crate::engine::testing::{engine, instances, program, program_with};
    use proptest::prelude::*;

    /// Threads on one CPU, moved together every so many slices, at the very end of one.
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
            .map(|thread| thread.counters.total().on_pu_s)
            .collect();
        let fair = f64::from(turns) * slice_ps as f64 * 1e-12 / n as f64;
        assert!(all.iter().all(|s| (s / fair - 1.0).abs() < 0.2), "{all:?}");
    }

    #[test]
    fn slice_continues_after_common_move() {
        let work = instances(&program(), 2, 1, 100.0);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        let slice_ps = after(0, engine.chip.spec().os.slice_ms * 1e-3);
        let to = |engine: &mut Engine, pu: u32| {
            (0..2).for_each(|t| engine.restrict(t, PuSet::from(PuId(pu))));
            engine.enforce_masks();
        };
        to(&mut engine, 0);
        // Half a slice of either on each of two visits to CPU 2, each as long as a slice.
        let mut there = [0.0; 2];
        for visit in 0..2u64 {
            engine.run_until((4 * visit + 1) * slice_ps + slice_ps / 2);
            let before = [0, 1].map(|t| engine.threads[t].counters.total().on_pu_s);
            to(&mut engine, 2);
            engine.run_until((4 * visit + 2) * slice_ps + slice_ps / 2);
            to(&mut engine, 0);
            for t in 0..2 {
                there[t] += engine.threads[t].counters.total().on_pu_s - before[t];
            }
        }
        // The ticks of CPU 2 are 0.5 ms later than those of CPU 0, so that a slice of 4 ms ends 0.5
        // ms later there.
        let share = there[0] / (there[0] + there[1]);
        assert!((share - 0.5).abs() < 0.13, "{there:?}");
    }

    #[test]
    fn threads_moved_together_share_fairly() {
        for (n, slices) in [(6, 1), (2, 1), (2, 2), (2, 3), (4, 3)] {
            is_shared_fairly(n, slices);
        }
    }

    #[test]
    fn only_uneven_loads_are_evened_out() {
        for os in ["linux", "linux-grouped"] {
            for n in [4, 8] {
                let mut engine = engine(os, RunMode::Once, &instances(&program(), n, 1, 9.0), 1);
                engine.run_until(PS_PER_MS);
                assert!(!engine.calendar.expects_tick(), "{os} {n}");
                let both = PuSet::from_iter([PuId(0), PuId(1)]);
                (0..n).for_each(|t| engine.restrict(t, both.clone()));
                engine.enforce_masks();
                engine.run_until(2 * PS_PER_MS);
                assert!(engine.calendar.expects_tick(), "{os} {n}");
            }
        }
    }

    const BARRIERS: &str = "[io]\nper_ginstr = 500.0\nblocked_us = 40.0\n\
        [threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }\n\
        lock = { per_minstr = 5.0, hold_instr = 20000.0, count = 1 }";

    #[test]
    fn paused_program_stops_and_keeps_work() {
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
        fn paused_and_resumed_programs_finish_their_work(
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
