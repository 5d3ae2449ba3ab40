//! Putting threads on PUs and taking them off, and what that costs.

use super::Engine;
use super::thread::ThreadStatus;
use super::time::picoseconds;
use crate::os::PlacementReason;

impl Engine {
    /// Finds a PU for a thread that has none and queues it there, unless its program is paused.
    pub(crate) fn place(&mut self, t: usize, why: PlacementReason) {
        if self.programs[self.threads[t].program].paused {
            self.threads[t].status = ThreadStatus::Paused;
            return;
        }
        let pu = self.kernel.choose(&self.threads, t, why);
        self.put(t, pu);
        if why == PlacementReason::Wake {
            let now = self.calendar.now();
            self.kernel.preempt(&mut self.threads, t, pu, now);
        }
    }

    /// Queues a thread on a PU.
    pub(crate) fn put(&mut self, t: usize, pu: usize) {
        self.kernel.put(&mut self.threads[t], t, pu);
    }

    /// Takes a thread off its PU or out of its queue; its status is the caller's to set.
    pub(crate) fn take_off(&mut self, t: usize) {
        let now = self.calendar.now();
        let threads = &mut self.threads;
        let on = threads[t]
            .pu
            .filter(|&pu| self.kernel.current_thread(pu) == Some(t));
        if let Some(pu) = on {
            self.kernel.charge(threads, pu, now);
            threads[t].halt(now);
            let physical = self.kernel.physical_pu(pu);
            self.moves.leave_caches(&self.kernel, threads, t, physical);
            threads[t].debt_ps = threads[t].debt_until.saturating_sub(now);
            threads[t].kernel_until = None;
        }
        self.kernel.remove(&self.chip, (t, &mut threads[t]), now);
        if on.is_some() {
            self.note_stop(t);
        }
    }

    /// Takes a thread off and lets it sleep.
    pub(crate) fn sleep(&mut self, t: usize, status: ThreadStatus) {
        self.take_off(t);
        self.threads[t].status = status;
        self.calendar.note_activity();
    }

    /// Takes a thread from where it is to another PU; one that spins or calls to
    /// sleep does so at once instead.
    pub(crate) fn move_thread(&mut self, t: usize, pu: usize) {
        if self.sleep_at_once(t) {
            return;
        }
        if self.threads[t].is_runnable() {
            self.take_off(t);
            self.put(t, pu);
        }
    }

    /// Gives every free PU its next thread: those that wait there first, then those that free PUs
    /// pull from others.
    pub(crate) fn fill_free_pus(&mut self) {
        self.make_urgent_moves();
        for pu in 0..self.kernel.len() {
            self.dispatch_next(pu);
        }
        for pu in 0..self.kernel.len() {
            if !self.kernel.has_queued() {
                return;
            }
            if self.kernel.current_thread(pu).is_none() {
                self.pull(pu);
                self.dispatch_next(pu);
            }
        }
    }

    /// Makes the moves that the operating system makes at once.
    fn make_urgent_moves(&mut self) {
        // The bound holds for any model.
        for _ in 0..self.threads.len() {
            let Some((t, pu)) = self.kernel.urgent_move(&self.threads) else {
                return;
            };
            self.move_thread(t, pu);
        }
    }

    fn dispatch_next(&mut self, pu: usize) {
        if let Some(t) = self.kernel.take_next(&self.threads, pu) {
            self.dispatch(pu, t);
        }
    }

    fn pull(&mut self, pu: usize) {
        if let Some(t) = self.kernel.pull_thread(&self.threads, pu) {
            self.move_thread(t, pu);
        }
    }

    /// Lets a thread begin on a free PU, at its cost.
    fn dispatch(&mut self, pu: usize, t: usize) {
        let (physical, now) = (self.kernel.physical_pu(pu), self.calendar.now());
        let place = self.chip.places()[physical];
        let hz = self.chip.frequency_hz(place);
        let switch_s = self.chip.spec().os.switch_cycles / hz;
        self.enter_caches(t, physical);
        let thread = &mut self.threads[t];
        thread.status = ThreadStatus::Running;
        thread.hz = hz;
        if !thread.has_home {
            thread.has_home = true;
            thread.demand.home_node = self.chip.memory_node(place.node);
        }
        thread.counts.context_switches += 1;
        let relearn_s = std::mem::take(&mut thread.relearn_s);
        thread.kernel_until = Some(now + picoseconds(switch_s));
        thread.owe(now, picoseconds(switch_s + relearn_s));
        self.kernel.begin(pu, (t, thread), now);
        self.calendar.void_rates();
        self.calendar.note_activity();
    }

    /// Ends the slices that are over.
    pub(crate) fn end_slices(&mut self) {
        for pu in 0..self.kernel.len() {
            let Some(t) = self.kernel.expired_thread(pu, self.calendar.now()) else {
                continue;
            };
            if !self.sleep_at_once(t) {
                self.take_off(t);
                self.put(t, pu);
            }
        }
    }

    /// Evens out load, as far as the operating system does.
    pub(crate) fn balance(&mut self) {
        let ms = self.calendar.now_ms();
        // Each move makes loads more even; the bound holds for any model.
        for _ in 0..self.threads.len() {
            let Some((t, pu)) = self.kernel.balance_move(&self.threads, ms) else {
                return;
            };
            self.move_thread(t, pu);
            self.fill_free_pus();
        }
    }

    /// Notes when the operating system evens out load next.
    pub(crate) fn expect_tick(&mut self) {
        let next = self.kernel.next_tick(self.calendar.now_ms());
        self.calendar.set_tick(next);
    }

    /// Begins a quantum of the policy.
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

    /// Lets a thread come to the caches of a physical PU.
    pub(crate) fn enter_caches(&mut self, t: usize, physical: usize) {
        let threads = &mut self.threads;
        if self.moves.enter_caches(&self.kernel, threads, t, physical) {
            self.calendar.void_rates();
        }
    }

    /// Notes that a thread no longer uses what it shared.
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
}
