//! Relations of the threads of a program: roles, sharing, locks and barriers.

mod barriers;
mod futex;
mod locks;
mod sharing;
mod team;
mod text;

use crate::figures::ExecutionFigures;
use crate::interval::FINE;
use crate::measure::{MeterCounts, PartialTally};

pub use barriers::Barriers;
pub(crate) use locks::LockMeter;
pub use locks::Locks;
pub use sharing::SharedLines;
pub(crate) use sharing::SharingMeter;
pub(crate) use team::ThreadTeam;

/// Share of the mean work of other threads below which the first thread, apart from its serial
/// part, only supervises them.
const IDLE: f64 = 0.1;

/// Measurements of a program's threads.
#[derive(Debug, Clone)]
pub struct ThreadRelations {
    /// Number of threads.
    pub count: usize,
    /// Most threads at a time that share the work.
    pub at_once: usize,
    /// Roles, in the order of their earliest threads.
    pub roles: Vec<ThreadRole>,
    /// Instructions of the first thread while no other thread could run.
    pub serial: u64,
    /// Instructions of all threads, recorded or not.
    pub executed: u64,
    /// Instructions that were recorded and count.
    pub counted: u64,
    /// Lines of data that threads used while there were several threads.
    pub data: SharedLines,
    /// Lines of code.
    pub code: SharedLines,
    /// Locks.
    pub locks: Option<Locks>,
    /// Barriers.
    pub barriers: Option<Barriers>,
}

/// Threads that run similar code.
#[derive(Debug, Clone)]
pub struct ThreadRole {
    /// Its name: `main` if it has the first thread, unless that thread leaves the work to others of
    /// the role.
    pub name: String,
    /// Its threads.
    pub threads: Vec<usize>,
    /// Most of them that lived at a time, without a first thread that leaves the work to others.
    pub at_once: usize,
    /// Instructions that they executed, recorded or not, without the serial part.
    pub executed: u64,
    /// True for the first thread alone if it only supervises the others.
    pub is_idle: bool,
    /// Measurements of them.
    pub figures: ExecutionFigures,
}

pub(crate) struct ThreadMeasurements<'a> {
    pub(crate) code: &'a [u64],
    pub(crate) counts: &'a MeterCounts,
}

pub(crate) struct TeamMeasurements<'a> {
    pub(crate) threads: Vec<ThreadMeasurements<'a>>,
    /// Instructions that all meters counted, also in intervals that are not kept.
    pub(crate) counted: u64,
    pub(crate) team: &'a ThreadTeam,
    pub(crate) sharing: &'a SharingMeter,
    pub(crate) locks: &'a LockMeter,
}

impl ThreadRelations {
    /// `None` if there was only one thread.
    pub(crate) fn from_measurements(received: &TeamMeasurements) -> Option<Self> {
        let team = received.team;
        let count = team.threads().count();
        if count < 2 {
            return None;
        }
        let roles = build_roles(received);
        let is_idle = is_idle(team);
        let groups: Vec<_> = roles
            .iter()
            .map(|role| (role.threads.clone(), role.at_once))
            .collect();
        Some(Self {
            count,
            at_once: team.most_at_once(|thread| thread != 0 || !is_idle),
            roles,
            serial: team.solo_instructions(),
            executed: team
                .threads()
                .map(|thread| team.instructions_executed(thread))
                .sum(),
            counted: received.counted,
            data: received.sharing.data(),
            code: received.sharing.code(),
            locks: received.locks.locks(),
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

    /// Instructions on the path of the first thread if work is spread evenly: the serial part and
    /// one thread's part of the rest.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.serial as f64 + self.mean_parallel_work()
    }

    /// Share of [`Self::length`] that is the first thread's alone.
    #[must_use]
    pub fn serial_share(&self) -> f64 {
        self.serial as f64 / self.length().max(1.0)
    }

    /// Locks taken per million counted instructions.
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

fn build_roles(received: &TeamMeasurements) -> Vec<ThreadRole> {
    let codes: Vec<_> = received.threads.iter().map(|thread| thread.code).collect();
    let of = assign_roles(&codes);
    let most = of.iter().flatten().max().map_or(0, |most| most + 1);
    let members = |role| {
        let threads = of.iter().enumerate();
        let own = threads.filter(move |(_, of)| **of == Some(role));
        own.map(|(thread, _)| thread).collect::<Vec<_>>()
    };
    (0..most)
        .map(|number| build_role(received, number, members(number)))
        .collect()
}

fn build_role(received: &TeamMeasurements, number: usize, threads: Vec<usize>) -> ThreadRole {
    let team = received.team;
    let mut counts = MeterCounts::default();
    for &thread in &threads {
        counts.add(received.threads[thread].counts);
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

/// Share of executed code that threads of one role have in common.
const IN_COMMON: f64 = 0.5;

type CodeHistogram = [u64];

/// The role of each thread: the number of the earliest role that has enough in common with it.
/// Threads without recorded instructions have none.
///
/// Threads that have more than half of their executed code in common have one role: of two threads'
/// shares of instructions by line of code, the smaller ones sum to more than a half. The lines are
/// hashed as for phases, to more dimensions. Clustering as for phases would separate threads that
/// do the same work and wait differently long, because there are few threads and a likelihood
/// criterion takes any steady difference for a difference of kind.
fn assign_roles(codes: &[&CodeHistogram]) -> Vec<Option<usize>> {
    let mut found: Vec<Vec<u64>> = Vec::new();
    codes
        .iter()
        .map(|code| assign_role(code, &mut found))
        .collect()
}

fn assign_role(code: &CodeHistogram, found: &mut Vec<Vec<u64>>) -> Option<usize> {
    if code.iter().all(|&executed| executed == 0) {
        return None;
    }
    let alike = |role: &Vec<u64>| common_share(role, code) > IN_COMMON;
    if let Some(number) = found.iter().position(alike) {
        for (sum, executed) in found[number].iter_mut().zip(code) {
            *sum += executed;
        }
        return Some(number);
    }
    found.push(code.to_vec());
    Some(found.len() - 1)
}

/// Share of executed code that two have in common, 0 to 1.
fn common_share(a: &CodeHistogram, b: &CodeHistogram) -> f64 {
    debug_assert!(a.len() <= FINE && b.len() <= FINE);
    let sum = |code: &CodeHistogram| code.iter().sum::<u64>().max(1) as f64;
    let (all_a, all_b) = (sum(a), sum(b));
    let smaller = |(a, b): (&u64, &u64)| (*a as f64 / all_a).min(*b as f64 / all_b);
    a.iter().zip(b).map(smaller).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_loop_have_one_role() {
        let codes: [&CodeHistogram; 5] = [
            &[90, 0, 10],
            &[0, 500, 0],
            &[60, 0, 40],
            &[0, 0, 0],
            &[1, 90, 9],
        ];
        let found = assign_roles(&codes);
        assert_eq!(found, [Some(0), Some(1), Some(0), None, Some(1)]);
    }

    #[test]
    fn half_in_common_is_not_enough() {
        assert_eq!(common_share(&[50, 50, 0], &[50, 0, 50]), 0.5);
        assert_eq!(
            assign_roles(&[&[50, 50, 0], &[50, 0, 50]]),
            [Some(0), Some(1)]
        );
    }
}
