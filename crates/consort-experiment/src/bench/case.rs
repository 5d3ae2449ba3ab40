//! Cases: single figures that a bench measures again and again.

use super::BenchError;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Time to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few and short repetitions, which show only that it works.
    Quick,
    /// Enough for figures to publish.
    Full,
}

impl Effort {
    /// Repetitions that count.
    pub(crate) fn rounds(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Full => 11,
        }
    }

    fn slice(self) -> Duration {
        match self {
            Self::Quick => Duration::from_millis(1),
            Self::Full => Duration::from_millis(30),
        }
    }

    /// Part of the simulated time of a repetition.
    pub(crate) fn scale_quanta(self, whole: u32) -> u32 {
        match self {
            Self::Quick => whole.div_ceil(50),
            Self::Full => whole,
        }
    }
}

/// One repetition: the figure in the case's unit.
pub type BenchMeasure = Box<dyn FnMut() -> Result<f64, BenchError>>;
/// A figure from those of the bench's earlier cases in the same round.
pub type BenchDerivation = Box<dyn Fn(&[f64]) -> f64>;

/// Origin of a case's figure.
pub(crate) enum FigureSource {
    Measured(BenchMeasure),
    Derived(BenchDerivation),
}

/// One figure of a bench.
pub struct BenchCase {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) target: Option<f64>,
    pub(crate) figure: FigureSource,
}

impl BenchCase {
    /// A figure that is measured once in each round.
    pub fn from_measure(name: String, unit: &'static str, measure: BenchMeasure) -> Self {
        Self {
            name,
            unit,
            target: None,
            figure: FigureSource::Measured(measure),
        }
    }

    /// A figure that follows from the bench's earlier ones.
    pub fn from_derivation(name: String, unit: &'static str, derive: BenchDerivation) -> Self {
        Self {
            name,
            unit,
            target: None,
            figure: FigureSource::Derived(derive),
        }
    }

    /// The same with an aim, in its unit.
    #[must_use]
    pub fn with_target(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }
}

/// Repeats `once` as often as fills a slice, which the first call finds out; ns per time.
pub(crate) fn measure_ns(effort: Effort, mut once: impl FnMut() + 'static) -> BenchMeasure {
    let mut times = None;
    Box::new(move || {
        let times = *times.get_or_insert_with(|| times_for(effort.slice(), &mut once));
        let watch = Stopwatch::start();
        for _ in 0..times {
            once();
        }
        Ok(watch.ns() / f64::from(times))
    })
}

/// Number of times that something fits into a time; at least one.
fn times_for(slice: Duration, once: &mut impl FnMut()) -> u32 {
    // The first call pays for cold caches and would make the estimate too small.
    once();
    let watch = Stopwatch::start();
    once();
    let times = slice.as_secs_f64() / watch.seconds();
    times.clamp(1.0, 100_000.0) as u32
}

/// The slope of a straight line through points on double logarithmic paper: the exponent of
/// growth (least squares).
pub(crate) fn exponent(sizes: &[f64], costs: &[f64]) -> f64 {
    let points = || sizes.iter().zip(costs).map(|(x, y)| (x.ln(), y.ln()));
    let n = sizes.len().min(costs.len()) as f64;
    let (mean_x, mean_y) = points().fold((0.0, 0.0), |m, p| (m.0 + p.0 / n, m.1 + p.1 / n));
    let across: f64 = points().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let along: f64 = points().map(|p| (p.0 - mean_x) * (p.0 - mean_x)).sum();
    across / along
}

/// A stopwatch of the processor time of this thread: other work on the host counts only as far as it
/// slows the processor down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    /// Processor time since the start, s.
    pub(crate) fn seconds(self) -> f64 {
        now().saturating_sub(self.0).as_secs_f64()
    }

    /// Processor time since the start, ns.
    pub(crate) fn ns(self) -> f64 {
        self.seconds() * 1e9
    }
}

/// The clock is part of POSIX and cannot fail for the calling thread (`clock_gettime(3)`). If it did,
/// all times would be 0 and all rates infinite, which are no figures.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::hint::black_box;
    use std::rc::Rc;

    #[test]
    fn long_work_is_done_once() {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        let mut once = move || {
            counted.set(counted.get() + 1);
            let watch = Stopwatch::start();
            while watch.seconds() < 0.002 {}
        };
        assert_eq!(times_for(Duration::from_millis(1), &mut once), 1);
        assert_eq!(calls.get(), 2);
    }

    proptest! {
        #[test]
        fn a_power_has_its_exponent(power in 0.0f64..3.0, factor in 0.1f64..100.0) {
            let sizes = [16.0, 32.0, 64.0, 1024.0];
            let costs = sizes.map(|n: f64| factor * n.powf(power));
            prop_assert!((exponent(&sizes, &costs) - power).abs() < 1e-9);
        }
    }

    #[test]
    fn work_takes_time_and_sleep_hardly_any() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(200));
        assert!(watch.seconds() < 0.1);
        (0..1_000_000_u64).for_each(|i| {
            black_box(i);
        });
        assert!(watch.ns() > 0.0);
    }
}
