//! Sums of threads, of programs and of Consort itself over a run.

use super::ThreadRow;
use super::whereabouts::Whereabouts;
use consort_core::stats::share_interval;
use consort_core::{
    Class, MemoryLimit, Mix, Observation, Placement, ProgramId, Sample, Signal, ThreadId,
    ThreadObservation, ThreadTraits, Throttle, Tier, Topology, classify, stack_source,
};
use consort_linux::enforce::EnactorKind;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;
use std::collections::BTreeMap;

/// A ratio of two sums: a share, a rate, or a mean weighted by CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct SumRatio {
    part: f64,
    whole: f64,
}

impl SumRatio {
    /// Adds a value with its weight.
    fn add(&mut self, value: f64, weight: f64) {
        self.part += value * weight;
        self.whole += weight;
    }

    /// Adds to both sums, if both were counted.
    fn add_parts(&mut self, part: Option<f64>, whole: Option<f64>) {
        if let (Some(part), Some(whole)) = (part, whole) {
            self.part += part;
            self.whole += whole;
        }
    }

    fn value(self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.part / self.whole)
    }
}

/// Sums for one thread over the run.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadTotals {
    pub(super) name: String,
    pub(super) cpu_ns: f64,
    /// Part of the CPU time that is estimated from samples.
    pub(super) estimated_ns: f64,
    wait_ns: Option<f64>,
    lifetime_ns: u64,
    fp_usage: SumRatio,
    memory_stall: SumRatio,
    /// Decoded samples of instruction addresses behind these shares.
    samples: u64,
    /// 1 when bandwidth limited the thread while it waited for memory, 0 when latency did.
    bandwidth: SumRatio,
    mix: Mix,
    stack: BTreeMap<String, f64>,
    stack_tier: Option<Tier>,
    futex_returns: Option<u64>,
    blocking_returns: Option<u64>,
    pub(super) moves: u64,
    pub(super) enactor: Option<EnactorKind>,
    nudges: u64,
    /// The limit that held the thread last, and the share of periods in which one did.
    throttle: Option<Throttle>,
    throttled: SumRatio,
    adherence: SumRatio,
    /// Its own mask, as a CPU list.
    original: String,
    pub(super) whereabouts: Whereabouts,
}

impl ThreadTotals {
    /// Adds one interval of the thread.
    pub(super) fn add(&mut self, seen: &ThreadObservation, interval_ns: u64) {
        let sample = &seen.sample;
        let cpu_ns = sample.cpu_time_ns();
        seen.name.as_ref().clone_into(&mut self.name);
        self.cpu_ns += cpu_ns;
        let reading = sample.reading(Signal::CpuTime);
        if reading.is_some_and(|reading| reading.tier == Tier::Sampling) {
            self.estimated_ns += cpu_ns;
        }
        if let Some(wait_ns) = sample.get(Signal::WaitTime) {
            *self.wait_ns.get_or_insert(0.0) += wait_ns;
        }
        self.lifetime_ns += interval_ns;
        if let Some(planned_ns) = sample.get(Signal::PlannedTime).filter(|_| cpu_ns > 0.0) {
            self.adherence.add(planned_ns / cpu_ns, cpu_ns);
        }
        if let Some(usage) = sample.get(Signal::FpUsage) {
            self.fp_usage.add(usage, cpu_ns);
        }
        if let Some(stall) = sample.get(Signal::MemoryStall) {
            self.memory_stall.add(stall, cpu_ns);
        }
        self.samples += sample.samples;
        if let Some(limit) = sample.memory_limit {
            let is_bandwidth = limit == MemoryLimit::Bandwidth;
            self.bandwidth.add(f64::from(is_bandwidth), cpu_ns);
        }
        if let Some(mix) = sample.mix {
            self.mix = self.mix.plus(mix, cpu_ns);
        }
        if let Some((stack, tier)) = &sample.stack {
            for component in stack.components() {
                *self.stack.entry(component.name.to_string()).or_default() +=
                    cpu_ns * component.share;
            }
            self.stack_tier = self.stack_tier.max(Some(*tier));
        }
        for (sum, signal) in [
            (&mut self.futex_returns, Signal::FutexReturns),
            (&mut self.blocking_returns, Signal::BlockingReturns),
        ] {
            if let Some(count) = sample.get(signal) {
                *sum.get_or_insert(0) += count as u64;
            }
        }
        self.whereabouts.add(seen, interval_ns);
        if self.original.is_empty() {
            self.original = seen.original.to_string();
        }
    }

    /// Adds the limit of its control group that held the thread in an interval, if one did.
    pub(super) fn add_throttle(&mut self, throttle: Option<&Throttle>, interval_ns: u64) {
        let share = throttle.map_or(0.0, |throttle| throttle.share);
        self.throttled.add(share, interval_ns as f64);
        if let Some(throttle) = throttle {
            self.throttle = Some(throttle.clone());
        }
    }

    pub(super) fn count_nudge(&mut self) {
        self.nudges += 1;
        self.enactor = Some(EnactorKind::Nudge);
    }

