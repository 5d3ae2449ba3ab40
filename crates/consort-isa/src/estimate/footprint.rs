//! Code footprint of a thread, in cache lines.

use std::collections::HashMap;

use serde::Serialize;

/// Bytes of a cache line on all supported processors.
const LINE_BYTES: u64 = 64;

/// The size of the code that a thread ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Footprint {
    /// Bytes of the distinct 64-byte lines that samples fell into.
    pub seen_bytes: u64,
    /// An estimate with the lines that were run but not sampled.
    pub estimated_bytes: u64,
}

/// Counts samples per line.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeLineSamples {
    samples: HashMap<u64, u64>,
}

impl CodeLineSamples {
    pub(super) fn add(&mut self, address: u64) {
        *self.samples.entry(address / LINE_BYTES).or_default() += 1;
    }

    /// The unseen lines by the bias-corrected estimator of Chao ("Nonparametric
    /// Estimation of the Number of Classes in a Population", 1984): with f1
    /// lines seen once and f2 seen twice, f1 (f1 - 1) / (2 (f2 + 1)). It is a
    /// lower bound in expectation.
    pub(super) fn footprint(&self) -> Footprint {
        let seen = self.samples.len() as u64;
        let once = self.count_seen(1);
        let twice = self.count_seen(2);
        let unseen = once * once.saturating_sub(1) / (2 * (twice + 1));
        Footprint {
            seen_bytes: seen * LINE_BYTES,
            estimated_bytes: (seen + unseen) * LINE_BYTES,
        }
    }

    fn count_seen(&self, times: u64) -> u64 {
        self.samples.values().filter(|&&n| n == times).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hot_line_is_one_line() {
        let mut lines = CodeLineSamples::default();
        for _ in 0..100 {
            lines.add(0x1010);
        }
        let footprint = lines.footprint();
        assert_eq!((footprint.seen_bytes, footprint.estimated_bytes), (64, 64));
    }

    #[test]
    fn lines_seen_once_speak_for_unseen_ones() {
        let mut lines = CodeLineSamples::default();
        for line in 0..10 {
            lines.add(line * 64);
        }
        // 10 + 10 * 9 / 2 lines.
        assert_eq!(lines.footprint().estimated_bytes, 55 * 64);
    }
}
