//! Pseudo-random numbers, one independent stream per thread and purpose, and what threads draw.
//!
//! A stream's seed is made of the run's seed and the numbers of program and thread, so that adding
//! a program leaves the draws of the others unchanged.
//!
//! *Burstiness* is an auto-correlated variation within phases. The factor's logarithm follows a
//! first-order autoregression, z' = r·z + √(1−r²)·n with n standard normal, and the factor is
//! exp(s·z − s²/2): log-normal with mean 1 (Box, Jenkins, "Time Series Analysis", section 3.2). It
//! is drawn again every `interval_ginstr` of the thread's own instructions. What was drawn takes
//! effect at the next multiple of [`GRID_PS`](super::calendar::GRID_PS) of simulated time, as the
//! mean of all draws since the last, so that the draws of many threads share one solution; the grid
//! is fixed, so quanta and plans do not change what happens. Threads that meet at barriers go
//! through the same parts of the work together, so they have one factor, drawn by their first; how
//! unequal their work is between two barriers, the barrier's `imbalance` says. Other threads have
//! factors of their own.
//!
//! *Input and output*: operations are evenly spaced in instructions, the first at a random point of
//! the spacing; the time blocked is exponential. If operations are closer than [`CLOSEST_INSTR`], k
//! of them are taken together: the time blocked is then the sum of k exponentials, by the central
//! limit theorem k·mean + √k·mean·n with n standard normal.

use crate::math::{exp, ln};
use crate::program::{Burstiness, IoSpec, ProgramSpec};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

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

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct RandomStream(Pcg64);

impl RandomStream {
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

/// True if a program's threads have one factor.
pub(crate) fn is_common(program: &ProgramSpec) -> bool {
    let threads = program.threads.as_ref();
    threads.is_some_and(|threads| threads.barrier.is_some() && threads.stages.is_empty())
}

/// One thread's factor.
#[derive(Clone, Debug)]
pub(crate) struct BurstFactor {
    spec: Option<Burstiness>,
    draw: RandomStream,
    deviate: f64,
    /// Sum and number of the factors drawn that have not taken effect.
    pending: (f64, f64),
    /// Instructions until the next draw.
    pub(crate) left: f64,
}

impl BurstFactor {
    /// The factor's process in its stationary state.
    pub(crate) fn new(spec: Option<Burstiness>, mut draw: RandomStream) -> Self {
        let deviate = draw.normal();
        let left = spec.map_or(f64::INFINITY, |s| interval(&s));
        Self {
            spec,
            draw,
            deviate,
            pending: (0.0, 0.0),
            left,
        }
    }

    pub(crate) fn factor(&self) -> f64 {
        self.spec.map_or(1.0, |s| {
            exp(s.log_sd * self.deviate - 0.5 * s.log_sd * s.log_sd)
        })
    }

    pub(crate) fn redraw(&mut self) {
        if let Some(s) = self.spec {
            let fresh = (1.0 - s.correlation * s.correlation).max(0.0).sqrt();
            self.deviate = s.correlation * self.deviate + fresh * self.draw.normal();
            self.left = interval(&s);
            self.pending.0 += self.factor();
            self.pending.1 += 1.0;
        }
    }

    /// The mean of the factors drawn since the last call; `None` if none was.
    pub(crate) fn take_mean(&mut self) -> Option<f64> {
        let (sum, n) = std::mem::take(&mut self.pending);
        (n > 0.0).then(|| sum / n)
    }
}

fn interval(spec: &Burstiness) -> f64 {
    (spec.interval_ginstr * 1e9).max(1.0)
}

/// Least instructions between two blockings: about 50 µs on the cores of today.
const CLOSEST_INSTR: f64 = 1e5;

/// One thread's input and output.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    draw: RandomStream,
    spacing: f64,
    together: f64,
    mean_s: f64,
    /// Instructions until the thread blocks.
    pub(crate) left: f64,
}

impl Io {
    /// The operations of a thread.
    pub(crate) fn new(spec: Option<IoSpec>, mut draw: RandomStream) -> Self {
        let single = match spec {
            Some(io) if io.per_ginstr > 0.0 => 1e9 / io.per_ginstr,
            _ => f64::INFINITY,
        };
        let together = libm::ceil(CLOSEST_INSTR / single).max(1.0);
        let spacing = single * together;
        Self {
            left: spacing * draw.uniform(),
            spacing,
            together,
            mean_s: spec.map_or(0.0, |io| io.blocked_us * 1e-6),
            draw,
        }
    }

    /// Begins the operation that is due. Returns the time that it blocks, s.
    pub(crate) fn begin_operation(&mut self) -> f64 {
        self.left = self.spacing;
        if self.together > 1.0 {
            let spread = self.together.sqrt() * self.draw.normal();
            return (self.mean_s * (self.together + spread)).max(0.0);
        }
        self.draw.exponential(self.mean_s)
    }
}

#[cfg(test)]
mod tests {
    use super::Purpose;
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

    #[test]
    fn factors_have_mean_one_and_the_stated_correlation() {
        let spec = Burstiness {
            log_sd: 0.3,
            correlation: 0.7,
            interval_ginstr: 0.1,
        };
        let mut burst = BurstFactor::new(Some(spec), RandomStream::new(5, Purpose::Burst, 0, 0));
        let mut factors = Vec::new();
        for _ in 0..40_000 {
            factors.push(burst.factor());
            burst.redraw();
        }
        let n = factors.len() as f64;
        let mean = factors.iter().sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        let logs: Vec<f64> = factors.iter().map(|f| ln(*f) + 0.045).collect();
        let variance = logs.iter().map(|x| x * x).sum::<f64>() / n;
        let lagged = logs.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n;
        assert!((variance.sqrt() - 0.3).abs() < 0.01, "{variance}");
        assert!((lagged / variance - 0.7).abs() < 0.03);
    }

    #[test]
    fn effect_is_mean_of_pending_draws() {
        let spec = Burstiness {
            log_sd: 0.3,
            correlation: 0.0,
            interval_ginstr: 0.1,
        };
        let mut burst = BurstFactor::new(Some(spec), RandomStream::new(5, Purpose::Burst, 0, 0));
        burst.redraw();
        let first = burst.factor();
        burst.redraw();
        let mean = (first + burst.factor()) / 2.0;
        assert_eq!((burst.take_mean(), burst.take_mean()), (Some(mean), None));
    }

    #[test]
    fn without_burstiness_nothing_is_drawn() {
        let mut burst = BurstFactor::new(None, RandomStream::new(5, Purpose::Burst, 0, 0));
        burst.redraw();
        assert_eq!((burst.factor(), burst.left), (1.0, f64::INFINITY));
        assert_eq!(burst.take_mean(), None);
    }

    /// Share of time blocked at 10^9 instructions per second is rate times length either way.
    #[test]
    fn blocked_time_matches_description_at_any_spacing() {
        for per_ginstr in [100.0, 1e6] {
            let spec = IoSpec {
                per_ginstr,
                blocked_us: 50.0,
            };
            let mut io = Io::new(Some(spec), RandomStream::new(1, Purpose::Io, 0, 0));
            io.begin_operation();
            let n = 4000;
            let blocked: f64 = (0..n).map(|_| io.begin_operation()).sum();
            let instructions = io.left * f64::from(n);
            let expected = instructions * 1e-9 * per_ginstr * 50e-6;
            assert!((blocked / expected - 1.0).abs() < 0.05, "{per_ginstr}");
            assert!(io.left >= CLOSEST_INSTR);
        }
    }
}
