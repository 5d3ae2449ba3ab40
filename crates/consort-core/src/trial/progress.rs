//! Progress of a program over a stretch, by the best measure that a machine offers.

use crate::sample::Sample;
use crate::signal::{Signal, SignalOffers};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Meaning of a number that the user names as the measure of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricKind {
    /// Work done so far: its increase per second counts.
    #[default]
    Count,
    /// A rate or a score: more is better.
    More,
    /// A time or a cost: less is better.
    Less,
}

/// Measure of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgressMeasure {
    /// A number that the user names.
    Metric(MetricKind),
    /// Instructions retired per second.
    Instructions,
    /// CPU time over the time in which threads could run: an estimate, which sees waiting for CPUs
    /// but not what threads do to each other inside a core or a cache.
    Waiting,
}

impl ProgressMeasure {
    /// The best measure of a machine that offers these signals, without a number that the user names;
    /// `None` if nothing there measures progress.
    pub fn from_offers(offers: &SignalOffers) -> Option<Self> {
        let has = |signal| offers.tier_of(signal).is_some();
        if has(Signal::Instructions) {
            return Some(Self::Instructions);
        }
        (has(Signal::CpuTime) && has(Signal::WaitTime)).then_some(Self::Waiting)
    }

    /// Returns true for a measure that only follows progress.
    pub fn is_estimated(self) -> bool {
        self == Self::Waiting
    }
}

impl fmt::Display for ProgressMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metric(_) => "metric",
            Self::Instructions => "instructions per second",
            Self::Waiting => "share of runnable time on a CPU",
        })
    }
}

/// Sums over the measured part of a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgressSums {
    time_ns: f64,
    /// `None` as soon as a thread lacks the count.
    instructions: Option<f64>,
    run_ns: f64,
    wait_ns: f64,
}

impl ProgressSums {
    /// Begins the sums of a quantum of this length.
    pub(super) fn for_quantum(time_ns: u64) -> Self {
        Self {
            time_ns: time_ns as f64,
            instructions: Some(0.0),
            ..Self::default()
        }
    }

    /// A throttled thread waits for the limit of its control group, wherever it is placed.
    pub(super) fn add_thread(&mut self, sample: &Sample, is_throttled: bool) {
        let counted = sample.get(Signal::Instructions);
        self.instructions = self.instructions.zip(counted).map(|(sum, n)| sum + n);
        if !is_throttled {
            self.run_ns += sample.cpu_time_ns();
            self.wait_ns += sample.get(Signal::WaitTime).unwrap_or(0.0);
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let instructions = self.instructions.zip(other.instructions);
        *self = Self {
            time_ns: self.time_ns + other.time_ns,
            instructions: instructions.map(|(a, b)| a + b),
            run_ns: self.run_ns + other.run_ns,
            wait_ns: self.wait_ns + other.wait_ns,
        };
    }

    /// The same sums over so much time.
    pub(super) fn within(self, time_ns: u64) -> Self {
        Self {
            time_ns: time_ns as f64,
            ..self
        }
    }

    /// Progress by these sums; `None` if they lack it.
    pub(super) fn progress(&self, measure: ProgressMeasure) -> Option<f64> {
        let wanted = self.run_ns + self.wait_ns;
        match measure {
            ProgressMeasure::Metric(_) => None,
            ProgressMeasure::Instructions => Some(self.instructions? / self.time_ns),
            ProgressMeasure::Waiting => (wanted > 0.0).then(|| self.run_ns / wanted),
        }
    }
}

/// Readings of the user's number in the measured part of a stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetricReadings {
    first: Option<(f64, f64)>,
    last: (f64, f64),
    sum: f64,
    count: f64,
}

impl MetricReadings {
    pub(super) fn add(&mut self, value: f64, time_ns: u64) {
        let reading = (value, time_ns as f64);
        self.first.get_or_insert(reading);
        self.last = reading;
        self.sum += value;
        self.count += 1.0;
    }

    pub(super) fn progress(&self, kind: MetricKind) -> Option<f64> {
        let (first, begin_ns) = self.first?;
        let (last, end_ns) = self.last;
        let mean = self.sum / self.count;
        match kind {
            MetricKind::Count => (end_ns > begin_ns).then(|| (last - first) / (end_ns - begin_ns)),
            MetricKind::More => Some(mean),
            MetricKind::Less => Some(1.0 / mean),
        }
    }
}
