//! Random draws, one independent stream per thread and purpose.
//!
//! A stream's seed is made of the run's seed and the numbers of instance and thread, so that
//! adding a program leaves the draws of the others as they were.

use crate::math::ln;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Purpose of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Variation within phases.
    Burst = 1,
    /// Length and spacing of input and output.
    Io = 2,
    /// Imbalance between barriers.
    Barrier = 3,
    /// Decisions of the operating system's model.
    Os = 4,
    /// Acquisitions of locks: the lock, the time and the duration.
    Lock = 5,
}

/// A stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct RandomStream(Pcg64);

impl RandomStream {
    /// The stream for a purpose of a thread of an instance.
    pub(crate) fn new(seed: u64, purpose: Purpose, instance: usize, thread: usize) -> Self {
        let parts = [purpose as u64, instance as u64, thread as u64];
        let mixed = parts
            .iter()
            .fold(mix(seed), |hash, part| mix(hash ^ mix(*part)));
        Self(Pcg64::seed_from_u64(mixed))
    }

    /// Uniform in the open interval from 0 to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        let bits = self.0.next_u64() >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Uniform among `0..n`; 0 when `n` is 0.
    pub(crate) fn uniform_below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// A standard normal deviate (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * ln(self.uniform())).sqrt();
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// An exponential deviate.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(self.uniform())
    }

    /// The numbers below `n` in random order (Fisher and Yates).
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last, self.uniform_below(last + 1));
        }
        order
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mut next: impl FnMut() -> f64) -> (f64, f64) {
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|_| next()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let square = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        (mean, square / f64::from(n))
    }

    #[test]
    fn deviates_have_their_mean_and_variance() {
        let mut draw = RandomStream::new(1, Purpose::Burst, 0, 0);
        let (mean, variance) = moments(|| draw.normal());
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05);
        let (mean, variance) = moments(|| draw.exponential(2.0));
        assert!((mean - 2.0).abs() < 0.06 && (variance - 4.0).abs() < 0.4);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first =
            |purpose, instance, thread| RandomStream::new(7, purpose, instance, thread).uniform();
        assert_eq!(first(Purpose::Io, 1, 2), first(Purpose::Io, 1, 2));
        assert_ne!(first(Purpose::Io, 1, 2), first(Purpose::Io, 2, 1));
        assert_ne!(first(Purpose::Io, 1, 2), first(Purpose::Burst, 1, 2));
    }

    #[test]
    fn orders_are_permutations() {
        let mut order = RandomStream::new(3, Purpose::Os, 0, 0).order(50);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}
