//! Whereabouts of a thread over a whole run: its CPUs, its placements, and its co-runners.

use consort_core::{PuId, ThreadObservation};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Placements with their reasons that are distinguished; beyond it, the shortest is forgotten.
const KEPT: usize = 64;
/// Names of co-runners that are distinguished.
const KEPT_NAMES: usize = 256;
/// Co-runners that a report lists.
const LISTED: usize = 8;

/// Share of a thread's running time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CpuShare {
    pub(crate) cpu: u32,
    /// 0 to 1.
    pub(crate) share: f64,
}

/// Share of a thread's running time next to threads of a name on its core.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CoRunnerShare {
    pub(crate) name: String,
    /// 0 to 1.
    pub(crate) share: f64,
}

/// A placement with its reason, and the time for which it held.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldPlacement {
    /// As a CPU list.
    pub(super) cpus: String,
    pub(super) reason: String,
    held_ns: f64,
}

/// Sums for one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Whereabouts {
    ran_ns: BTreeMap<u32, f64>,
    next_to_ns: BTreeMap<Arc<str>, f64>,
    placements: Vec<HeldPlacement>,
    /// The placement in force.
    current: Option<HeldPlacement>,
    changes: u64,
}

impl Whereabouts {
    /// Adds an interval. The CPU on which a thread was seen last stands for all of it.
    pub(super) fn add(&mut self, seen: &ThreadObservation, interval_ns: u64) {
        if let Some(PuId(cpu)) = seen.last_pu {
            *self.ran_ns.entry(cpu).or_default() += seen.sample.cpu_time_ns();
        }
        let Some(current) = &self.current else {
            return;
        };
        let is_current =
            |held: &&mut HeldPlacement| held.cpus == current.cpus && held.reason == current.reason;
        if let Some(held) = self.placements.iter_mut().find(is_current) {
            held.held_ns += interval_ns as f64;
            return;
        }
        if self.placements.len() == KEPT {
            let by_time = |(_, a): &(usize, &HeldPlacement), (_, b): &(usize, &HeldPlacement)| {
                a.held_ns.total_cmp(&b.held_ns)
            };
            let shortest = self.placements.iter().enumerate().min_by(by_time);
            if let Some((at, _)) = shortest {
                self.placements.swap_remove(at);
            }
        }
        self.placements.push(HeldPlacement {
            held_ns: interval_ns as f64,
            ..current.clone()
        });
    }

    /// Notes the placement of the next interval.
    pub(super) fn place(&mut self, cpus: String, reason: &str) {
        let is_other = |before: &HeldPlacement| before.cpus != cpus;
        self.changes += u64::from(self.current.as_ref().is_some_and(is_other));
        self.current = Some(HeldPlacement {
            cpus,
            reason: reason.to_owned(),
            held_ns: 0.0,
        });
    }

    /// Notes that another thread ran on the core.
    pub(super) fn meet(&mut self, name: &Arc<str>, ran_ns: f64) {
        if self.next_to_ns.len() < KEPT_NAMES || self.next_to_ns.contains_key(name) {
            *self.next_to_ns.entry(name.clone()).or_default() += ran_ns;
        }
    }

    /// The placement that held longest, and its share of the time in which there was one.
    pub(super) fn longest_placement(&self) -> (HeldPlacement, Option<f64>) {
        let all: f64 = self.placements.iter().map(|held| held.held_ns).sum();
        let longest = { self.placements.iter() }.max_by(|a, b| a.held_ns.total_cmp(&b.held_ns));
        match longest {
            Some(longest) => (longest.clone(), (all > 0.0).then(|| longest.held_ns / all)),
            None => (self.current.clone().unwrap_or_default(), None),
        }
    }

    /// Number of times that the placement changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// CPUs by running time.
    pub(super) fn cpus(&self) -> Vec<CpuShare> {
        let all: f64 = self.ran_ns.values().sum();
        let ran = self.ran_ns.iter().filter(|(_, ran_ns)| **ran_ns > 0.0);
        let mut shares: Vec<CpuShare> = ran
            .map(|(&cpu, ran_ns)| CpuShare {
                cpu,
                share: ran_ns / all,
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares
    }

    /// Co-runners by the running time next to them.
    pub(super) fn co_runners(&self) -> Vec<CoRunnerShare> {
        let all: f64 = self.ran_ns.values().sum();
        let met = self.next_to_ns.iter().filter(|_| all > 0.0);
        let mut shares: Vec<CoRunnerShare> = met
            .map(|(name, ran_ns)| CoRunnerShare {
                name: name.to_string(),
                share: (ran_ns / all).min(1.0),
            })
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        shares.truncate(LISTED);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Reading, Sample, Signal, ThreadId, Tier};

    const QUANTUM_NS: u64 = 100;

    fn seen_on(tid: u32, cpu: u32, ran_ns: f64) -> ThreadObservation {
        let mut sample = Sample::default();
        let reading = Reading::fully_counted(ran_ns, Tier::Proc, QUANTUM_NS);
        sample.set(Signal::CpuTime, reading);
        ThreadObservation {
            id: ThreadId {
                pid: 1,
                tid,
                start_ticks: 0,
            },
            name: format!("t{tid}").into(),
            original: Arc::default(),
            managed: true,
            last_pu: Some(PuId(cpu)),
            sample,
        }
    }

    #[test]
    fn longest_placement_and_all_cpus_are_reported_not_the_last() {
        let mut own = Whereabouts::default();
        for (cpu, reason, quanta) in [(0, "busy", 6), (1, "mostly idle", 2)] {
            own.place(cpu.to_string(), reason);
            for _ in 0..quanta {
                own.add(&seen_on(1, cpu, 50.0), QUANTUM_NS);
            }
        }
        let (longest, share) = own.longest_placement();
        assert_eq!(
            (longest.cpus.as_str(), longest.reason.as_str()),
            ("0", "busy")
        );
        assert_eq!((share, own.changes()), (Some(0.75), 1));
        let shares: Vec<(u32, f64)> = own.cpus().iter().map(|s| (s.cpu, s.share)).collect();
        assert_eq!(shares, [(0, 0.75), (1, 0.25)]);
    }

    #[test]
    fn reasons_with_many_numbers_stay_bounded() {
        let mut own = Whereabouts::default();
        for n in 0..1_000 {
            own.place("0".to_owned(), &format!("load {n}"));
            own.add(&seen_on(1, 0, 1.0), QUANTUM_NS);
        }
        assert!(own.placements.len() <= KEPT);
        assert_eq!(own.changes(), 0);
    }
}
