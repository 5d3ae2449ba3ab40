//! Relations of the threads of a program: roles, sharing, locks and barriers.

mod barriers;
mod futex;
mod locks;
mod roles;
mod sharing;
mod team;
mod text;

pub use barriers::Barriers;
pub use locks::Locks;
pub use sharing::SharedLines;

pub(crate) use locks::LockMeter;
pub(crate) use sharing::SharingMeter;
pub(crate) use team::ThreadTeam;

use crate::figures::ExecutionFigures;
use crate::measure::{MeterCounts, PartialTally};

/// Share of the mean of other threads below which the first one, besides what it does alone,
/// counts as one that only looks after them.
const IDLE: f64 = 0.1;

/// Measurements of a program's threads.
#[derive(Debug, Clone)]
pub struct ThreadRelations {
    /// Threads that there were.
    pub count: usize,
    /// Most threads at a time that share the work.
    pub at_once: usize,
    /// Roles, in the order of their earliest threads.
    pub roles: Vec<ThreadRole>,
    /// Instructions of the first thread while no other one could run.
    pub serial: u64,
    /// Instructions of all threads, recorded or not.
    pub executed: u64,
    /// Instructions that were recorded and count.
    pub counted: u64,
    /// Lines of data that threads used while there were several.
    pub data: SharedLines,
    /// Lines of code.
    pub code: SharedLines,
    /// Locks.
    pub locks: Option<Locks>,
    /// Barriers.
    pub barriers: Option<Barriers>,
}

/// Threads that run alike code.
#[derive(Debug, Clone)]
pub struct ThreadRole {
    /// Its name: `main` if it has the first thread, unless that leaves the work to others of it.
    pub name: String,
    /// Its threads.
    pub threads: Vec<usize>,
    /// Most of them that lived at a time, without a first thread that leaves the work to others.
    pub at_once: usize,
    /// Instructions that they executed, recorded or not, without those of the serial part.
    pub executed: u64,
    /// True for the first thread alone, doing little but looking after the others.
    pub is_idle: bool,
    /// Measurements of them.
    pub figures: ExecutionFigures,
}

/// Facts about one thread.
pub(crate) struct ThreadMeasurements<'a> {
    pub(crate) code: &'a [u64],
    pub(crate) counts: &'a MeterCounts,
}

/// Facts heard of all threads.
pub(crate) struct TeamMeasurements<'a> {
    pub(crate) threads: Vec<ThreadMeasurements<'a>>,
    pub(crate) team: &'a ThreadTeam,
    pub(crate) sharing: &'a SharingMeter,
    pub(crate) locks: &'a LockMeter,
}

impl ThreadRelations {
    /// Relations of threads; nothing where there was one.
    pub(crate) fn from_measurements(heard: &TeamMeasurements) -> Option<Self> {
        let team = heard.team;
        let count = team.threads().count();
        if count < 2 {
            return None;
        }
        let roles = build_roles(heard);
        let is_idle = is_idle(team);
        let groups: Vec<_> = roles
            .iter()
            .map(|role| (role.threads.clone(), role.at_once))
            .collect();
        let counted = heard.threads.iter().map(|t| t.counts.mix.instructions);
        Some(Self {
            count,
            at_once: team.most_at_once(|thread| thread != 0 || !is_idle),
            roles,
            serial: team.solo_instructions(),
            executed: team
                .threads()
                .map(|thread| team.instructions_executed(thread))
                .sum(),
            counted: counted.sum(),
            data: heard.sharing.data(),
            code: heard.sharing.code(),
            locks: heard.locks.locks(),
            barriers: team.barriers(&groups),
        })
    }

    /// Roles that share the work.
    pub fn working_roles(&self) -> impl Iterator<Item = &ThreadRole> {
        working_roles(&self.roles)
    }

    /// Mean instructions of a thread at work besides the serial part.
    #[must_use]
    pub fn mean_parallel_work(&self) -> f64 {
        let parallel = self.executed.saturating_sub(self.serial);
        parallel as f64 / self.at_once.max(1) as f64
    }

    /// Instructions on the way of the first thread if work is spread evenly: the serial part and
    /// what a thread does of the rest.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.serial as f64 + self.mean_parallel_work()
    }

    /// Share of [`Self::length`] that is the first thread's alone.
    #[must_use]
    pub fn serial_share(&self) -> f64 {
        self.serial as f64 / self.length().max(1.0)
    }

    /// Locks taken per million instructions of what counts.
    #[must_use]
    pub fn locks_per_million(&self) -> f64 {
        let taken = self.locks.map_or(0, |locks| locks.taken);
        1e6 * taken as f64 / self.counted.max(1) as f64
    }

    /// Mean instructions of a thread between barriers.
    #[must_use]
    pub fn barrier_spacing(&self) -> Option<f64> {
        let opened = self.barriers?.opened;
        Some(self.mean_parallel_work() / opened.max(1) as f64)
    }
}

fn working_roles(roles: &[ThreadRole]) -> impl Iterator<Item = &ThreadRole> {
    roles.iter().filter(|role| !role.is_idle)
}

fn build_roles(heard: &TeamMeasurements) -> Vec<ThreadRole> {
    let codes: Vec<_> = heard.threads.iter().map(|thread| thread.code).collect();
    let of = roles::assign_roles(&codes);
    let most = of.iter().flatten().max().map_or(0, |most| most + 1);
    let members = |role| {
        let threads = of.iter().enumerate();
        let own = threads.filter(move |(_, of)| **of == Some(role));
        own.map(|(thread, _)| thread).collect::<Vec<_>>()
    };
    (0..most)
        .map(|number| build_role(heard, number, members(number)))
        .collect()
}

fn build_role(heard: &TeamMeasurements, number: usize, threads: Vec<usize>) -> ThreadRole {
    let team = heard.team;
    let mut counts = MeterCounts::default();
    for &thread in &threads {
        counts.add(heard.threads[thread].counts);
    }
    let (has_first, is_idle) = (threads.contains(&0), is_idle(team));
    let is_alone = threads == [0];
    let all: u64 = threads
        .iter()
        .map(|&thread| team.instructions_executed(thread))
        .sum();
    let serial = if has_first {
        team.solo_instructions()
    } else {
        0
    };
    let works = |thread| threads.contains(&thread) && (thread != 0 || !is_idle || is_alone);
    ThreadRole {
        name: match has_first && (is_alone || !is_idle) {
            true => "main".to_owned(),
            false => format!("role-{}", number + 1),
        },
        at_once: team.most_at_once(works),
        executed: all.saturating_sub(serial),
        is_idle: is_alone && is_idle,
        figures: ExecutionFigures::from_counts(&counts),
        threads,
    }
}

fn is_idle(team: &ThreadTeam) -> bool {
    let others = team.threads().filter(|&thread| thread != 0);
    let works: Vec<u64> = others
        .map(|thread| team.instructions_executed(thread))
        .collect();
    let mean = works.iter().sum::<u64>() as f64 / works.len().max(1) as f64;
    let first = team
        .instructions_executed(0)
        .saturating_sub(team.solo_instructions());
    (first as f64) < IDLE * mean
}
