//! Miss curves: misses per kilo-instruction against capacity, and what they
//! say about how fast a program fills a cache.

use super::spec::CURVE_KIB;
use crate::chip::KIB;
use crate::math::{exp2, ln, log2};

/// Bytes per line in the curves.
pub(super) const LINE_BYTES: f64 = 64.0;
/// Capacity below which every access misses: one line, as a power of two.
const FIRST_LOG2: f64 = 6.0;
/// The first point of [`CURVE_KIB`], as a power of two of bytes.
const CURVE_LOG2: f64 = 13.0;
/// Steps per doubling at which the time to fill is tabulated.
const STEPS: usize = 8;
/// Doublings from one line to the last point of the curve.
const OCTAVES: usize = 20;
/// Misses that stand for none, so that every cache fills in some time, per kilo-instruction.
const NONE_MPKI: f64 = 1e-6;

/// Misses per kilo-instruction as a function of capacity, linear in the logarithm of the
/// capacity between the given points and constant beyond them.
///
/// Under LRU a program that has just begun on an empty cache holds the capacity `c` after
/// `fill(c) = ∫₀ᶜ dx / (misses(x)·line)` instructions; [`MissCurve::held_after`] is the
/// inverse. Both are tabulated, monotone, and exact for each other.
#[derive(Clone, Debug, PartialEq)]
pub struct MissCurve {
    accesses: f64,
    points: [f64; 14],
    /// Capacity of each step, bytes.
    capacity: Vec<f64>,
    /// Instructions after which it is held.
    fill: Vec<f64>,
}

impl MissCurve {
    /// A curve from its accesses per kilo-instruction and its misses at each of [`CURVE_KIB`];
    /// what rises is cut to what the smaller capacity has.
    pub fn new(accesses_pki: f64, mpki: &[f64]) -> Self {
        let mut points = [0.0; CURVE_KIB.len()];
        let mut least = accesses_pki.max(0.0);
        for (point, &given) in points.iter_mut().zip(mpki) {
            least = least.min(given.max(0.0));
            *point = least;
        }
        let mut curve = Self {
            accesses: accesses_pki.max(0.0),
            points,
            capacity: Vec::new(),
            fill: Vec::new(),
        };
        curve.tabulate();
        curve
    }

    fn tabulate(&mut self) {
        self.capacity.push(0.0);
        self.fill.push(0.0);
        let mut before = (0.0, self.insertion(LINE_BYTES));
        for step in 0..=OCTAVES * STEPS {
            let bytes = exp2(FIRST_LOG2 + step as f64 / STEPS as f64);
            let here = (bytes, self.insertion(bytes));
            let last = self.fill.last().copied().unwrap_or(0.0);
            self.capacity.push(bytes);
            self.fill
                .push(last + (here.0 - before.0) / mean(before.1, here.1));
            before = here;
        }
    }

    /// Bytes brought in per instruction when holding a capacity.
    fn insertion(&self, bytes: f64) -> f64 {
        self.mpki(bytes).max(NONE_MPKI) * LINE_BYTES / 1000.0
    }

    /// Accesses per kilo-instruction.
    pub fn accesses_pki(&self) -> f64 {
        self.accesses
    }

    /// Whether it ever misses a cache of the smallest capacity.
    pub fn is_flat_zero(&self) -> bool {
        self.points[0] == 0.0
    }

    /// Misses per kilo-instruction when `bytes` are held.
    pub fn mpki(&self, bytes: f64) -> f64 {
        if bytes <= LINE_BYTES {
            return self.accesses;
        }
        let at = log2(bytes);
        if at < CURVE_LOG2 {
            let share = (at - FIRST_LOG2) / (CURVE_LOG2 - FIRST_LOG2);
            return self.accesses + share * (self.points[0] - self.accesses);
        }
        let position = at - CURVE_LOG2;
        let index = position as usize;
        let last = self.points.len() - 1;
        if index >= last {
            return self.points[last];
        }
        let (low, high) = (self.points[index], self.points[index + 1]);
        low + (position - index as f64) * (high - low)
    }

    /// Bytes held after `instructions` from empty, and the bytes that one more instruction adds.
    pub fn held_after(&self, instructions: f64) -> (f64, f64) {
        self.held_near(instructions, &mut 0)
    }

    /// As [`MissCurve::held_after`]; `step` says where in the table to look first, and afterwards
    /// where the answer was.
    pub(crate) fn held_near(&self, instructions: f64, step: &mut usize) -> (f64, f64) {
        if !self.is_step(*step, instructions) {
            *step = self.fill.partition_point(|&fill| fill <= instructions);
        }
        let high = (*step).min(self.fill.len() - 1).max(1);
        let low = high - 1;
        let slope = (self.capacity[high] - self.capacity[low]) / (self.fill[high] - self.fill[low]);
        let held = self.capacity[low] + (instructions - self.fill[low]) * slope;
        (held, slope)
    }

