//! Sizes of errors: mean, 95th percentile, histogram.

use consort_core::model::Deviation;
use consort_core::stats::{mean, quantile};

/// Width of a bin, in percent.
const WIDTH_PERCENT: f64 = 2.0;
/// Beginning of the first closed bin, percent.
const LOWEST_PERCENT: f64 = -30.0;
/// Closed bins: from -30 to 30 percent.
const CLOSED_BINS: usize = 30;

/// Counts of errors in fixed bins of 2 percent from -30 to 30 percent, with one
/// open bin on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorHistogram {
    counts: Vec<u64>,
}

/// Errors of one kind, in percent.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorSpread {
    /// Number of errors.
    pub count: usize,
    /// Mean and 95th percentile of the magnitudes; 0 without errors.
    pub size: Deviation,
    /// The errors with their sign.
    pub histogram: ErrorHistogram,
}

impl ErrorHistogram {
    /// Counts these errors, in percent.
    pub fn from_percents(percents: &[f64]) -> Self {
        let mut counts = vec![0; CLOSED_BINS + 2];
        for percent in percents {
            counts[bin(*percent)] += 1;
        }
        Self { counts }
    }

    /// Every bin: its lower and upper edge in percent, infinite for the open
    /// ones, and how many errors fell into it. A bin holds its lower edge.
    pub fn bins(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let last = self.counts.len() - 1;
        self.counts.iter().enumerate().map(move |(i, count)| {
            let low = if i == 0 { f64::NEG_INFINITY } else { edge(i) };
            let high = if i == last {
                f64::INFINITY
            } else {
                edge(i + 1)
            };
            (low, high, *count)
        })
    }
}

impl ErrorSpread {
    /// The sizes of these errors, in percent.
    pub fn from_percents(percents: &[f64]) -> Self {
        let magnitudes: Vec<f64> = percents.iter().map(|p| p.abs()).collect();
        let size = Deviation {
            mean_absolute_percent: mean(&magnitudes).unwrap_or(0.0),
            p95_percent: quantile(&magnitudes, 0.95).unwrap_or(0.0),
        };
        Self {
            count: percents.len(),
            size,
            histogram: ErrorHistogram::from_percents(percents),
        }
    }
}

/// Lower edge of a bin other than the first.
fn edge(bin: usize) -> f64 {
    LOWEST_PERCENT + WIDTH_PERCENT * (bin as f64 - 1.0)
}

/// A cast to an integer keeps within its range, and takes NaN for 0.
fn bin(percent: f64) -> usize {
    let place = (percent - LOWEST_PERCENT) / WIDTH_PERCENT + 1.0;
    (place as usize).min(CLOSED_BINS + 1)
}
