//! Threads that do their part of a run again, so that as many run as before.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015): threads that finish first are restarted.
//!
//! A thread that has done its part of a run's last step does it again, locks and input and output
//! included, until the last of its siblings has done its own: then the run is over and the next
//! begins with what each has to do there. Barriers within a run are no ends: threads wait there.

use super::program::ProgramState;
use super::thread::SimulatedThread;

impl ProgramState {
    /// A thread that has done its part of the run's last step does it once more.
    pub(super) fn begin_again(&self, thread: &mut SimulatedThread, t: usize) {
        thread.again = true;
        thread.step_left = self.work[t - self.members.start];
    }

    /// Ends what threads do again, when the run is over: they hold no locks and wait for none.
    pub(super) fn end_repeats(&mut self, threads: &mut [SimulatedThread], now: u64) {
        for lock in &mut self.locks {
            lock.holder = None;
            lock.queue.clear();
            lock.waited.set(now, 0);
        }
        for thread in &mut threads[self.members.clone()] {
            thread.again = false;
            thread.halt(now);
            thread.locks.give_up();
        }
    }
}
