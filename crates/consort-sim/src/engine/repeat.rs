//! Threads that do their part of a run again, so that as many run as before.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015): threads that finish first are restarted.
//!
//! A thread that has done its part of a run's last step does it again, locks and input and output
//! included, until the last of its siblings has done its own: then the run is over and the next
//! begins with what each has to do there. Barriers within a run are no ends: threads wait there.

use super::Engine;

impl Engine {
    /// A thread that has done its part of the run's last step does it once more.
    pub(super) fn begin_again(&mut self, p: usize, t: usize) {
        let program = &self.programs[p];
        let thread = &mut self.threads[t];
        thread.again = true;
        thread.step_left = program.work[t - program.members.start];
    }

    /// Ends what threads do again, when the run is over: they hold no locks and wait for none.
    pub(super) fn end_repeats(&mut self, p: usize) {
        let program = &mut self.programs[p];
        for lock in &mut program.locks {
            lock.holder = None;
            lock.queue.clear();
            lock.waited.set(self.now, 0);
        }
        for t in program.members.clone() {
            let thread = &mut self.threads[t];
            thread.again = false;
            thread.halt(self.now);
            thread.locks.give_up();
        }
    }
}
