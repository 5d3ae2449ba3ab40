//! Miss curves: misses per kilo-instruction against capacity, and what they
//! say about how fast a program fills a cache.

use crate::math::{exp2, ln, log2};
use crate::program::CURVE_KIB;

/// Bytes per line in the curves.
pub(super) const LINE_BYTES: f64 = 64.0;
/// Capacity below which every access misses: one line, as a power of two.
const FIRST_LOG2: f64 = 6.0;
/// The first point of [`CURVE_KIB`], as a power of two of bytes.
const CURVE_LOG2: f64 = 13.0;
/// Steps per doubling at which the time to fill is tabulated.
const STEPS: usize = 8;
/// Bits of a number below its exponent.
const MANTISSA_BITS: u32 = 52;
/// The first point of [`CURVE_KIB`] as the exponent that its bits have.
const FIRST_DOUBLING: i64 = 1023 + 13;
/// Doublings from one line to the last point of the curve.
const OCTAVES: usize = 20;
/// Misses that stand for none, so that every cache fills in some time, per kilo-instruction.
const NONE_MPKI: f64 = 1e-6;

/// Misses per kilo-instruction as a function of capacity, linear in the logarithm of the
/// capacity between the given points and constant beyond them.
///
/// Under LRU a program that has just begun on an empty cache holds the capacity `c` after
/// `fill(c) = ∫₀ᶜ dx / (misses(x)·line)` instructions; the bytes held after so many are the
/// inverse. Both are tabulated, monotone, and exact for each other.
#[derive(Clone, Debug, PartialEq)]
pub struct MissCurve {
    accesses: f64,
    points: [f64; 14],
    steps: Vec<FillStep>,
}

/// A point of the tabulated way from empty to full, and the way to it from the point before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FillStep {
    /// Instructions after which `bytes` are held.
    fill: f64,
    bytes: f64,
    /// Bytes per instruction from the point before to this one; 0 at the first.
    slope: f64,
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
            steps: Vec::with_capacity(OCTAVES * STEPS + 2),
        };
        curve.tabulate();
        curve
    }

    fn tabulate(&mut self) {
        let mut last = FillStep {
            fill: 0.0,
            bytes: 0.0,
            slope: 0.0,
        };
        self.steps.push(last);
        let mut before = self.insertion(LINE_BYTES);
        for step in 0..=OCTAVES * STEPS {
            let bytes = exp2(FIRST_LOG2 + step as f64 / STEPS as f64);
            let here = self.insertion(bytes);
            let fill = last.fill + (bytes - last.bytes) / mean(before, here);
            let slope = (bytes - last.bytes) / (fill - last.fill);
            last = FillStep { fill, bytes, slope };
            self.steps.push(last);
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

    /// True if it has no misses even in a cache of the smallest capacity.
    pub fn is_flat_zero(&self) -> bool {
        self.points[0] == 0.0
    }

    /// Misses per kilo-instruction when `bytes` are held.
    pub fn mpki(&self, bytes: f64) -> f64 {
        if bytes <= LINE_BYTES {
            return self.accesses;
        }
        if let Some(level) = self.level(bytes) {
            return level;
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

    /// The misses where they are the same all over the doubling in which a capacity lies: the
    /// logarithm, which costs more than all else here, is not needed there.
    fn level(&self, bytes: f64) -> Option<f64> {
        let doubling = (bytes.to_bits() >> MANTISSA_BITS) as i64 - FIRST_DOUBLING;
        let low = usize::try_from(doubling).ok()?;
        let last = self.points.len() - 1;
        let (low, high) = (self.points[low.min(last)], self.points[(low + 1).min(last)]);
        (low == high).then_some(low)
    }

    /// Bytes held after `instructions` from empty, and the bytes that one more instruction adds;
    /// `step` is the position in the table to look at first, and afterwards that of the answer.
    pub(crate) fn content_after(&self, instructions: f64, step: &mut usize) -> (f64, f64) {
        if !self.is_step(*step, instructions) {
            *step = self.steps.partition_point(|s| s.fill <= instructions);
        }
        let high = (*step).min(self.steps.len() - 1).max(1);
        let (low, slope) = (self.steps[high - 1], self.steps[high].slope);
        (low.bytes + (instructions - low.fill) * slope, slope)
    }

    /// True if a step is the first of the table that is not reached after `instructions`.
    fn is_step(&self, step: usize, instructions: f64) -> bool {
        let before = step.checked_sub(1).and_then(|low| self.steps.get(low));
        let reached = before.is_some_and(|s| s.fill <= instructions);
        reached && self.steps.get(step).is_some_and(|s| s.fill > instructions)
    }

    /// Instructions from empty until `bytes` are held.
    pub fn fill_for(&self, bytes: f64) -> f64 {
        let steps = (log2(bytes.max(LINE_BYTES)) - FIRST_LOG2) * STEPS as f64;
        let guess = (steps as usize + 1).min(self.steps.len() - 2);
        let low = if bytes < LINE_BYTES { 0 } else { guess };
        let (low, high) = (self.steps[low], self.steps[low + 1]);
        let per_byte = (high.fill - low.fill) / (high.bytes - low.bytes);
        low.fill + (bytes - low.bytes) * per_byte
    }

    /// The curve's points, misses per kilo-instruction at each of [`CURVE_KIB`].
    pub fn points(&self) -> &[f64] {
        &self.points
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
    use crate::chip::KIB;
    use proptest::prelude::*;

    fn curve(points: &[f64]) -> MissCurve {
        MissCurve::new(400.0, points)
    }

    fn held_after(curve: &MissCurve, instructions: f64) -> (f64, f64) {
        curve.content_after(instructions, &mut 0)
    }

    #[test]
    fn curve_is_log_linear_between_its_points() {
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
        let (small, _) = held_after(&c, 1e6);
        let (large, slope) = held_after(&c, 2e6);
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
            let (held, _) = held_after(&c, c.fill_for(bytes));
            prop_assert!((held - bytes).abs() <= bytes * 1e-6, "{held} {bytes}");
        }

        #[test]
        fn level_stretches_need_no_logarithm(
            raw in prop::collection::vec(0u8..3, 14),
            doubling in 13i32..28,
            ulps in -3i64..4,
            share in 1.0f64..2.0,
        ) {
            let raw: Vec<f64> = raw.iter().map(|&level| f64::from(level)).collect();
            let c = curve(&raw);
            let whole = exp2(f64::from(doubling));
            let near = f64::from_bits((whole.to_bits() as i64 + ulps) as u64);
            for bytes in [near, whole * share] {
                let position = log2(bytes) - CURVE_LOG2;
                prop_assume!(position >= 0.0);
                let index = (position as usize).min(12);
                let share = (position - index as f64).min(1.0);
                let (low, high) = (c.points[index], c.points[index + 1]);
                prop_assert_eq!(c.mpki(bytes), low + share * (high - low));
            }
        }

        #[test]
        fn result_is_independent_of_first_step(
            raw in prop::collection::vec(0.0f64..100.0, 14),
            n in 0.0f64..1e12,
            step in 0usize..400,
        ) {
            let c = curve(&raw);
            let mut from = step;
            let near = c.content_after(n, &mut from);
            prop_assert_eq!(near, held_after(&c, n));
            prop_assert_eq!(c.content_after(n, &mut from), near);
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
            let ((held, slope), (more, later)) = (held_after(&c, n), held_after(&c, n * factor));
            prop_assert!(more >= held - 1e-6);
            prop_assert!(later <= slope * (1.0 + 1e-9));
        }
    }
}
