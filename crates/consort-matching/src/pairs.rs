//! Pairs of threads at the least total cost.

use crate::blossom::BlossomSolver;
use crate::fractional::FractionalMatching;
use crate::scaled_costs::ScaledCosts;
use crate::start::{SearchStart, means, smaller, splitmix64};
use crate::{MatchingError, PairCosts};

/// A minimum-weight matching.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairing {
    /// Each pair once, the thread with the lower number first, sorted by the first; a thread alone
    /// has no second.
    pub pairs: Vec<(usize, Option<usize>)>,
    /// Cost of the pairs and the single threads together.
    pub cost: f64,
    /// Distance of each thread's dual at the optimum from the mean of its costs, in units of cost:
    /// a start for the next matching of the same threads.
    pub duals: Vec<f64>,
}

/// Splits threads into at most `cores` pairs and single threads at the least total cost.
///
/// `alone` is the cost of each thread without a co-runner, usually 1, its slowdown. Two threads may
/// be paired although a core is free, if the pair costs less than both alone.
///
/// # Errors
/// [`MatchingError::TooMany`] for more than two threads per core, [`MatchingError::Length`] unless
/// each thread has a cost of being alone, [`MatchingError::Alone`] where that is not finite.
#[doc(alias = "blossom")]
#[doc(alias = "minimum-weight perfect matching")]
pub fn pairs(costs: &PairCosts, alone: &[f64], cores: usize) -> Result<Pairing, MatchingError> {
    pairs_from(costs, alone, cores, &[])
}

/// Matches like [`pairs`], but faster if `duals` come from a matching of the same threads at
/// similar costs. They change the time, and which one of equally good matchings is found.
///
/// # Errors
/// Those of [`pairs`]. Duals that do not fit (another number of threads, not finite) are ignored.
pub fn pairs_from(
    costs: &PairCosts,
    alone: &[f64],
    cores: usize,
    duals: &[f64],
) -> Result<Pairing, MatchingError> {
    let threads = costs.threads();
    check(threads, alone, cores)?;
    // Additional idle threads would only meet each other.
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
pub(crate) fn perfect_matching(costs: &PairCosts, offsets: &[f64]) -> (Vec<usize>, Vec<f64>) {
    if costs.threads() == 0 {
        return (Vec::new(), Vec::new());
    }
    let scaled = ScaledCosts::new(costs);
    let means = means(costs);
    let warm = shift_duals(offsets, &means).and_then(|duals| warm_matching(&scaled, duals));
    let cold = || FractionalMatching::new(&scaled, start_cold(&scaled));
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

/// Starts a fractional matching at duals, in units of cost; `None` if these turn out to be bad.
fn warm_matching<'a>(
    costs: &'a ScaledCosts<'a>,
    duals: Vec<f64>,
) -> Option<FractionalMatching<'a>> {
    let mut warm = FractionalMatching::new(costs, SearchStart::warm(costs, duals));
    warm.check_start().then_some(warm)
}

/// Adds offsets to the means; `None` if the offsets do not fit.
fn shift_duals(offsets: &[f64], means: &[f64]) -> Option<Vec<f64>> {
    let fits = offsets.len() == means.len() && offsets.iter().all(|offset| offset.is_finite());
    fits.then(|| {
        let both = offsets.iter().zip(means);
        both.map(|(offset, mean)| offset + mean).collect()
    })
}

/// Translates mates to pairs; mates at or beyond the number of threads are idle.
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

/// The sample contains one of this many threads.
const SHARE: usize = 4;
/// Number of threads below which the means are good enough.
const FEWEST: usize = 200;

/// Starts without knowledge from an earlier matching.
///
/// Threads that are alike, or nearly so, need nearly the same duals, but a search finds them thread
/// by thread. So a quarter of the threads is matched first, for its duals alone; the others get the
/// largest dual that those allow.
fn start_cold(costs: &ScaledCosts<'_>) -> SearchStart {
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
        Ok(coarse) => extend_sample(costs, &part, &solve_duals(&coarse)),
        Err(_) => means(costs),
    }
}

/// Samples an even number of threads, ascending, without a pattern.
fn sample_threads(threads: usize) -> Vec<usize> {
    let count = threads / SHARE / 2 * 2;
    (0..count)
        .map(|at| at * SHARE + (splitmix64(at as u64) % SHARE as u64) as usize)
        .collect()
}

