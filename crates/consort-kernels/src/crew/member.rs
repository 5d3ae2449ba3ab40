//! One thread of a crew.

use super::{DutyCycle, ThreadReport, WorkGoal};
use crate::error::KernelError;
use crate::kernel::{Kernel, KernelBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Task of a thread.
pub(super) struct CrewMember {
    pub(super) name: String,
    pub(super) kernel: &'static str,
    pub(super) seat: KernelBuilder,
    pub(super) goal: WorkGoal,
    pub(super) duty: Option<DutyCycle>,
}

impl CrewMember {
    /// Builds the kernel and works towards the goal, or until `stop`.
    pub(super) fn run(self, stop: &AtomicBool) -> Result<ThreadReport, KernelError> {
        let mut kernel = (self.seat)()?;
        let units = work(kernel.as_mut(), self.goal, self.duty, stop);
        let checksum = kernel.work(0);
        Ok(ThreadReport {
            name: self.name,
            kernel: self.kernel,
            units,
            checksum: format!("{checksum:016x}"),
            ok: checksum == kernel.expected(),
        })
    }
}

/// Works unit by unit; returns how many were done.
fn work(
    kernel: &mut dyn Kernel,
    goal: WorkGoal,
    duty: Option<DutyCycle>,
    stop: &AtomicBool,
) -> u64 {
    let start = Instant::now();
    let mut units = 0;
    while !is_reached(goal, units) && !stop.load(Ordering::Relaxed) {
        kernel.work(1);
        units += 1;
        rest_if_due(duty, start.elapsed(), goal);
    }
    units
}

fn is_reached(goal: WorkGoal, units: u64) -> bool {
    match goal {
        WorkGoal::Units(wanted) => units >= wanted,
        WorkGoal::Until(deadline) => units > 0 && Instant::now() >= deadline,
    }
}

/// Sleeps while the duty says so, but not past the deadline.
fn rest_if_due(duty: Option<DutyCycle>, elapsed: Duration, goal: WorkGoal) {
    let Some(mut rest) = duty.and_then(|duty| remaining_rest(duty, elapsed)) else {
        return;
    };
    if let WorkGoal::Until(deadline) = goal {
        rest = rest.min(deadline.saturating_duration_since(Instant::now()));
    }
    thread::sleep(rest);
}

/// Time that the rest still lasts, `elapsed` after the first turn of work began.
fn remaining_rest(duty: DutyCycle, elapsed: Duration) -> Option<Duration> {
    let turn_ns = (duty.work + duty.rest).as_nanos();
    let into_turn_ns = elapsed.as_nanos().checked_rem(turn_ns)?;
    (into_turn_ns >= duty.work.as_nanos())
        .then(|| Duration::from_nanos(u64::try_from(turn_ns - into_turn_ns).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rest_ends_with_the_turn(
            work_ms in 0_u64..100, rest_ms in 0_u64..100, elapsed_ms in 0_u64..10_000,
        ) {
            let duty = DutyCycle {
                work: Duration::from_millis(work_ms),
                rest: Duration::from_millis(rest_ms),
            };
            let elapsed = Duration::from_millis(elapsed_ms);
            if let Some(rest) = remaining_rest(duty, elapsed) {
                prop_assert!(rest <= duty.rest);
                prop_assert_eq!((elapsed + rest).as_millis() % u128::from(work_ms + rest_ms), 0);
            }
        }
    }

    #[test]
    fn goals() {
        assert!(is_reached(WorkGoal::Units(0), 0));
        assert!(!is_reached(WorkGoal::Units(2), 1));
        assert!(!is_reached(WorkGoal::Until(Instant::now()), 0));
        assert!(is_reached(WorkGoal::Until(Instant::now()), 1));
    }
}
