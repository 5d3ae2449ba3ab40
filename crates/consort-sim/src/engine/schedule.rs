//! Putting threads on PUs and taking them off, and what that costs.

use super::thread::Status;
use super::time::{PS_PER_MS, picoseconds};
use super::{Engine, view};
use crate::os::Arrival;

impl Engine {
    /// Finds a PU for a thread that has none and queues it there, unless its program is paused.
    pub(crate) fn place(&mut self, t: usize, why: Arrival) {
        if self.programs[self.threads[t].program].paused {
            self.threads[t].status = Status::Paused;
            return;
        }
        let view = view(&self.shape, &self.pus, &self.threads);
        let pu = self.os.place(&view, t, why);
        self.put(t, pu);
        if why == Arrival::Wake {
            self.preempt(t, pu);
        }
    }

    /// Queues a thread on a PU.
    pub(crate) fn put(&mut self, t: usize, pu: usize) {
        let from = self.threads[t].pu;
        if from != Some(pu) {
            self.carry_vruntime(t, from, pu);
        }
        let thread = &mut self.threads[t];
        thread.counts.migrations += u64::from(from.is_some_and(|old| old != pu));
        thread.pu = Some(pu);
        thread.status = Status::Ready;
        self.pus[pu].queue.push_back(t);
        self.pus[pu].arm(self.slice_ps);
    }

    /// Takes a thread off its PU or out of its queue; its status is the caller's to set.
    pub(crate) fn take_off(&mut self, t: usize) {
        let Some(number) = self.threads[t].pu else {
            return;
        };
        if self.pus[number].current == Some(t) {
            self.charge(number);
        }
        if self.pus[number].current == Some(t) {
            self.threads[t].halt(self.now);
            self.leave(t, self.map.physical(number));
        }
        let (thread, pu) = (&mut self.threads[t], &mut self.pus[number]);
        let stops = pu.current == Some(t);
        if stops {
            thread.debt_ps = thread.debt_until.saturating_sub(self.now);
            thread.kernel_until = None;
            thread.relearn(&self.chip, pu.branches, &mut pu.overwritten);
            if pu.since < self.now {
                thread.ran_until = self.now;
            }
            pu.current = None;
            pu.last = Some(t);
        } else {
            pu.queue.retain(|&queued| queued != t);
        }
        pu.arm(self.slice_ps);
        if stops {
            self.note_stop(t);
        }
    }

    /// Takes a thread off and lets it sleep.
    pub(crate) fn sleep(&mut self, t: usize, status: Status) {
        self.take_off(t);
        self.threads[t].status = status;
        self.stirred = true;
    }

    /// Takes a thread from where it is to another PU; one that spins or calls to
    /// sleep does so at once instead.
    pub(crate) fn shift(&mut self, t: usize, pu: usize) {
        if self.drop_off(t) {
            return;
        }
        if self.threads[t].runnable() {
            self.take_off(t);
            self.put(t, pu);
        }
    }

    /// Gives every free PU its next thread: those that wait there first, then those that free PUs
    /// pull from others.
    pub(crate) fn settle(&mut self) {
        self.hurry();
        for pu in 0..self.pus.len() {
            self.dispatch_next(pu);
        }
        let free = |pu: &super::Pu| pu.current.is_none();
        for pu in 0..self.pus.len() {
            if self.pus.iter().all(|other| other.queue.is_empty()) {
                return;
            }
            if free(&self.pus[pu]) {
                self.pull(pu);
                self.dispatch_next(pu);
            }
        }
    }

    /// Makes the moves that the operating system makes at once.
    fn hurry(&mut self) {
        // The bound holds for any model.
        for _ in 0..self.threads.len() {
            let view = view(&self.shape, &self.pus, &self.threads);
            let Some((t, pu)) = self.os.hurry(&view) else {
                return;
            };
            self.shift(t, pu);
        }
    }

    fn dispatch_next(&mut self, pu: usize) {
        if self.pus[pu].current.is_none()
            && let Some(t) = self.take_next(pu)
        {
            self.dispatch(pu, t);
        }
    }

    fn pull(&mut self, pu: usize) {
        let view = view(&self.shape, &self.pus, &self.threads);
        if let Some(t) = self.os.pull(&view, pu) {
            self.shift(t, pu);
        }
    }

    /// Lets a thread begin on a free PU, at its cost.
    fn dispatch(&mut self, pu: usize, t: usize) {
        let physical = self.map.physical(pu);
        let place = self.chip.places()[physical];
        let hz = self.chip.frequency_hz(place);
        let switch_s = self.chip.spec().os.switch_cycles / hz;
        self.come(t, physical);
        let thread = &mut self.threads[t];
        thread.status = Status::Running;
        thread.hz = hz;
        if !thread.has_home {
            thread.has_home = true;
            thread.demand.home_node = self.chip.memory_node(place.node);
        }
        thread.counts.context_switches += 1;
        let relearn_s = std::mem::take(&mut thread.relearn_s);
        thread.kernel_until = Some(self.now + picoseconds(switch_s));
        thread.owe(self.now, picoseconds(switch_s + relearn_s));
        let branches = thread.branches();
        let state = &mut self.pus[pu];
        state.current = Some(t);
        state.since = self.now;
        state.slice_since = state.carried.take().unwrap_or(self.now);
        state.preempted = false;
        state.branches = branches;
        state.arm(self.slice_ps);
        self.stale = true;
        self.stirred = true;
    }

    /// Ends the slices that are over.
    pub(crate) fn end_slices(&mut self) {
        for pu in 0..self.pus.len() {
            let over = self.pus[pu].slice_end <= self.now;
            let Some(t) = self.pus[pu].current.filter(|_| over) else {
                continue;
            };
            if !self.drop_off(t) {
                self.take_off(t);
                self.put(t, pu);
            }
        }
    }

    /// Evens out load, as far as the operating system does.
    pub(crate) fn balance(&mut self) {
        let ms = self.now / PS_PER_MS;
        // Each move makes loads more even; the bound holds for any model.
        for _ in 0..self.threads.len() {
            let view = view(&self.shape, &self.pus, &self.threads);
            let Some((t, pu)) = self.os.balance(&view, ms) else {
                return;
            };
            self.shift(t, pu);
            self.settle();
        }
    }

    /// When the operating system evens out load next, ps.
    pub(crate) fn next_tick(&self) -> u64 {
        let ms = self.now / PS_PER_MS;
        self.os.next_balance_ms(&self.shape, ms) * PS_PER_MS
    }

    /// Begins a quantum of the policy.
    pub(crate) fn begin_quantum(&mut self) {
        let view = view(&self.shape, &self.pus, &self.threads);
        let deal = self.os.deal(&view);
        let moved = |(t, pu): &(usize, usize)| self.threads[*t].pu != Some(*pu);
        let moves: Vec<(usize, usize)> = deal.into_iter().filter(moved).collect();
        // All leave before any arrives, so that exchanges do not queue.
        for &(t, _) in &moves {
            self.take_off(t);
        }
        for (t, pu) in moves {
            self.shift(t, pu);
        }
    }
}
