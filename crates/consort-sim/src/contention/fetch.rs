//! Cycles of fetch per instruction.
//!
//! A cycle brings at most so many operations from one aligned block of code, and ends at a taken
//! branch. Where a run of instructions ends is as likely behind each of them, so what is left of it
//! at a block's border is distributed as the whole run is, and the mean is exact but for how many
//! operations a block holds.

use crate::machine::tables::FrontTables;
use crate::math::{exp, pow};
use crate::program::StretchSpec;

/// Taken branches per instruction, at least: where there are none, runs are long.
const RAREST: f64 = 1e-4;

/// Deviation of an instruction's length over its mean, estimated: eleven of the traced programs have
/// 0.17 to 0.49, their median is 0.44.
const LENGTHS: f64 = 0.45;

/// Cycles of fetch per instruction, of which each takes so many bytes.
pub(super) fn turns(front: &FrontTables, stretch: &StretchSpec, bytes: f64) -> f64 {
    let taken = stretch.taken.max(RAREST);
    let operations = stretch.operations;
    let goes_on = 1.0 - (taken / operations).min(1.0);
    let run = match front.op_cache {
        // Lines of decoded operations follow each other within a cycle.
        Some(cache) => 1.0 / (1.0 - pow(goes_on, f64::from(cache.width))),
        None => {
            let block = operations * f64::from(front.fetch_bytes) / bytes;
            CodeRun { goes_on, block }.cycles(f64::from(front.fetch_width))
        }
    };
    taken * run
}

/// Operations from one taken branch to the next.
struct CodeRun {
    /// Likelihood that another operation follows, 0 to 1.
    goes_on: f64,
    /// Operations that an aligned block of code holds, on average.
    block: f64,
}

impl CodeRun {
    /// Mean cycles that fetch takes for it.
    fn cycles(&self, width: f64) -> f64 {
        let survives = pow(self.goes_on, self.block);
        if survives >= 1.0 {
            return f64::INFINITY;
        }
        let (mut entered, mut crossed) = (0.0, 0.0);
        let mut before = 0.0;
        let mut likely = 1.0;
        let turn = pow(self.goes_on, width);
        while before < self.block + 4.0 * self.deviation() {
            entered += likely * (1.0 - before / self.block).max(0.0);
            crossed += likely * self.overflow_likelihood(before);
            before += width;
            likely *= turn;
        }
        // A branch leads to any instruction of a block, crossing its border to the first.
        let crosses = self.goes_on * (1.0 - survives) / (self.block * (1.0 - self.goes_on));
        entered + crosses.min(1.0) * crossed / (1.0 - survives)
    }

    /// Likelihood that a block holds more than so many operations, 0 to 1: the normal distribution
    /// by its logistic approximation.
    fn overflow_likelihood(&self, operations: f64) -> f64 {
        const LOGISTIC: f64 = 1.702;
        if operations == 0.0 {
            return 1.0;
        }
        let beyond = self.block - operations - 0.5;
        1.0 / (1.0 + exp(-LOGISTIC * beyond / self.deviation()))
    }

    /// Deviation of the operations in a block, as of renewals.
    fn deviation(&self) -> f64 {
        LENGTHS * self.block.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    const BLOCK: u32 = 32;

    /// Cycles for a run from a random place, of instructions of 1 to 7 bytes.
    fn fetched(random: &mut impl Rng, width: u32, goes_on: f64) -> f64 {
        let mut at = random.random_range(0..BLOCK);
        let (mut cycles, mut left, mut block) = (1, width, at / BLOCK);
        loop {
            if left == 0 || at / BLOCK != block {
                cycles += 1;
                (left, block) = (width, at / BLOCK);
            }
            left -= 1;
            at += random.random_range(1..=7);
            if !random.random_bool(goes_on) {
                return f64::from(cycles);
            }
        }
    }

    #[test]
    fn random_code_takes_as_many_cycles() {
        const RUNS: u32 = 100_000;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for (width, goes_on) in [(4, 0.9), (4, 0.97), (8, 0.9), (5, 0.8), (3, 0.95)] {
            let sum: f64 = (0..RUNS)
                .map(|_| fetched(&mut random, width, goes_on))
                .sum();
            let run = CodeRun {
                goes_on,
                block: f64::from(BLOCK) / 4.0,
            };
            let ratio = run.cycles(f64::from(width)) * f64::from(RUNS) / sum;
            assert!((0.95..1.05).contains(&ratio), "{width} {goes_on}: {ratio}");
        }
    }

    #[test]
    fn a_branch_every_time_takes_a_cycle_every_time() {
        let run = CodeRun {
            goes_on: 0.0,
            block: 8.0,
        };
        assert_eq!(run.cycles(4.0), 1.0);
    }
}
