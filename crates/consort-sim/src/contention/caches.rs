//! Shared caches: division of their capacity among the threads that use them, and their sets.
//!
//! Under LRU all lines of a cache leave it at one age T. A sharer that brings in bytes at some rate
//! holds what it brought in during T, so `T = ∫₀^Cᵢ dc / (aᵢ·mrᵢ(c))` for every sharer i, with the
//! Cᵢ adding up to the capacity (a_i accesses per second, mr_i the miss-rate curve). The integral
//! is tabulated in [`MissCurve`]; T is found by Newton's method, which converges from below because
//! held capacity is concave in T.
//!
//! Data that siblings share is held once: each of n siblings is charged `(1 − s) + s/n` of what it
//! holds. If lines are longer than those of the curves, what a thread holds takes more of the
//! cache, and it is charged so many times as much ([`LineEffect`](crate::phase::LineEffect)).

use crate::math::{exp, ln};
use crate::phase::MissCurve;

/// One thread's use of one cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheStream<'a> {
    /// Its misses.
    pub(crate) curve: &'a MissCurve,
    /// Instructions per second, times the intensity.
    pub(crate) speed: f64,
    /// Share of what it holds that it is charged for.
    pub(crate) charge: f64,
    /// Position of the last answer in the curve's table; any number at first.
    pub(crate) step: usize,
}

impl<'a> CacheStream<'a> {
    /// Returns a stream of one instruction per second that is charged for all that it holds.
    pub(crate) fn from_curve(curve: &'a MissCurve) -> Self {
        Self {
            curve,
            speed: 1.0,
            charge: 1.0,
            step: 0,
        }
    }
}

/// Newton steps at most; the error after them is below rounding for every curve tried.
const STEPS: u32 = 60;

