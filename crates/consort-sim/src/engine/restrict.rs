//! Masks: where threads may run.

use super::Engine;
use super::thread::Status;
use crate::os::Arrival;
use consort_core::{PuId, PuSet};

impl Engine {
    /// Sets a thread's mask; [`Engine::obey`] then moves it if it must.
    pub(crate) fn restrict(&mut self, t: usize, mask: PuSet) {
        self.threads[t].allowed = mask;
    }

    /// Moves the threads that are where they may no longer be. All leave before any arrives, so
    /// that exchanges do not queue.
    pub(crate) fn obey(&mut self) {
        let mut homeless = Vec::new();
        for t in 0..self.threads.len() {
            let thread = &self.threads[t];
            let astray = |pu: usize| !thread.allowed.contains(PuId(pu as u32));
            if !thread.runnable() || !thread.pu.is_some_and(astray) {
                continue;
            }
            if let Status::Spinning(_) = thread.status {
                self.sleep(t, Status::Waiting);
            } else {
                self.take_off(t);
                self.threads[t].status = Status::Waiting;
                homeless.push(t);
            }
        }
        for t in homeless {
            self.place(t, Arrival::Moved);
        }
    }
}
