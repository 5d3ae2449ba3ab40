//! Threads into pairs, at the least total cost.

use super::ascent::means;
use super::blossom::BlossomSolver;
use super::candidates::SearchStart;
use super::coarse;
use super::fractional::FractionalMatching;
use super::scaled_costs::ScaledCosts;
use super::{MatchingError, PairCosts};

/// A minimum-weight matching.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairing {
    /// Each pair once, the thread of lower number first, in the order of the first; a thread alone
    /// has no second.
    pub pairs: Vec<(usize, Option<usize>)>,
    /// Cost of the pairs and the threads alone together.
    pub cost: f64,
    /// Distance of each thread's dual at the optimum from the mean of its costs, in units of cost:
    /// a start for the next matching of the same threads.
    pub duals: Vec<f64>,
}

/// Splits threads into at most `cores` pairs and threads alone so that the sum of their costs is
/// the least that there is; see the module for the method.
///
/// `alone` is what each thread costs without a co-runner, usually 1, its slowdown. Two threads may
/// be paired although a core is free, where the pair costs less than both alone.
///
/// # Errors
/// [`MatchingError::TooMany`] for more than two threads per core,
/// [`MatchingError::Length`] unless each thread has a cost of being alone,
/// [`MatchingError::Alone`] where that is not finite.
#[doc(alias = "blossom")]
#[doc(alias = "minimum-weight perfect matching")]
pub fn pairs(costs: &PairCosts, alone: &[f64], cores: usize) -> Result<Pairing, MatchingError> {
    pairs_from(costs, alone, cores, &[])
}

/// Matches as [`pairs`] does, faster where `duals` come from a matching of the same threads at
/// similar costs. They change the time that it takes, and which one of equally good matchings is
/// found.
///
/// # Errors
/// As [`pairs`]. Duals that do not fit (another number of threads, not finite) are left aside.
pub fn pairs_from(
    costs: &PairCosts,
    alone: &[f64],
    cores: usize,
    duals: &[f64],
) -> Result<Pairing, MatchingError> {
    let threads = costs.threads();
    check(threads, alone, cores)?;
    // More idle threads than threads would only meet each other.
    let nodes = 2 * cores.min(threads);
    if nodes == threads {
        let (mates, duals) = perfect_matching(costs, duals);
        return Ok(pairing(&mates, costs, alone, duals));
    }
    let padded = PairCosts::from_fn(nodes, |first, second| match (first, second) {
        (_, second) if second < threads => costs.at(first, second),
        (first, _) if first < threads => alone[first],
        _ => 0.0,
    })?;
    let start = extend_duals(duals, threads, nodes);
    let (mates, duals) = perfect_matching(&padded, &start);
    Ok(pairing(&mates, costs, alone, duals))
}

fn check(threads: usize, alone: &[f64], cores: usize) -> Result<(), MatchingError> {
    let most = cores.saturating_mul(2);
    if threads > most {
        return Err(MatchingError::TooMany { threads, most });
    }
    if alone.len() != threads {
        return Err(MatchingError::Length {
            what: "the cost of being alone",
            given: alone.len(),
            threads,
        });
    }
    match alone.iter().position(|cost| !cost.is_finite()) {
        Some(thread) => Err(MatchingError::Alone {
            thread,
            value: alone[thread],
        }),
        None => Ok(()),
    }
}

/// Duals for threads and idle threads; the latter start at zero.
fn extend_duals(duals: &[f64], threads: usize, nodes: usize) -> Vec<f64> {
    if duals.len() != threads {
        return Vec::new();
    }
    let mut extended = duals.to_vec();
    extended.resize(nodes, 0.0);
    extended
}

/// Returns the mate of each of an even number of nodes, and the distance of its dual from the mean
/// of its costs.
pub(super) fn perfect_matching(costs: &PairCosts, offsets: &[f64]) -> (Vec<usize>, Vec<f64>) {
    if costs.threads() == 0 {
        return (Vec::new(), Vec::new());
    }
    let scaled = ScaledCosts::new(costs);
    let means = means(costs);
    let warm = shift_duals(offsets, &means).and_then(|duals| warm_matching(&scaled, duals));
    let cold = || FractionalMatching::new(&scaled, coarse::start(&scaled));
    let mut fractional = warm.unwrap_or_else(cold);
    fractional.solve();
    let offsets = fractional
        .duals()
        .iter()
        .zip(&means)
        .map(|(dual, mean)| dual - mean)
        .collect();
    let mut solver = BlossomSolver::new(&scaled, fractional.into_start());
    solver.solve();
    (solver.mates().iter().flatten().copied().collect(), offsets)
}

/// A fractional matching begun at duals, in units of cost, if these turn out to be good.
fn warm_matching<'a>(
    costs: &'a ScaledCosts<'a>,
    duals: Vec<f64>,
) -> Option<FractionalMatching<'a>> {
    let mut warm = FractionalMatching::new(costs, SearchStart::warm(costs, duals));
    warm.check_start().then_some(warm)
}

/// Duals that are as far from the means as others were, if there is one for each.
fn shift_duals(offsets: &[f64], means: &[f64]) -> Option<Vec<f64>> {
    let fits = offsets.len() == means.len() && offsets.iter().all(|offset| offset.is_finite());
    fits.then(|| {
        let both = offsets.iter().zip(means);
        both.map(|(offset, mean)| offset + mean).collect()
    })
}

/// Mates at or beyond the number of threads are idle.
fn pairing(mates: &[usize], costs: &PairCosts, alone: &[f64], mut duals: Vec<f64>) -> Pairing {
    let threads = costs.threads();
    duals.truncate(threads);
    let pairs: Vec<(usize, Option<usize>)> = (0..threads)
        .map(|thread| (thread, mates[thread]))
        .filter(|(thread, mate)| thread < mate)
        .map(|(thread, mate)| (thread, (mate < threads).then_some(mate)))
        .collect();
    let cost = |&(first, second): &(usize, Option<usize>)| {
        second.map_or(alone[first], |second| costs.at(first, second))
    };
    Pairing {
        cost: pairs.iter().map(cost).sum(),
        pairs,
        duals,
    }
}