    /// Notes where a plan put the thread.
    pub(super) fn place(&mut self, seen: &ThreadObservation, placement: &Placement, why: &str) {
        let cpus = match placement {
            Placement::Unrestricted => seen.original.to_string(),
            Placement::Restricted(pus) => pus.to_string(),
        };
        self.whereabouts.place(cpus, why);
    }

    pub(super) fn row(&self, pid: u32, tid: u32) -> ThreadRow {
        let mix = (self.mix.total() > 0.0).then(|| self.mix.normalised());
        let memory_stall = self.memory_stall.value();
        let class = classify(ThreadTraits {
            wanted_share: (self.cpu_ns + self.wait_ns.unwrap_or(0.0))
                / self.lifetime_ns.max(1) as f64,
            mix,
            memory_stall,
        });
        let memory_limit = self
            .bandwidth
            .value()
            .map(|bandwidth| match bandwidth > 0.5 {
                true => MemoryLimit::Bandwidth,
                false => MemoryLimit::Latency,
            });
        let interval = memory_stall.and_then(|stall| share_interval(stall, self.samples));
        let total: f64 = self.stack.values().sum();
        let share = |(name, amount): (&String, &f64)| (name.clone(), amount / total);
        let (placement, placement_share) = self.whereabouts.longest_placement();
        ThreadRow {
            pid,
            tid,
            name: self.name.clone(),
            cpu_s: self.cpu_ns / 1e9,
            wait_s: self.wait_ns.map(|ns| ns / 1e9),
            throttled: self.throttle.clone().map(|throttle| Throttle {
                share: self.throttled.value().unwrap_or(0.0),
                ..throttle
            }),
            class,
            fp_usage: self.fp_usage.value(),
            mix,
            memory_stall,
            memory_stall_ci95: interval.map(|(low, high)| [low, high]),
            memory_limit: memory_limit.filter(|_| class == Class::Memory),
            stack: self
                .stack
                .iter()
                .filter(|_| total > 0.0)
                .map(share)
                .collect(),
            stack_source: self.stack_tier.map_or("none", stack_source),
            futex_returns: self.futex_returns,
            blocking_returns: self.blocking_returns,
            moves: self.moves,
            enactor: self.enactor,
            adherence: self.adherence.value(),
            nudges: self.nudges,
            cpus: if placement.cpus.is_empty() {
                self.original.clone()
            } else {
                placement.cpus
            },
            reason: placement.reason,
            placement_share,
            placement_changes: self.whereabouts.changes(),
            ran_on: self.whereabouts.cpus(),
            co_runners: self.whereabouts.co_runners(),
        }
    }
}

/// Notes which threads were on one core in an interval, on different CPUs of it.
pub(super) fn meet_on_cores(
    topology: &Topology,
    seen: &Observation,
    accounts: &mut BTreeMap<ThreadId, ThreadTotals>,
) {
    let active = |thread: &&ThreadObservation| thread.sample.cpu_time_ns() > 0.0;
    for core in topology.cores().iter().filter(|core| core.pus.len() > 1) {
        let is_here =
            |thread: &&ThreadObservation| thread.last_pu.is_some_and(|pu| core.pus.contains(&pu));
        let here: Vec<&ThreadObservation> =
            seen.threads.iter().filter(active).filter(is_here).collect();
        for thread in &here {
            let Some(own) = accounts.get_mut(&thread.id) else {
                continue;
            };
            for other in here.iter().filter(|other| other.last_pu != thread.last_pu) {
                let both_ns = thread.sample.cpu_time_ns().min(other.sample.cpu_time_ns());
                own.whereabouts.meet(&other.name, both_ns);
            }
        }
    }
}

/// One program of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ProgramRow {
    /// The command, without the folder.
    pub(crate) name: String,
    /// The process at the root of the program.
    pub(crate) pid: u32,
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Energy, J; `None` if no meter can be read.
    pub(crate) energy_j: Option<f64>,
    /// Instructions per s of CPU time.
    pub(crate) instructions_per_cpu_s: Option<f64>,
    /// Misses of the last-level cache per access.
    pub(crate) llc_miss_rate: Option<f64>,
    /// Share of its cycles in which its data moved over the memory bus.
    pub(crate) bus_occupancy: Option<f64>,
    /// Cycles in which its requests were queued for the bus, per cycle.
    pub(crate) bus_queue_time: Option<f64>,
    /// Source of the measures: `counters`, `recorded` (from a profile, or estimated) or `none`.
    pub(crate) source: &'static str,
}

#[derive(Clone, Debug, Default)]
struct ReportProgramSums {
    cpu_ns: f64,
    energy_j: Option<f64>,
    instructions: SumRatio,
    misses: SumRatio,
    busy: SumRatio,
    queued: SumRatio,
    /// The richest tier that counted instructions.
    tier: Option<Tier>,
}

