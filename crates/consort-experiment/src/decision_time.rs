//! Time that a policy takes to decide, on the host's clock.

use consort_core::plan::Decision;
use consort_core::policy::{Policy, PolicyRng, View, Wishes};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// Host time per decision, µs. Not the same from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DecisionTime {
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: f64,
    /// Decisions.
    pub n: u64,
}

impl DecisionTime {
    fn add(&mut self, micros: f64) {
        self.n += 1;
        self.mean += (micros - self.mean) / self.n as f64;
        self.max = self.max.max(micros);
    }
}

/// Listener to every decision.
pub type DecisionListener = Box<dyn FnMut(&Decision)>;

/// A policy with a stopwatch.
pub(super) struct TimedPolicy {
    policy: Box<dyn Policy>,
    listener: Option<DecisionListener>,
    time: Rc<RefCell<DecisionTime>>,
}

impl TimedPolicy {
    pub(super) fn new(
        policy: Box<dyn Policy>,
        listener: Option<DecisionListener>,
    ) -> (Self, Rc<RefCell<DecisionTime>>) {
        let time = Rc::default();
        let timed = Self {
            policy,
            listener,
            time: Rc::clone(&time),
        };
        (timed, time)
    }
}

impl Policy for TimedPolicy {
    fn wishes(&self) -> Wishes {
        self.policy.wishes()
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let start = Instant::now();
        let decision = self.policy.decide(view, rng);
        let micros = start.elapsed().as_secs_f64() * 1e6;
        self.time.borrow_mut().add(micros);
        if let Some(listener) = &mut self.listener {
            listener(&decision);
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_longest_of_decisions() {
        let mut time = DecisionTime::default();
        for micros in [2.0, 8.0, 5.0] {
            time.add(micros);
        }
        assert_eq!((time.mean, time.max, time.n), (5.0, 8.0, 3));
    }
}
