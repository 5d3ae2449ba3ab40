//! Several kernels on named threads.
//!
//! # Usage
//!
//! ```
//! use consort_kernels::crew::{Crew, Goal};
//! use consort_kernels::{Setup, kernels};
//!
//! let setup = Setup { threads: 2, ..Setup::default() };
//! let mut crew = Crew::default();
//! crew.enlist(kernels::find("fp").expect("fp exists"), &setup, Goal::Units(50));
//! let reports = crew.run()?;
//! assert_eq!(reports[1].name, "fp-1");
//! assert!(reports.iter().all(|report| report.ok));
//! # Ok::<(), consort_kernels::KernelError>(())
//! ```
//!
//! Threads are named after their kernel: `fp-0`, `fp-1`. Each builds its own
//! kernel, so that its memory is near it.

mod member;

use crate::error::KernelError;
use crate::kernel::{KernelEntry, KernelSetup};
use member::CrewMember;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
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
        let seats = entry.builders(setup).into_iter().enumerate();
        self.members.extend(seats.map(|(index, seat)| CrewMember {
            name: format!("{}-{index}", entry.name),
            kernel: entry.name,
            seat,
            goal,
            duty,
        }));
    }

    /// Runs all threads to their goals; the reports are in the order of
    /// enlisting.
    ///
    /// # Errors
    ///
    /// The first kernel that could not be built or thread that could not be
    /// started; the other threads then end early.
    pub fn run(self) -> Result<Vec<ThreadReport>, KernelError> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let handles: Vec<_> = self
                .members
                .into_iter()
                .map(|member| start(scope, member, &stop))
                .collect();
            handles
                .into_iter()
                .map(|handle| join_member(handle?))
                .collect()
        })
    }
}

type MemberResult = Result<ThreadReport, KernelError>;

fn start<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    member: CrewMember,
    stop: &'scope AtomicBool,
) -> Result<ScopedJoinHandle<'scope, MemberResult>, KernelError> {
    let name = member.name.clone();
    let run = move || {
        let outcome = member.run(stop);
        if outcome.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        outcome
    };
    let spawned = thread::Builder::new()
        .name(name.clone())
        .spawn_scoped(scope, run);
    spawned.map_err(|source| {
        stop.store(true, Ordering::Relaxed);
        KernelError::Spawn { name, source }
    })
}

/// A thread's outcome; its panic, which only a bug can cause, goes on here.
fn join_member(handle: ScopedJoinHandle<'_, MemberResult>) -> MemberResult {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