/// Divides `capacity` bytes and writes to `held` what each stream holds. `age` is a guess of the
/// eviction age, s, where there is one, and the eviction age afterwards.
pub(crate) fn divide(
    capacity: f64,
    streams: &mut [CacheStream<'_>],
    age: &mut Option<f64>,
    held: &mut Vec<f64>,
) {
    held.clear();
    if let [only] = streams {
        held.push(capacity / only.charge);
        return;
    }
    let guess = age.unwrap_or_else(|| lower_bound(capacity, streams));
    held.resize(streams.len(), 0.0);
    *age = Some(eviction_age(capacity, streams, guess, held));
}

/// Instructions from empty until a thread's data and code hold so many bytes together.
pub(crate) fn time_to_fill(bytes: f64, data: &MissCurve, code: &MissCurve) -> f64 {
    // With data alone it would take longer, and code holds no more than it would by then.
    let (of_code, _) = code.content_after(data.fill_for(bytes), &mut 0);
    let guess = data.fill_for((bytes - of_code).max(0.5 * bytes));
    let mut streams = [CacheStream::from_curve(data), CacheStream::from_curve(code)];
    eviction_age(bytes, &mut streams, guess, &mut [0.0; 2])
}

/// The age, s, at which lines leave the cache, and in `held` what each stream then holds. From a
/// guess too high, the first step leads below the root; from there on every step goes up.
fn eviction_age(
    capacity: f64,
    streams: &mut [CacheStream<'_>],
    guess: f64,
    held: &mut [f64],
) -> f64 {
    let mut age = guess;
    for _ in 0..STEPS {
        let (all, slope) = bytes_at_age(age, streams, held);
        let lacking = capacity - all;
        if lacking.abs() <= capacity * 1e-10 {
            return age;
        }
        age += lacking / slope;
    }
    bytes_at_age(age, streams, held);
    age
}

/// An age at which no stream has more than an equal part, so that the cache is not full.
fn lower_bound(capacity: f64, streams: &[CacheStream<'_>]) -> f64 {
    let part = capacity / streams.len() as f64;
    let ages = streams
        .iter()
        .map(|s| s.curve.fill_for(part / s.charge) / s.speed);
    ages.fold(f64::INFINITY, f64::min)
}

/// Bytes held at an age, and bytes more per second of age; in `held`, what each stream holds.
fn bytes_at_age(age: f64, streams: &mut [CacheStream<'_>], held: &mut [f64]) -> (f64, f64) {
    let mut sum = (0.0, 0.0);
    for (s, held) in streams.iter_mut().zip(held) {
        let (bytes, per_instruction) = s.curve.content_after(age * s.speed, &mut s.step);
        *held = bytes;
        sum.0 += bytes * s.charge;
        sum.1 += per_instruction * s.speed * s.charge;
    }
    sum
}

/// Effective capacity of a set-associative cache for the lines that fall into one of its sets,
/// relative to a cache in which any line can be anywhere.
///
/// A line whose last use lies `d` lines back is still there if fewer than the ways A of these fell
/// into its set. Their number is Poisson distributed with mean `A·d/C` (Smith, IEEE TSE 1978), so
/// that the cache acts as if its capacity were `C/A` times a Gamma distributed number of mean A.
/// Three points of the log-normal distribution with the same mean and variance stand for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CacheSets([(f64, f64); SETS]);

/// Number of points that stand for the distribution of effective capacities.
pub(crate) const SETS: usize = 3;

impl CacheSets {
    pub(super) fn from_ways(ways: u32) -> Self {
        let variance = ln(1.0 + 1.0 / f64::from(ways.max(1)));
        let spread = (3.0 * variance).sqrt();
        let points = [(-spread, 1.0 / 6.0), (0.0, 2.0 / 3.0), (spread, 1.0 / 6.0)];
        Self(points.map(|(x, weight)| (exp(x - 0.5 * variance), weight)))
    }

    /// Returns the effective capacities, as shares of the cache's capacity.
    pub(super) fn capacities(&self) -> impl Iterator<Item = f64> {
        self.0.into_iter().map(|(capacity, _)| capacity)
    }

    /// Returns misses per instruction, given the bytes held at each effective capacity.
    pub(super) fn misses(&self, curve: &MissCurve, held: [f64; SETS]) -> f64 {
        let each = self.0.iter().zip(held);
        let mpki = each.map(|((_, weight), bytes)| weight * curve.mpki(bytes));
        mpki.sum::<f64>() / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(capacity: f64, curves: &[(MissCurve, f64)]) -> Vec<f64> {
        let mut streams: Vec<_> = curves
            .iter()
            .map(|(curve, speed)| CacheStream {
                speed: *speed,
                ..CacheStream::from_curve(curve)
            })
            .collect();
        let mut held = Vec::new();
        divide(capacity, &mut streams, &mut None, &mut held);
        held
    }

    fn flat(mpki: f64) -> MissCurve {
        MissCurve::new(400.0, &[mpki; 14])
    }

    #[test]
    fn equal_streams_hold_equal_parts() {
        let held = check(1e6, &[(flat(10.0), 1e9), (flat(10.0), 1e9)]);
        assert!((held[0] - 5e5).abs() < 1.0);
        assert!((held[1] - 5e5).abs() < 1.0);
    }

    #[test]
    fn streams_hold_in_proportion_to_inflow() {
        let held = check(1e6, &[(flat(30.0), 1e9), (flat(10.0), 1e9)]);
        // Not quite 3: the first kilobytes come in at the same rate.
        assert!((2.8..3.0).contains(&(held[0] / held[1])), "{held:?}");
    }

    #[test]
    fn stream_evicts_fitting_working_set() {
        let mut fits = [20.0; 14];
        fits[9..].fill(0.1);
        let fits = MissCurve::new(400.0, &fits);
        let alone = fits.mpki(4e6);
        let held = check(4e6, &[(fits.clone(), 1e9), (flat(40.0), 1e9)]);
        assert!(fits.mpki(held[0]) > 10.0 * alone);
    }

    proptest! {
        #[test]
        fn any_guess_gives_the_same_age(
            raw in prop::collection::vec(
                (prop::collection::vec(0.0f64..60.0, 14), 1e6f64..1e10), 2..6),
            factor in 0.01f64..100.0,
        ) {
            let curves: Vec<_> = raw
                .iter()
                .map(|(points, speed)| (MissCurve::new(500.0, points), *speed))
                .collect();
            let mut streams: Vec<_> = curves
                .iter()
                .map(|(curve, speed)| CacheStream { speed: *speed, ..CacheStream::from_curve(curve) })
                .collect();
            let (mut age, mut held) = (None, Vec::new());
            divide(1e6, &mut streams, &mut age, &mut held);
            let first = age.unwrap();
            age = Some(first * factor);
            divide(1e6, &mut streams, &mut age, &mut held);
            prop_assert!((age.unwrap() / first - 1.0).abs() < 1e-9);
        }

        #[test]
        fn parts_sum_to_capacity(
            capacity in 1e4f64..1e8,
            raw in prop::collection::vec(
                (prop::collection::vec(0.0f64..60.0, 14), 1e6f64..1e10), 2..9),
        ) {
            let curves: Vec<_> = raw
                .iter()
                .map(|(points, speed)| (MissCurve::new(500.0, points), *speed))
                .collect();
            let held = check(capacity, &curves);
            let total: f64 = held.iter().sum();
            prop_assert!((total / capacity - 1.0).abs() < 1e-9, "{total} of {capacity}");
            prop_assert!(held.iter().all(|h| *h > 0.0));
        }
    }
}
