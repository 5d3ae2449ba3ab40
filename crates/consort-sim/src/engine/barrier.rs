//! Steps of programs: arriving, waiting, going on, coming to the end.
//!
//! A thread that has done its part spins for `spin_us`, then leaves its PU (a futex wait). When
//! the last arrives, those that spin go on at once; those that sleep are woken by its call of the
//! kernel, from which both return.

use super::Engine;
use super::instance::RunMode;
use super::thread::Status;
use super::time::after;
use crate::os::Arrival;

impl Engine {
    /// A thread has done its part of the step.
    pub(crate) fn arrive(&mut self, t: usize) {
        self.let_go(t);
        let p = self.threads[t].program;
        if self.threads[t].again {
            self.begin_again(p, t);
            return;
        }
        let program = &mut self.programs[p];
        program.arrived += 1;
        if program.arrived == program.members.len() {
            if self.next_step(p) {
                self.threads[t].call_futex();
            }
        } else if self.mode == RunMode::RestartThreadsUntilAllDone && program.steps.is_last() {
            self.begin_again(p, t);
        } else {
            program.waited.set(self.now, program.arrived);
            self.wait(t);
        }
    }

    /// A thread spins for its siblings, or sleeps.
    pub(crate) fn wait(&mut self, t: usize) {
        let spin_s = self.programs[self.threads[t].program].spin_s;
        if spin_s > 0.0 {
            let thread = &mut self.threads[t];
            thread.status = Status::Spinning(after(self.now, spin_s));
            thread.halt(self.now);
            self.stale = true;
            self.stirred = true;
        } else {
            self.sleep(t, Status::Waiting);
        }
    }

    /// Begins a program's next step, or its next run, or ends it; whether anybody was woken.
    pub(crate) fn next_step(&mut self, p: usize) -> bool {
        loop {
            let program = &mut self.programs[p];
            program.arrived = 0;
            program.waited.set(self.now, 0);
            if program.steps.next(&mut program.draw, &mut program.work) {
                break;
            }
            program.complete(&self.threads, self.now);
            if self.mode == RunMode::Once {
                self.finish(p);
                return false;
            }
            self.end_repeats(p);
            let times = self.mode.times();
            self.done = self.programs.iter().all(|p| p.has_done(times));
        }
        let mut woken = false;
        for (rank, t) in self.programs[p].members.clone().enumerate() {
            let work = self.programs[p].work[rank];
            self.threads[t].step_left = work;
            if work > 0.0 {
                woken |= self.release(t);
            } else {
                self.stand_by(p, t);
            }
        }
        woken
    }

    /// A thread without a part in a step waits from its beginning on.
    fn stand_by(&mut self, p: usize, t: usize) {
        let program = &mut self.programs[p];
        program.arrived += 1;
        program.waited.set(self.now, program.arrived);
        match self.threads[t].status {
            Status::Running => self.wait(t),
            Status::Unborn => self.threads[t].status = Status::Waiting,
            // One that did its part again.
            Status::Ready | Status::Paused | Status::Io(_) => self.sleep(t, Status::Waiting),
            Status::Spinning(_) | Status::Waiting | Status::Finished => {}
        }
    }

    /// A thread that waited for its siblings goes on; whether it had to be woken, which takes whom
    /// it waited for into the kernel as well.
    pub(crate) fn release(&mut self, t: usize) -> bool {
        let asleep = self.threads[t].status == Status::Waiting;
        match self.threads[t].status {
            Status::Spinning(_) => {
                self.threads[t].status = Status::Running;
                self.threads[t].set_deadline(self.now);
                self.stale = true;
                self.stirred = true;
            }
            Status::Waiting => {
                self.threads[t].counts.futex_returns += 1;
                self.place(t, Arrival::Wake);
            }
            Status::Unborn => self.place(t, Arrival::Start),
            Status::Running => self.threads[t].set_deadline(self.now),
            Status::Ready | Status::Io(_) | Status::Paused | Status::Finished => {}
        }
        asleep
    }

    fn finish(&mut self, p: usize) {
        for t in self.programs[p].members.clone() {
            self.sleep(t, Status::Finished);
        }
        self.done = self.programs.iter().all(|p| p.has_done(1));
    }
}