fn solve_duals(costs: &PairCosts) -> Vec<f64> {
    let scaled = ScaledCosts::new(costs);
    let mut fractional = FractionalMatching::new(&scaled, start_cold(&scaled));
    fractional.solve();
    fractional.duals()
}

fn extend_sample(costs: &PairCosts, part: &[usize], known: &[f64]) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blossom::BlossomSolver;
    use crate::fractional::FractionalMatching;
    use crate::scaled_costs::ScaledCosts;
    use crate::{pairs, *};
    use proptest::prelude::*;
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    /// The least cost by trying every partner for every thread; being alone is allowed while cores last.
    fn brute(costs: &PairCosts, alone: &[f64], free: &[usize], cores: usize) -> f64 {
        let Some((&first, rest)) = free.split_first() else {
            return 0.0;
        };
        if cores == 0 {
            return f64::INFINITY;
        }
        let mut best = alone[first] + brute(costs, alone, rest, cores - 1);
        for at in 0..rest.len() {
            let mut others = rest.to_vec();
            let second = others.remove(at);
            best = best.min(costs.at(first, second) + brute(costs, alone, &others, cores - 1));
        }
        best
    }

    /// Ties, zeros, losses, sizes far apart, and pairs that must not meet.
    fn value(kind: usize, rng: &mut Pcg64) -> f64 {
        match kind {
            0 => f64::from(rng.random_range(0..3u8)),
            1 => f64::from(rng.random_range(-50..50i8)),
            2 => rng.random_range(1.0..4.0),
            3 => 0.0,
            4 => libm::ldexp(rng.random(), rng.random_range(-60..60)),
            _ if rng.random_bool(0.7) => f64::INFINITY,
            _ => rng.random_range(1.0..4.0),
        }
    }

    fn random(threads: usize, kind: usize, rng: &mut Pcg64) -> PairCosts {
        PairCosts::from_fn(threads, |_, _| value(kind, rng)).unwrap()
    }

    fn largest(costs: &PairCosts, alone: &[f64]) -> f64 {
        let all = costs.values().iter().chain(alone);
        all.fold(1e-300, |most: f64, cost| most.max(cost.abs()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn exact_against_exhaustive_search(
            threads in 0usize..10, spare in 0usize..3, kind in 0usize..5, seed: u64,
        ) {
            let mut rng = Pcg64::seed_from_u64(seed);
            let costs = random(threads, kind, &mut rng);
            let alone: Vec<f64> = (0..threads).map(|_| value(kind, &mut rng)).collect();
            let cores = threads.div_ceil(2) + spare;
            let found = pairs(&costs, &alone, cores).unwrap();
            let best = brute(&costs, &alone, &(0..threads).collect::<Vec<_>>(), cores);
            prop_assert!((found.cost - best).abs() <= 1e-9 * largest(&costs, &alone), "{found:?} {best}");
            prop_assert!(found.pairs.len() <= cores);
        }

        #[test]
        fn thread_order_does_not_change_the_cost(
            half in 1usize..20, kind in 0usize..5, seed: u64,
        ) {
            let mut rng = Pcg64::seed_from_u64(seed);
            let threads = 2 * half;
            let costs = random(threads, kind, &mut rng);
            let mut order: Vec<usize> = (0..threads).collect();
            order.shuffle(&mut rng);
            let shuffled = PairCosts::from_fn(threads, |i, j| costs.at(order[i], order[j])).unwrap();
            let alone = vec![0.0; threads];
            let (one, two) = (pairs(&costs, &alone, half).unwrap(), pairs(&shuffled, &alone, half).unwrap());
            prop_assert!((one.cost - two.cost).abs() <= 1e-9 * largest(&costs, &alone));
        }

        #[test]
        fn duals_of_other_costs_may_start_a_search(half in 1usize..20, kind in 0usize..5, seed: u64) {
            let mut rng = Pcg64::seed_from_u64(seed);
            let (before, costs) = (random(2 * half, kind, &mut rng), random(2 * half, kind, &mut rng));
            let alone = vec![1.0; 2 * half];
            let duals = pairs(&before, &alone, half).unwrap().duals;
            let (warm, cold) = (
                pairs_from(&costs, &alone, half, &duals).unwrap(),
                pairs(&costs, &alone, half).unwrap(),
            );
            prop_assert!((warm.cost - cold.cost).abs() <= 1e-9 * largest(&costs, &alone));
        }

        #[test]
        fn duals_prove_every_matching(half in 1usize..40, kind in 0usize..6, seed: u64) {
            let costs = random(2 * half, kind, &mut Pcg64::seed_from_u64(seed));
            let scaled = ScaledCosts::new(&costs);
            let mut solver = BlossomSolver::new(&scaled, start_cold(&scaled));
            solver.solve();
            prop_assert_eq!(solver.prove(), Ok(()));
            let mut fractional = FractionalMatching::new(&scaled, start_cold(&scaled));
            fractional.solve();
            let mut started = BlossomSolver::new(&scaled, fractional.into_start());
            started.solve();
            prop_assert_eq!(started.prove(), Ok(()));
        }
    }

    /// Ten and eleven threads with idle cores, and twelve on six cores: 10,395 matchings.
    #[test]
    fn exact_for_ten_to_twelve_threads() {
        for (threads, cores) in [(10, 5), (10, 6), (10, 8), (11, 6), (11, 7), (12, 6)] {
            let all: Vec<usize> = (0..threads).collect();
            for kind in 0..5 {
                let mut rng = Pcg64::seed_from_u64(12);
                let costs = random(threads, kind, &mut rng);
                let alone: Vec<f64> = (0..threads).map(|_| value(kind, &mut rng)).collect();
                let found = pairs(&costs, &alone, cores).unwrap();
                let best = brute(&costs, &alone, &all, cores);
                assert!(
                    (found.cost - best).abs() <= 1e-9 * largest(&costs, &alone),
                    "{threads} threads, {cores} cores, kind {kind}: {found:?} {best}"
                );
            }
        }
    }

    /// Costs of eight programs with 128 copies each: sums plus products of two parts.
    fn copies(threads: usize, scatter: f64, rng: &mut Pcg64) -> PairCosts {
        let programs: Vec<[f64; 2]> = (0..8).map(|_| [rng.random(), rng.random()]).collect();
        let parts: Vec<[f64; 2]> = (0..threads)
            .map(|thread| programs[thread % 8].map(|part| part + scatter * rng.random::<f64>()))
            .collect();
        let cost = |i: usize, j: usize| {
            let ([a, b], [c, d]) = (parts[i], parts[j]);
            2.0 + a + c + 0.6 * b * d - 0.9 * a * c
        };
        PairCosts::from_fn(threads, cost).unwrap()
    }

    /// Large matchings, whose threads are all different, alike, and nearly alike: the duals prove each.
    #[test]
    fn duals_prove_matchings_of_1024_threads() {
        let mut rng = Pcg64::seed_from_u64(1_024);
        let all = [
            random(1_024, 2, &mut rng),
            copies(1_024, 0.0, &mut rng),
            copies(1_024, 0.01, &mut rng),
        ];
        for costs in &all {
            let scaled = ScaledCosts::new(costs);
            let mut fractional = FractionalMatching::new(&scaled, start_cold(&scaled));
            fractional.solve();
            let mut solver = BlossomSolver::new(&scaled, fractional.into_start());
            solver.solve();
            assert_eq!(solver.prove(), Ok(()));
        }
    }

    #[test]
    fn infinity_is_the_last_resort() {
        // Threads 0 to 2 may meet only thread 3: one infinite pair is needed, not two.
        let cost = |i: usize, j: usize| if j == 3 { i as f64 } else { f64::INFINITY };
        let costs = PairCosts::from_fn(4, cost).unwrap();
        let found = pairs(&costs, &[1.0; 4], 2).unwrap();
        let dear = found
            .pairs
            .iter()
            .filter(|(i, j)| costs.at(*i, j.unwrap()) == f64::INFINITY);
        assert_eq!((dear.count(), found.cost), (1, f64::INFINITY));
        assert!(found.pairs.contains(&(0, Some(3))));
        let roomy = pairs(&costs, &[1.0; 4], 4).unwrap();
        assert_eq!(roomy.cost, 2.0);
    }

    #[test]
    fn impossible_requests_are_refused() {
        let costs = PairCosts::from_fn(3, |_, _| 2.0).unwrap();
        assert_eq!(
            pairs(&costs, &[1.0; 3], 1),
            Err(MatchingError::TooMany {
                threads: 3,
                most: 2
            })
        );
        assert!(pairs(&costs, &[1.0; 2], 2).is_err());
        assert!(pairs(&costs, &[1.0, f64::NAN, 1.0], 2).is_err());
        let odd = pairs(&costs, &[1.0; 3], 2).unwrap();
        assert_eq!((odd.cost, odd.pairs.len()), (3.0, 2));
    }
}
