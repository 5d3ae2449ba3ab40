//! `stream`: the triad `a[i] = b[i] + s * c[i]` over arrays beyond the caches
//! (McCalpin's STREAM), block after block.
//!
//! The three arrays of all threads together take four times the last-level
//! cache, at most 256 MiB, but each thread at least 6 MiB. On chips with a
//! larger last-level cache the triad partly runs from it.

use super::chase::share_bytes;
use crate::kernel::{ExpectedClass, Kernel, KernelEntry, make_builders};
use crate::tally::UnitTally;
use std::hint::black_box;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "stream",
    summary: "triad over three arrays (256 MiB at most for all threads together)",
    stresses: "memory bandwidth",
    class: ExpectedClass::Memory,
    builders: |setup| {
        let total = setup.caches.llc_bytes.saturating_mul(4);
        let bytes = share_bytes(total, setup.threads, 6 << 20);
        make_builders(setup, move |_| Ok(StreamKernel::new(bytes)))
    },
};

/// Elements of each array that one unit works on: 32 KiB.
const BLOCK: usize = 4_096;

/// The factor `s`.
const FACTOR: f64 = 3.0;

/// Every how many elements one goes into the checksum: one per line.
const SAMPLE: usize = 8;

#[derive(Debug)]
struct StreamKernel {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    tally: UnitTally,
}

impl StreamKernel {
    fn new(bytes: usize) -> Self {
        let blocks = (bytes / (3 * size_of::<f64>() * BLOCK)).max(1);
        let filled = |value: fn(usize) -> f64| (0..blocks * BLOCK).map(value).collect();
        Self {
            a: filled(|_| 0.0),
            b: filled(b_value),
            c: filled(c_value),
            tally: UnitTally::default(),
        }
    }

    fn blocks(&self) -> u64 {
        (self.a.len() / BLOCK) as u64
    }

    /// The triad over one block; the sum of every [`SAMPLE`]th result.
    fn unit(&mut self, block: u64) -> u64 {
        let first = usize::try_from(block).unwrap_or(0) * BLOCK;
        let range = first..first + BLOCK;
        let (a, b, c) = (
            &mut self.a[range.clone()],
            &self.b[range.clone()],
            &self.c[range],
        );
        let factor = black_box(FACTOR);
        for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
            *a = b + factor * c;
        }
        a.iter().step_by(SAMPLE).fold(0, |sum, a| sum + *a as u64)
    }
}

/// Small whole numbers, so that the triad is exact and does not overflow.
fn b_value(i: usize) -> f64 {
    f64::from(u16::try_from(i % 1_021).unwrap_or(0))
}

fn c_value(i: usize) -> f64 {
    f64::from(u16::try_from(i % 509).unwrap_or(0))
}

/// Value that [`StreamKernel::unit`] must return for a block.
fn block_sum(block: u64) -> u64 {
    let first = usize::try_from(block).unwrap_or(0) * BLOCK;
    (first..first + BLOCK)
        .step_by(SAMPLE)
        .fold(0, |sum, i| sum + (b_value(i) + FACTOR * c_value(i)) as u64)
}

impl Kernel for StreamKernel {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let sum = self.unit(self.tally.seed(self.blocks()));
            self.tally.add(sum);
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(self.blocks(), block_sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_element_is_noticed() {
        let mut stream = StreamKernel::new(0);
        stream.b[SAMPLE] += 1.0;
        assert_ne!(stream.work(3), stream.expected());
    }
}
