//! Several kernels on named threads.
//!
//! # Usage
//!
//! ```
//! use consort_kernels::crew::{Crew, WorkGoal};
//! use consort_kernels::{KernelSetup, kernels};
//!
//! let setup = KernelSetup { threads: 2, ..KernelSetup::default() };
//! let mut crew = Crew::default();
//! crew.enlist(kernels::find("fp").expect("fp exists"), &setup, WorkGoal::Units(50));
//! let reports = crew.run()?;
//! assert_eq!(reports[1].name, "fp-1");
//! assert!(reports.iter().all(|report| report.ok));
//! # Ok::<(), consort_kernels::KernelError>(())
//! ```
//!
//! Threads are named after their kernel: `fp-0`, `fp-1`. Each builds its own
//! kernel, so that its memory is near it.

use crate::kernel::{Kernel, KernelBuilder, KernelEntry, KernelError, KernelSetup};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// End of a thread's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkGoal {
    /// After so many units.
    Units(u64),
    /// At the first end of a unit after that time; one unit is done at least.
    Until(Instant),
}

/// Turns of work and rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DutyCycle {
    /// Time that the thread works.
    pub work: Duration,
    /// Time that it rests after that.
    pub rest: Duration,
}

/// Account of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    /// The thread's name.
    pub name: String,
    /// The kernel that it ran.
    pub kernel: &'static str,
    /// Units done.
    pub units: u64,
    /// The checksum reached, in hexadecimal.
    pub checksum: String,
    /// True where that is the right one.
    pub ok: bool,
}

/// Threads to be run together.
#[derive(Default)]
pub struct Crew {
    members: Vec<CrewMember>,
}

impl Crew {
    /// Adds a group of `setup.threads` threads that run one kernel.
    pub fn enlist(&mut self, entry: &'static KernelEntry, setup: &KernelSetup, goal: WorkGoal) {
        self.enlist_part_time(entry, setup, goal, None);
    }

    /// As [`Crew::enlist`], with turns of work and rest if `duty` is given.
    pub fn enlist_part_time(
        &mut self,
        entry: &'static KernelEntry,
        setup: &KernelSetup,
        goal: WorkGoal,
        duty: Option<DutyCycle>,
    ) {
        let builders = entry.builders(setup).into_iter().enumerate();
        self.members
            .extend(builders.map(|(index, build)| CrewMember {
                name: format!("{}-{index}", entry.name),
                kernel: entry.name,
                build,
                goal,
                duty,
            }));
    }

    /// Runs all threads to their goals; the reports are in the order of enlisting.
    ///
    /// # Errors
    ///
    /// The first kernel that could not be built or thread that could not be
    /// started; the other threads then end early.
    pub fn run(self) -> Result<Vec<ThreadReport>, KernelError> {
        let stop = AtomicBool::new(false);
        let stop = &stop;
        thread::scope(|scope| {
            // All start before the first is waited for.
            let mut handles = Vec::new();
            for member in self.members {
                let name = member.name.clone();
                let builder = thread::Builder::new().name(name.clone());
                let spawned = builder.spawn_scoped(scope, move || {
                    let report = member.run(stop);
                    if report.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    report
                });
                handles.push(spawned.map_err(|source| {
                    stop.store(true, Ordering::Relaxed);
                    KernelError::Spawn { name, source }
                }));
            }
            let mut reports = Vec::new();
            for handle in handles {
                // A panic, which only a bug can cause, is passed on.
                let ended = handle?.join();
                reports.push(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok(reports)
        })
    }
}

struct CrewMember {
    name: String,
    kernel: &'static str,
    build: KernelBuilder,
    goal: WorkGoal,
    duty: Option<DutyCycle>,
}

impl CrewMember {
    /// Builds the kernel and works towards the goal, or until `stop`.
    fn run(self, stop: &AtomicBool) -> Result<ThreadReport, KernelError> {
        let mut kernel = (self.build)()?;
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
        fn rest_ends_with_the_turn(
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
    fn one_unit_is_done_before_a_deadline() {
        assert!(is_reached(WorkGoal::Units(0), 0));
        assert!(!is_reached(WorkGoal::Units(2), 1));
        assert!(!is_reached(WorkGoal::Until(Instant::now()), 0));
        assert!(is_reached(WorkGoal::Until(Instant::now()), 1));
    }
}
