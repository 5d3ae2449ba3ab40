//! Locks: siblings that wait for each other too often for events.

use super::SolverState;
use crate::contention::layout::SharedStructures;
use crate::contention::stations::{QueueingStation, Visitor, wait};
use crate::contention::types::LockQueue;

impl SolverState<'_> {
    /// Siblings wait for locks as for a server that each hold occupies: `ρh/(1−ρ)`, less one's
    /// own share of the utilisation; the loop is closed as at the stations. As at any M/M/1, who
    /// has to wait does so for an exponential time of mean `h/(1−ρ)` (Kleinrock, "Queueing
    /// Systems", volume 1, section 5.12).
    pub(super) fn queue_for_locks(&mut self, sharing: &SharedStructures<'_>) {
        for members in &sharing.lockers {
            let times = &sharing.twins.times;
            let n: f64 = members.iter().map(|&i| times[i]).sum();
            let Some(lock) = sharing.settings[members[0]].demand.lock else {
                continue;
            };
            let per_instruction = lock.per_minstr / 1e6;
            let without = |i: usize| self.next[i].time_s - self.next[i].lock_s;
            let mean_time = members.iter().map(|&i| times[i] * without(i)).sum::<f64>() / n;
            let hold_s = lock.hold_instr * mean_time;
            if hold_s <= 0.0 || per_instruction <= 0.0 {
                continue;
            }
            let station = QueueingStation {
                lines_per_s: f64::from(lock.count.max(1)) / hold_s,
                service_s: 2.0 * hold_s * (n - 1.0) / n,
            };
            let visitors: Vec<Visitor> = members
                .iter()
                .map(|&i| Visitor {
                    time_s: without(i),
                    lines: per_instruction * times[i],
                    felt: per_instruction,
                })
                .collect();
            let wait_s = wait(&station, &visitors);
            let used = station.utilisation(wait_s);
            let queue = LockQueue {
                busy: used * (n - 1.0) / n,
                wait_s: hold_s / (1.0 - used),
            };
            for &i in members {
                let next = &mut self.next[i];
                let lock_s = per_instruction * wait_s;
                let time_s = next.time_s - next.lock_s + lock_s;
                // Shares of the time with the wait that was guessed become shares of the new time.
                let scale = next.time_s / time_s;
                next.lock_s = lock_s;
                self.locks[i] = queue;
                next.time_s = time_s;
                next.active *= scale;
                next.waits *= scale;
                next.wrong_path *= scale;
                next.refills *= scale;
            }
        }
    }
}
