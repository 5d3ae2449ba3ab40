//! Duals of all threads from the matching of a part of them.
//!
//! Threads that are alike, or nearly so, need nearly the same duals, but a search
//! finds them thread by thread. So a quarter of the threads is matched first, for
//! its duals alone; the others get the largest dual that those allow them.

use super::PairCosts;
use super::ascent::{means, smaller, splitmix64};
use super::candidates::SearchStart;
use super::fractional::FractionalMatching;
use super::scaled_costs::ScaledCosts;

/// One thread of so many is in the part.
const SHARE: usize = 4;
/// Below so many threads the means are good enough.
const FEWEST: usize = 200;

/// A start without anything known.
pub(super) fn start(costs: &ScaledCosts<'_>) -> SearchStart {
    SearchStart::cold(costs, duals(costs.costs()))
}

/// Duals to start from, in units of cost.
fn duals(costs: &PairCosts) -> Vec<f64> {
    if costs.threads() < FEWEST {
        return means(costs);
    }
    let part = sample_threads(costs.threads());
    let within = |i: usize, j: usize| costs.at(part[i], part[j]);
    match PairCosts::from_fn(part.len(), within) {
        Ok(coarse) => extend_duals(costs, &part, &solve_duals(&coarse)),
        Err(_) => means(costs),
    }
}

/// An even number of threads, ascending, without a pattern.
fn sample_threads(threads: usize) -> Vec<usize> {
    let count = threads / SHARE / 2 * 2;
    (0..count)
        .map(|at| at * SHARE + (splitmix64(at as u64) % SHARE as u64) as usize)
        .collect()
}

fn solve_duals(costs: &PairCosts) -> Vec<f64> {
    let scaled = ScaledCosts::new(costs);
    let mut fractional = FractionalMatching::new(&scaled, start(&scaled));
    fractional.solve();
    fractional.duals()
}

fn extend_duals(costs: &PairCosts, part: &[usize], known: &[f64]) -> Vec<f64> {
    let mut duals = vec![f64::INFINITY; costs.threads()];
    let mut later = 0;
    for first in 0..costs.threads() {
        let row = costs.row(first);
        if part.get(later) == Some(&first) {
            for (dual, cost) in duals[first + 1..].iter_mut().zip(row) {
                *dual = smaller(cost - known[later], *dual);
            }
            later += 1;
        }
        let allowed = part[later..].iter().zip(&known[later..]);
        let allowed = allowed.map(|(&second, own)| row[second - first - 1] - own);
        duals[first] = allowed.fold(duals[first], f64::min);
    }
    for (&vertex, &dual) in part.iter().zip(known) {
        duals[vertex] = dual;
    }
    for dual in &mut duals {
        *dual = if dual.is_finite() { *dual } else { 0.0 };
    }
    duals
}
