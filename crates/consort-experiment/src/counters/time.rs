//! Division of the time of threads by cause.

use consort_sim::engine::ThreadCounts;
use serde::Serialize;

/// Time of threads, summed over them, s. A thread that has ended spends none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadTime {
    /// On PUs.
    pub on_pu_s: f64,
    /// Of `on_pu_s`, spinning for siblings.
    pub spin_s: f64,
    /// Of `on_pu_s`, context switches and what strangers' turns made a branch predictor forget.
    pub overhead_s: f64,
    /// In run queues.
    pub queue_s: f64,
    /// Asleep until siblings let them go on, at barriers and locks.
    pub asleep_s: f64,
    /// In input and output.
    pub io_s: f64,
    /// Paused by a policy.
    pub paused_s: f64,
}

impl ThreadTime {
    /// Adds the time of others.
    pub fn add(&mut self, other: &Self) {
        self.on_pu_s += other.on_pu_s;
        self.spin_s += other.spin_s;
        self.overhead_s += other.overhead_s;
        self.queue_s += other.queue_s;
        self.asleep_s += other.asleep_s;
        self.io_s += other.io_s;
        self.paused_s += other.paused_s;
    }

    /// All of it, s.
    pub fn total_s(&self) -> f64 {
        self.on_pu_s + self.queue_s + self.asleep_s + self.io_s + self.paused_s
    }

    /// Share of the time that is on PUs, 0 to 1: utilisation, as an operating system reckons it
    /// for threads that have a PU each, spinning included. None where no time has passed.
    pub fn utilisation(&self) -> Option<f64> {
        let total_s = self.total_s();
        (total_s > 0.0).then(|| self.on_pu_s / total_s)
    }
}

impl From<&ThreadCounts> for ThreadTime {
    fn from(counts: &ThreadCounts) -> Self {
        let paused_s = counts.blocked_s - counts.asleep_s - counts.io_s;
        Self {
            on_pu_s: counts.on_pu_s,
            spin_s: counts.spin_s,
            overhead_s: counts.overhead_s,
            queue_s: counts.wait_s,
            asleep_s: counts.asleep_s,
            io_s: counts.io_s,
            // What rounding leaves of a difference is no time.
            paused_s: if paused_s > 1e-9 * counts.blocked_s {
                paused_s
            } else {
                0.0
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_time_are_the_whole() {
        let counts = ThreadCounts {
            on_pu_s: 4.0,
            wait_s: 1.0,
            blocked_s: 3.0,
            asleep_s: 1.5,
            io_s: 0.5,
            ..ThreadCounts::default()
        };
        let mut time = ThreadTime::from(&counts);
        assert_eq!((time.paused_s, time.total_s()), (1.0, 8.0));
        assert_eq!(time.utilisation(), Some(0.5));
        time.add(&time.clone());
        assert_eq!((time.total_s(), time.utilisation()), (16.0, Some(0.5)));
        assert_eq!(ThreadTime::default().utilisation(), None);
    }
}