    /// Whether a step is the first of the table that is not reached after `instructions`.
    fn is_step(&self, step: usize, instructions: f64) -> bool {
        let before = step.checked_sub(1).and_then(|low| self.fill.get(low));
        let reached = before.is_some_and(|&fill| fill <= instructions);
        reached && self.fill.get(step).is_some_and(|&fill| fill > instructions)
    }

    /// Instructions from empty until `bytes` are held; the inverse of [`MissCurve::held_after`].
    pub fn fill_for(&self, bytes: f64) -> f64 {
        let steps = (log2(bytes.max(LINE_BYTES)) - FIRST_LOG2) * STEPS as f64;
        let guess = (steps as usize + 1).min(self.capacity.len() - 2);
        let low = if bytes < LINE_BYTES { 0 } else { guess };
        let slope =
            (self.fill[low + 1] - self.fill[low]) / (self.capacity[low + 1] - self.capacity[low]);
        self.fill[low] + (bytes - self.capacity[low]) * slope
    }

    /// The curve's points, misses per kilo-instruction at each of [`CURVE_KIB`].
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// Capacity, bytes, of the last point.
    pub fn last_bytes() -> f64 {
        CURVE_KIB[CURVE_KIB.len() - 1] * KIB
    }
}

/// Logarithmic mean: what a rate that goes linearly from one value to another amounts to over
/// the way.
fn mean(from: f64, to: f64) -> f64 {
    if (from - to).abs() <= 1e-9 * from {
        return from;
    }
    (from - to) / ln(from / to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(points: &[f64]) -> MissCurve {
        MissCurve::new(400.0, points)
    }

    #[test]
    fn the_given_points_are_met_and_between_them_it_is_linear_in_the_logarithm() {
        let mut points = [10.0; 14];
        points[1..].fill(2.0);
        let c = curve(&points);
        assert_eq!(c.mpki(8.0 * KIB), 10.0);
        assert_eq!(c.mpki(16.0 * KIB), 2.0);
        let middle = c.mpki(8.0 * KIB * core::f64::consts::SQRT_2);
        assert!((middle - 6.0).abs() < 1e-9);
        assert_eq!(c.mpki(1e12), 2.0);
        assert_eq!(c.mpki(0.0), 400.0);
    }

    #[test]
    fn a_stream_fills_a_cache_at_its_miss_rate() {
        let c = curve(&[15.625; 14]);
        // 15.625 lines per 1000 instructions are one byte per instruction.
        let (small, _) = c.held_after(1e6);
        let (large, slope) = c.held_after(2e6);
        assert!((large - small - 1e6).abs() < 1.0, "{small} {large}");
        assert!((slope - 1.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn filling_and_holding_are_inverse(
            raw in prop::collection::vec(0.0f64..100.0, 14),
            bytes in 1.0f64..1e9,
        ) {
            let c = curve(&raw);
            let (held, _) = c.held_after(c.fill_for(bytes));
            prop_assert!((held - bytes).abs() <= bytes * 1e-6, "{held} {bytes}");
        }

        #[test]
        fn where_one_looks_first_does_not_matter(
            raw in prop::collection::vec(0.0f64..100.0, 14),
            n in 0.0f64..1e12,
            step in 0usize..400,
        ) {
            let c = curve(&raw);
            let mut from = step;
            let near = c.held_near(n, &mut from);
            prop_assert_eq!(near, c.held_after(n));
            prop_assert_eq!(c.held_near(n, &mut from), near);
        }

        #[test]
        fn misses_never_rise_with_capacity(
            raw in prop::collection::vec(0.0f64..100.0, 14),
            bytes in 64.0f64..1e9,
            factor in 1.0f64..10.0,
        ) {
            let c = curve(&raw);
            prop_assert!(c.mpki(bytes * factor) <= c.mpki(bytes) + 1e-9);
        }

        #[test]
        fn holding_grows_with_time_and_ever_slower(
            raw in prop::collection::vec(0.0f64..100.0, 14),
            n in 1.0f64..1e12,
            factor in 1.0f64..10.0,
        ) {
            let c = curve(&raw);
            let ((held, slope), (more, later)) = (c.held_after(n), c.held_after(n * factor));
            prop_assert!(more >= held - 1e-6);
            prop_assert!(later <= slope * (1.0 + 1e-9));
        }
    }
}
