//! Sets of caches: the effective capacities that lines find in them.

use crate::math::{exp, ln};
use crate::phase::MissCurve;

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