impl ReportProgramSums {
    fn add(&mut self, sample: &Sample) {
        let get = |signal| sample.get(signal);
        self.cpu_ns += sample.cpu_time_ns();
        if let Some(energy) = get(Signal::Energy) {
            *self.energy_j.get_or_insert(0.0) += energy;
        }
        let cycles = get(Signal::Cycles);
        self.instructions
            .add_parts(get(Signal::Instructions), get(Signal::CpuTime));
        self.misses
            .add_parts(get(Signal::LlcMisses), get(Signal::LlcAccesses));
        self.busy.add_parts(get(Signal::BusBusyCycles), cycles);
        self.queued.add_parts(get(Signal::BusQueueCycles), cycles);
        let reported = sample.reading(Signal::Instructions).map(|r| r.tier);
        self.tier = self.tier.max(reported);
    }

    fn row(&self, pid: u32, name: String) -> ProgramRow {
        ProgramRow {
            name,
            pid,
            cpu_s: self.cpu_ns / 1e9,
            energy_j: self.energy_j,
            instructions_per_cpu_s: self.instructions.value().map(|per_ns| 1e9 * per_ns),
            llc_miss_rate: self.misses.value(),
            bus_occupancy: self.busy.value(),
            bus_queue_time: self.queued.value(),
            source: match self.tier {
                Some(Tier::Counters) => "counters",
                Some(_) => "recorded",
                None => "none",
            },
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct ProgramTotals {
    sums: BTreeMap<ProgramId, ReportProgramSums>,
}

impl ProgramTotals {
    pub(super) fn add(&mut self, seen: &Observation) {
        for thread in seen.threads.iter().chain(&seen.exited) {
            let sums = self.sums.entry(seen.program_of(thread.id)).or_default();
            sums.add(&thread.sample);
        }
    }

    /// Returns the rows of programs that are given by the pid at the root of each and their names.
    pub(super) fn rows(&self, named: Vec<(u32, String)>) -> Vec<ProgramRow> {
        let none = ReportProgramSums::default();
        let row = |(pid, name): (u32, String)| {
            let sums = self.sums.get(&ProgramId(pid)).unwrap_or(&none);
            sums.row(pid, name)
        };
        named.into_iter().map(row).collect()
    }
}

/// Cost of Consort so far with its guardian and its readers of code; without the readers' memory.
#[derive(Clone, Debug)]
pub(crate) struct OwnCost {
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Largest resident memory of both, KiB.
    pub(crate) peak_rss_kib: u64,
}

impl OwnCost {
    /// Returns the cost up to now, with that of the guardian, if there is one.
    pub(crate) fn measure(guardian: Option<u32>) -> Self {
        let guardian = guardian.map(|pid| pid.to_string());
        let peak = |process: &str| peak_rss_kib(process).unwrap_or(0);
        let own_s = getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
            (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
        });
        // In nanoseconds, unlike the clock ticks of /proc/PID/stat.
        let guardian_s = guardian.as_deref().and_then(|pid| {
            let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
            let cpu_ns: f64 = schedstat.split_whitespace().next()?.parse().ok()?;
            Some(cpu_ns / 1e9)
        });
        Self {
            cpu_s: own_s + guardian_s.unwrap_or(0.0) + consort_linux::reader::cpu_s(),
            peak_rss_kib: peak("self") + guardian.as_deref().map_or(0, peak),
        }
    }
}

/// Reads `VmHWM`, KiB. The maximum of `getrusage` survives an `exec`, so it could be that of the shell
/// that started Consort.
fn peak_rss_kib(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().trim_end_matches("kB").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Reading, ThreadId, ThreadObservation};
    use std::sync::Arc;

    fn thread(pid: u32, values: &[(Signal, f64)]) -> ThreadObservation {
        let mut sample = Sample::default();
        for &(signal, value) in values {
            sample.set(signal, Reading::fully_counted(value, Tier::Counters, 10));
        }
        ThreadObservation {
            id: ThreadId {
                pid,
                tid: pid,
                start_ticks: 0,
            },
            name: "t".into(),
            original: Arc::default(),
            managed: true,
            last_pu: None,
            sample,
        }
    }

    #[test]
    fn program_sums_its_processes_and_shares() {
        let mut programs = ProgramTotals::default();
        let counted = [
            (Signal::CpuTime, 1e9),
            (Signal::Instructions, 2e9),
            (Signal::Cycles, 4e9),
            (Signal::LlcAccesses, 100.0),
            (Signal::LlcMisses, 25.0),
            (Signal::BusBusyCycles, 1e9),
        ];
        programs.add(&Observation {
            threads: vec![thread(7, &counted), thread(8, &[(Signal::CpuTime, 3e9)])],
            programs: BTreeMap::from([(ProgramId(8), ProgramId(7))]),
            ..Observation::default()
        });
        let rows = programs.rows(vec![(7, "a".to_owned()), (9, "b".to_owned())]);
        assert_eq!(rows[0].cpu_s, 4.0);
        assert_eq!(rows[0].instructions_per_cpu_s, Some(2e9));
        assert_eq!(rows[0].llc_miss_rate, Some(0.25));
        assert_eq!(rows[0].bus_occupancy, Some(0.25));
        assert_eq!((rows[0].bus_queue_time, rows[0].source), (None, "counters"));
        assert_eq!((rows[1].cpu_s, rows[1].source), (0.0, "none"));
    }
}
