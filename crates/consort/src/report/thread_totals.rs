//! One thread's sums over a run.

use super::ThreadRow;
use consort_core::stats::share_interval;
use consort_core::{
    Class, CycleStack, MemoryLimit, Mix, Placement, Sample, Signal, ThreadObservation,
    ThreadTraits, Throttle, Tier, classify, stack_source,
};
use consort_linux::enforce::EnactorKind;
use std::collections::BTreeMap;

/// A mean weighted by CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct WeightedMean {
    sum: f64,
    weight: f64,
}

impl WeightedMean {
    fn add(&mut self, value: f64, weight: f64) {
        self.sum += value * weight;
        self.weight += weight;
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
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
    fp_usage: WeightedMean,
    memory_stall: WeightedMean,
    /// Decoded samples of instruction addresses that these shares stand on.
    samples: u64,
    /// 1 where it was limited by bandwidth while it waited for memory, 0 by latency.
    bandwidth: WeightedMean,
    mix: Mix,
    stack: BTreeMap<String, f64>,
    stack_tier: Option<Tier>,
    futex_returns: Option<u64>,
    blocking_returns: Option<u64>,
    pub(super) moves: u64,
    enactor: Option<EnactorKind>,
    nudges: u64,
    /// The limit that held the thread last, and the share of periods in which one did.
    throttle: Option<Throttle>,
    throttled: WeightedMean,
    adherence: WeightedMean,
    cpus: String,
    reason: String,
}

impl ThreadTotals {
    /// Adds one interval of the thread.
    pub(super) fn add(&mut self, seen: &ThreadObservation, interval_ns: u64) {
        let cpu_ns = seen.sample.cpu_time_ns();
        seen.name.as_ref().clone_into(&mut self.name);
        self.cpu_ns += cpu_ns;
        let tier = seen
            .sample
            .reading(Signal::CpuTime)
            .map(|reading| reading.tier);
        if tier == Some(Tier::Sampling) {
            self.estimated_ns += cpu_ns;
        }
        if let Some(wait_ns) = seen.sample.get(Signal::WaitTime) {
            *self.wait_ns.get_or_insert(0.0) += wait_ns;
        }
        self.lifetime_ns += interval_ns;
        self.add_shares(&seen.sample, cpu_ns);
        add_count(&mut self.futex_returns, &seen.sample, Signal::FutexReturns);
        add_count(
            &mut self.blocking_returns,
            &seen.sample,
            Signal::BlockingReturns,
        );
        if self.cpus.is_empty() {
            self.cpus = seen.original.to_string();
        }
    }

    fn add_shares(&mut self, sample: &Sample, weight: f64) {
        if let Some(planned_ns) = sample.get(Signal::PlannedTime).filter(|_| weight > 0.0) {
            self.adherence.add(planned_ns / weight, weight);
        }
        if let Some(usage) = sample.get(Signal::FpUsage) {
            self.fp_usage.add(usage, weight);
        }
        if let Some(stall) = sample.get(Signal::MemoryStall) {
            self.memory_stall.add(stall, weight);
        }
        self.samples += sample.samples;
        if let Some(limit) = sample.memory_limit {
            let is_bandwidth = limit == MemoryLimit::Bandwidth;
            self.bandwidth.add(f64::from(is_bandwidth), weight);
        }
        if let Some(mix) = sample.mix {
            self.mix = self.mix.plus(mix, weight);
        }
        if let Some((stack, tier)) = &sample.stack {
            self.add_stack(stack, weight);
            self.stack_tier = self.stack_tier.max(Some(*tier));
        }
    }

    fn add_stack(&mut self, stack: &CycleStack, weight: f64) {
        for component in stack.components() {
            *self.stack.entry(component.name.to_string()).or_default() += weight * component.share;
        }
    }

    /// Adds whether a limit of its control group held the thread in an interval.
    pub(super) fn add_throttle(&mut self, throttle: Option<&Throttle>, interval_ns: u64) {
        let share = throttle.map_or(0.0, |throttle| throttle.share);
        self.throttled.add(share, interval_ns as f64);
        if let Some(throttle) = throttle {
            self.throttle = Some(throttle.clone());
        }
    }

    /// Counts a nudge of the thread.
    pub(super) fn count_nudge(&mut self) {
        self.nudges += 1;
        self.enactor = Some(EnactorKind::Nudge);
    }

    /// Notes that a lasting mask keeps the thread in place.
    pub(super) fn set_pinned(&mut self) {
        self.enactor = Some(EnactorKind::Pin);
    }

    /// Notes where a plan put the thread.
    pub(super) fn place(&mut self, seen: &ThreadObservation, placement: &Placement, why: &str) {
        self.cpus = match placement {
            Placement::Unrestricted => seen.original.to_string(),
            Placement::Restricted(pus) => pus.to_string(),
        };
        why.clone_into(&mut self.reason);
    }

    fn mix(&self) -> Option<Mix> {
        (self.mix.total() > 0.0).then(|| self.mix.normalised())
    }

    pub(super) fn class(&self) -> Class {
        classify(ThreadTraits {
            wanted_share: (self.cpu_ns + self.wait_ns.unwrap_or(0.0))
                / self.lifetime_ns.max(1) as f64,
            mix: self.mix(),
            memory_stall: self.memory_stall.value(),
        })
    }

    fn memory_limit(&self) -> Option<MemoryLimit> {
        let bandwidth = self.bandwidth.value()?;
        let limit = match bandwidth > 0.5 {
            true => MemoryLimit::Bandwidth,
            false => MemoryLimit::Latency,
        };
        (self.class() == Class::Memory).then_some(limit)
    }

    fn memory_stall_interval(&self) -> Option<[f64; 2]> {
        let (low, high) = share_interval(self.memory_stall.value()?, self.samples)?;
        Some([low, high])
    }

    pub(super) fn row(&self, pid: u32, tid: u32) -> ThreadRow {
        let total: f64 = self.stack.values().sum();
        let share = |(name, amount): (&String, &f64)| (name.clone(), amount / total);
        ThreadRow {
            pid,
            tid,
            name: self.name.clone(),
            cpu_s: self.cpu_ns / 1e9,
            wait_s: self.wait_ns.map(|ns| ns / 1e9),
            class: self.class(),
            fp_usage: self.fp_usage.value(),
            mix: self.mix(),
            memory_stall: self.memory_stall.value(),
            memory_stall_ci95: self.memory_stall_interval(),
            memory_limit: self.memory_limit(),
            stack: self
                .stack
                .iter()
                .filter(|_| total > 0.0)
                .map(share)
                .collect(),
            throttled: self.throttle.clone().map(|throttle| Throttle {
                share: self.throttled.value().unwrap_or(0.0),
                ..throttle
            }),
            stack_source: self.stack_tier.map_or("none", stack_source),
            futex_returns: self.futex_returns,
            blocking_returns: self.blocking_returns,
            moves: self.moves,
            enactor: self.enactor,
            adherence: self.adherence.value(),
            nudges: self.nudges,
            cpus: self.cpus.clone(),
            reason: self.reason.clone(),
        }
    }
}

/// Adds what was counted in an interval, where it was.
fn add_count(sum: &mut Option<u64>, sample: &Sample, signal: Signal) {
    if let Some(count) = sample.get(signal) {
        *sum = Some(sum.unwrap_or(0) + count as u64);
    }
}
