//! Steps of programs: arriving, waiting, going on, coming to the end.
//!
//! A thread that has done its part spins for `spin_us`, then leaves its PU (a futex wait, at the
//! costs of [`super::calls`]). When
//! the last arrives, those that spin go on at once; those that sleep are woken by its call of the
//! kernel, from which both return.

use super::Engine;
use super::thread::ThreadStatus;
use super::time::after;
use crate::os::PlacementReason;

impl Engine {
    /// A thread has done its part of the step.
    pub(crate) fn arrive(&mut self, t: usize) {
        self.release_lock(t);
        let p = self.threads[t].program;
        if self.threads[t].again {
            self.programs[p].begin_again(&mut self.threads[t], t);
            return;
        }
        let program = &mut self.programs[p];
        program.arrived += 1;
        if program.arrived == program.members.len() {
            let woken = self.begin_next_step(p);
            self.pay_for_waking(t, woken);
        } else if self.programs.repeats(p) {
            self.programs[p].begin_again(&mut self.threads[t], t);
        } else {
            let program = &mut self.programs[p];
            program.waited.set(self.calendar.now(), program.arrived);
            self.wait(t);
        }
    }

    /// A thread spins for its siblings, or sleeps.
    pub(crate) fn wait(&mut self, t: usize) {
        let spin_s = self.programs[self.threads[t].program].spin_s;
        if spin_s > 0.0 {
            let thread = &mut self.threads[t];
            thread.status = ThreadStatus::Spinning(after(self.calendar.now(), spin_s));
            thread.halt(self.calendar.now());
            self.note_stop(t);
            self.calendar.note_activity();
        } else {
            self.call_to_sleep(t, None);
        }
    }

    /// Begins a program's next step, or its next run, or ends it; how many were woken.
    pub(crate) fn begin_next_step(&mut self, p: usize) -> usize {
        loop {
            let program = &mut self.programs[p];
            program.arrived = 0;
            program.waited.set(self.calendar.now(), 0);
            if program
                .steps
                .begin_next(&mut program.draw, &mut program.work)
            {
                break;
            }
            program.complete(&self.threads, self.calendar.now());
            if self.programs.runs_once() {
                self.finish(p);
                return 0;
            }
            self.programs[p].end_repeats(&mut self.threads, self.calendar.now());
            self.calendar.set_done(self.programs.are_done());
        }
        let mut woken = 0;
        for (rank, t) in self.programs[p].members.clone().enumerate() {
            let work = self.programs[p].work[rank];
            self.threads[t].step_left = work;
            if work > 0.0 {
                woken += usize::from(self.release(t));
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
        program.waited.set(self.calendar.now(), program.arrived);
        match self.threads[t].status {
            ThreadStatus::Running => self.wait(t),
            ThreadStatus::Unborn => self.threads[t].status = ThreadStatus::Waiting,
            // One that did its part again.
            ThreadStatus::Ready | ThreadStatus::Paused | ThreadStatus::Io(_) => {
                self.sleep(t, ThreadStatus::Waiting)
            }
            ThreadStatus::Calling(_, Some(_)) => self.sleep(t, ThreadStatus::Waiting),
            ThreadStatus::Spinning(_)
            | ThreadStatus::Calling(_, None)
            | ThreadStatus::Waiting
            | ThreadStatus::Finished => {}
        }
    }

    /// A thread that waited for its siblings goes on; whether it had to be woken, which takes whom
    /// it waited for into the kernel as well.
    pub(crate) fn release(&mut self, t: usize) -> bool {
        let slept = matches!(
            self.threads[t].status,
            ThreadStatus::Waiting | ThreadStatus::Calling(_, None)
        );
        match self.threads[t].status {
            ThreadStatus::Spinning(_) => {
                self.threads[t].status = ThreadStatus::Running;
                self.threads[t].set_deadline(self.calendar.now());
                self.calendar.void_rates();
                self.calendar.note_activity();
            }
            ThreadStatus::Waiting => {
                self.threads[t].counts.futex_returns += 1;
                self.place(t, PlacementReason::Wake);
            }
            ThreadStatus::Calling(until, None) => self.interrupt_call(t, until),
            ThreadStatus::Unborn => self.place(t, PlacementReason::Start),
            ThreadStatus::Running => self.threads[t].set_deadline(self.calendar.now()),
            ThreadStatus::Ready
            | ThreadStatus::Calling(_, Some(_))
            | ThreadStatus::Io(_)
            | ThreadStatus::Paused
            | ThreadStatus::Finished => {}
        }
        slept
    }

    fn finish(&mut self, p: usize) {
        for t in self.programs[p].members.clone() {
            self.sleep(t, ThreadStatus::Finished);
        }
        self.calendar.set_done(self.programs.are_done());
    }
}
