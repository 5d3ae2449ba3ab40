//! Segments, and what becomes of consecutive ones.

use consort_core::ThreadId;
use std::sync::Arc;

/// A thread on a PU at a constant rate.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineSegment {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: Arc<str>,
    /// Number of the PU.
    pub pu: usize,
    /// Begin, s of simulated time.
    pub start_s: f64,
    /// End, s of simulated time.
    pub end_s: f64,
    /// Instructions per second.
    pub ips: f64,
    /// Cycles per instruction.
    pub cpi: f64,
    /// Time together / time alone, where it is known.
    pub slowdown: Option<f64>,
}

/// Relative to its end, by how much the next segment may begin later and still follow, s: rounding
/// of sums, far below any event's distance.
const GAP_S: f64 = 1e-12;

impl TimelineSegment {
    /// Takes the next segment in when it follows this one: same thread, same PU, no gap.
    /// Rates become means: instructions by time, cycles by instructions, slowdown by time.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let gap = (next.start_s - self.end_s).abs();
        let follows = gap <= GAP_S * self.end_s.abs().max(1.0);
        if self.thread != next.thread || self.pu != next.pu || !follows {
            return false;
        }
        let (old_s, new_s) = (self.seconds(), next.seconds());
        let (old, new) = (self.ips * old_s, next.ips * new_s);
        self.cpi = weighted_mean(self.cpi, old, next.cpi, new);
        self.ips = weighted_mean(self.ips, old_s, next.ips, new_s);
        let slowdowns = self.slowdown.zip(next.slowdown);
        self.slowdown = slowdowns.map(|(a, b)| weighted_mean(a, old_s, b, new_s));
        self.end_s = next.end_s;
        true
    }

    pub(super) fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// The weighted mean; the first where there is no weight.
fn weighted_mean(a: f64, weight_a: f64, b: f64, weight_b: f64) -> f64 {
    let weight = weight_a + weight_b;
    if weight > 0.0 {
        (a * weight_a + b * weight_b) / weight
    } else {
        a
    }
}
