//! Burstiness: a seeded, auto-correlated variation within phases.
//!
//! The factor's logarithm follows a first-order autoregression, z' = r·z + √(1−r²)·n with n
//! standard normal, and the factor is exp(s·z − s²/2): log-normal with mean 1 (Box, Jenkins,
//! "Time Series Analysis", section 3.2). It is drawn again every `interval_ginstr` of the
//! thread's own instructions. What was drawn takes effect at the next multiple of [`GRID_PS`]
//! of simulated time, as the mean of all draws since the last, so that the draws of many threads
//! share one solution; the grid is fixed, so quanta and plans do not change what happens.
//!
//! Threads that meet at barriers go through the same parts of the work together, so they have one
//! factor, drawn by their first; how unequal their work is between two barriers, the barrier's
//! `imbalance` says. Other threads have factors of their own.

use super::draw::RandomStream;
use super::time::PS_PER_MS;
use crate::math::exp;
use crate::program::{Burstiness, ProgramSpec};

/// Instants at which new factors take effect, ps apart: about the time that 10^8 instructions
/// take, the interval for which phase sequences are published.
pub(crate) const GRID_PS: u64 = 100 * PS_PER_MS;

/// The first instant of the grid after another.
pub(crate) fn next_on_grid(now_ps: u64) -> u64 {
    (now_ps / GRID_PS + 1) * GRID_PS
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

    /// The factor as last drawn.
    pub(crate) fn factor(&self) -> f64 {
        self.spec.map_or(1.0, |s| {
            exp(s.log_sd * self.deviate - 0.5 * s.log_sd * s.log_sd)
        })
    }

    /// Draws the next factor.
    pub(crate) fn redraw(&mut self) {
        if let Some(s) = self.spec {
            let fresh = (1.0 - s.correlation * s.correlation).max(0.0).sqrt();
            self.deviate = s.correlation * self.deviate + fresh * self.draw.normal();
            self.left = interval(&s);
            self.pending.0 += self.factor();
            self.pending.1 += 1.0;
        }
    }

    /// The mean of what was drawn since the last call; nothing when nothing was.
    pub(crate) fn take_mean(&mut self) -> Option<f64> {
        let (sum, n) = std::mem::take(&mut self.pending);
        (n > 0.0).then(|| sum / n)
    }
}

fn interval(spec: &Burstiness) -> f64 {
    (spec.interval_ginstr * 1e9).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::draw::Purpose;
    use super::*;

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
        let logs: Vec<f64> = factors
            .iter()
            .map(|f| crate::math::ln(*f) + 0.045)
            .collect();
        let variance = logs.iter().map(|x| x * x).sum::<f64>() / n;
        let lagged = logs.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n;
        assert!((variance.sqrt() - 0.3).abs() < 0.01, "{variance}");
        assert!((lagged / variance - 0.7).abs() < 0.03);
    }

    #[test]
    fn what_takes_effect_is_the_mean_of_what_was_drawn() {
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
    fn without_burstiness_nothing_varies_and_nothing_is_due() {
        let mut burst = BurstFactor::new(None, RandomStream::new(5, Purpose::Burst, 0, 0));
        burst.redraw();
        assert_eq!((burst.factor(), burst.left), (1.0, f64::INFINITY));
        assert_eq!(burst.take_mean(), None);
    }
}
