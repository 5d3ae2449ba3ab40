//! The next event: its time and its effect.

use super::Engine;
use super::thread::{SimulatedThread, ThreadStatus};
use super::time::NEVER;
use super::warming::CacheWarming;
use crate::os::PlacementReason;

impl SimulatedThread {
    /// Returns the instant of its next event, ps, if nothing else happens before.
    fn next_event(&self, now: u64) -> u64 {
        match self.status {
            ThreadStatus::Running => {
                let owes = self.debt_until > now;
                let own = if owes { self.debt_until } else { self.deadline };
                own.min(self.kernel_until.unwrap_or(NEVER))
            }
            ThreadStatus::Spinning(until)
            | ThreadStatus::Calling(until, _)
            | ThreadStatus::Io(until) => until,
            ThreadStatus::Unborn
            | ThreadStatus::Ready
            | ThreadStatus::Waiting
            | ThreadStatus::Paused
            | ThreadStatus::Finished => NEVER,
        }
    }
}

impl Engine {
    /// Returns the instant of the next event, ps.
    pub(crate) fn next_event(&self) -> u64 {
        let threads = self
            .threads
            .iter()
            .map(|t| t.next_event(self.calendar.now()));
        let others = [
            self.kernel.next_event(),
            self.programs.next_event(),
            self.calendar.next_due(),
        ];
        threads.chain(others).fold(NEVER, u64::min)
    }

    /// Handles what is due now.
    pub(crate) fn handle_due(&mut self) {
        self.begin_programs();
        for t in 0..self.threads.len() {
            self.handle_thread(t);
            if self.calendar.is_done() {
                return;
            }
        }
        self.end_slices();
        if self.calendar.take_burst() {
            self.apply_bursts();
        }
        self.calendar.expire_rates();
        if self.calendar.is_tick() {
            self.fill_free_pus();
            self.balance();
            self.expect_tick();
        }
    }

    fn begin_programs(&mut self) {
        while let Some(p) = self.programs.begin_next(self.calendar.now()) {
            self.begin_next_step(p);
        }
    }

    fn handle_thread(&mut self, t: usize) {
        self.leave_kernel(t);
        let thread = &mut self.threads[t];
        match thread.status {
            ThreadStatus::Running if thread.deadline <= self.calendar.now() => {
                self.reach_work_point(t)
            }
            ThreadStatus::Running if thread.debt_until == self.calendar.now() => {
                thread.debt_ps = 0;
                if thread.deadline == NEVER {
                    thread.set_deadline(self.calendar.now());
                }
            }
            ThreadStatus::Spinning(until) if until <= self.calendar.now() => {
                self.call_to_sleep(t, None)
            }
            ThreadStatus::Calling(until, io) if until <= self.calendar.now() => {
                self.sleep(t, io.map_or(ThreadStatus::Waiting, ThreadStatus::Io));
            }
            ThreadStatus::Io(until) if until <= self.calendar.now() => {
                thread.counts.io_returns += 1;
                self.place(t, PlacementReason::Wake);
            }
            _ => {}
        }
    }

    /// Lets a thread whose time in the kernel is over return to user mode.
    fn leave_kernel(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        if thread
            .kernel_until
            .is_some_and(|until| until <= self.calendar.now())
        {
            thread.kernel_until = None;
            thread.counts.user_returns += 1;
            self.calendar.note_activity();
        }
    }

    /// A thread has reached a point of its work.
    fn reach_work_point(&mut self, t: usize) {
        self.threads[t].halt(self.calendar.now());
        let thread = &mut self.threads[t];
        if let Some(pu) = thread
            .warm_at
            .filter(|_| thread.warming.instructions_left() <= 0.0)
        {
            self.account
                .update_warming(thread, pu, CacheWarming::begin_age);
        }
        if thread.burst.left <= 0.0 {
            thread.burst.redraw();
            self.calendar.expect_burst();
        }
        if thread.phase_left <= 0.0 {
            self.enter_next_phase(t);
        }
        if self.threads[t].step_left <= 0.0 {
            self.arrive(t);
        } else if self.threads[t].locks.left <= 0.0 {
            self.reach_lock(t);
        } else if self.threads[t].io.left <= 0.0 {
            let blocked_s = self.threads[t].io.begin_operation();
            self.call_to_sleep(t, Some(blocked_s));
        }
        self.threads[t].set_deadline(self.calendar.now());
    }

    fn enter_next_phase(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let cycle = thread.cycle;
        let next = cycle.first + (thread.phase - cycle.first + 1) % cycle.len;
        let entry = &self.phases.entries[next];
        thread.phase_left = entry.instructions;
        if next != thread.phase {
            thread.phase = next;
            thread.demand.phase.clone_from(&entry.phase);
            self.calendar.void_rates();
        }
    }

    /// Puts the drawn variations into effect.
    fn apply_bursts(&mut self) {
        for program in self.programs.iter() {
            for t in program.members.clone() {
                let Some(mean) = self.threads[t].burst.take_mean() else {
                    continue;
                };
                let whose = match program.bursts_together {
                    true => program.members.clone(),
                    false => t..t + 1,
                };
                for thread in &mut self.threads[whose] {
                    thread.demand.intensity = mean;
                    if thread.is_running() {
                        self.calendar.void_rates();
                    }
                }
            }
        }
    }
}
