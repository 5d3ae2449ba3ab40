//! Phases: stretches of execution in which a program runs the same code.
//!
//! Intervals are compared by the code that they execute: instructions per line of code, hashed to a
//! few dimensions (basic block vectors, Sherwood, Perelman, Hamerly and Calder, ASPLOS 2002; the
//! projection by hashing is that of Weinberger et al., ICML 2009). K-means groups similar ones. The
//! number of clusters is the smallest whose Bayesian information criterion (Pelleg and Moore, ICML
//! 2000) reaches nine tenths of its range, as in SimPoint 3.0 (Hamerly, Perelman, Lau and Calder,
//! JILP 7, 2005).

use crate::interval::{CodeVector, DIMENSIONS};

/// Most clusters that are looked for.
const MOST_CLUSTERS: usize = 8;
/// Most phases that a program is given.
const MOST_PHASES: usize = 12;
/// Share of the criterion's range that a number of clusters has to reach.
const ENOUGH: f64 = 0.9;
/// Deviation, as a share of an interval's instructions, below which intervals count as equal.
const EQUAL: f64 = 0.02;
const ROUNDS: usize = 50;

/// The phases of a program as ranges of its intervals, in order and without gaps.
#[must_use]
pub(crate) fn phases(intervals: &[CodeVector]) -> Vec<std::ops::Range<usize>> {
    let mut runs = runs(&clusters(intervals));
    while runs.len() > MOST_PHASES {
        join_shortest(&mut runs);
    }
    runs.into_iter().map(|(range, _)| range).collect()
}

type ClusterRun = (std::ops::Range<usize>, usize);

/// Merges neighbours of one cluster.
fn runs(clusters: &[usize]) -> Vec<ClusterRun> {
    let mut runs: Vec<ClusterRun> = Vec::new();
    for (at, &cluster) in clusters.iter().enumerate() {
        match runs.last_mut().filter(|(_, last)| *last == cluster) {
            Some((range, _)) => range.end = at + 1,
            None => runs.push((at..at + 1, cluster)),
        }
    }
    runs
}

/// Moves the shortest run into the shorter of its neighbours, and merges neighbours that are then
/// alike.
fn join_shortest(runs: &mut Vec<ClusterRun>) {
    let length = |run: &ClusterRun| run.0.len();
    let Some(shortest) = (0..runs.len()).min_by_key(|&at| length(&runs[at])) else {
        return;
    };
    let neighbours = [shortest.checked_sub(1), Some(shortest + 1)];
    let neighbours = neighbours.into_iter().flatten().filter(|&n| n < runs.len());
    let Some(host) = neighbours.min_by_key(|&at| length(&runs[at])) else {
        return;
    };
    runs[shortest].1 = runs[host].1;
    let mut joined: Vec<ClusterRun> = Vec::new();
    for run in runs.drain(..) {
        match joined.last_mut().filter(|last| last.1 == run.1) {
            Some(last) => last.0.end = run.0.end,
            None => joined.push(run),
        }
    }
    *runs = joined;
}

/// The cluster of each interval.
fn clusters(intervals: &[CodeVector]) -> Vec<usize> {
    let most = MOST_CLUSTERS.min(intervals.len());
    let tried: Vec<_> = (1..=most)
        .map(|k| cluster_intervals(intervals, k))
        .collect();
    let scores = || tried.iter().map(|grouping| grouping.score);
    let (low, high) = (
        scores().fold(f64::INFINITY, f64::min),
        scores().fold(f64::NEG_INFINITY, f64::max),
    );
    // If the scores hardly differ, one cluster is as good as any other number.
    let enough = low + ENOUGH * (high - low);
    let chosen = tried.into_iter().find(|tried| tried.score >= enough);
    chosen.map_or_else(Vec::new, |tried| tried.of)
}

struct Clustering {
    of: Vec<usize>,
    score: f64,
}

/// K-means from centres that lie far apart: the first interval, then always the one farthest from
/// all centres (Gonzalez, Theoretical Computer Science 38, 1985).
fn cluster_intervals(intervals: &[CodeVector], k: usize) -> Clustering {
    let mut centres = vec![intervals[0]];
    while centres.len() < k {
        let off = |code: &CodeVector| nearest_centre(code, &centres).1;
        let farthest = intervals.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        centres.extend(farthest.copied());
    }
    let mut of = vec![0; intervals.len()];
    for _ in 0..ROUNDS {
        let now: Vec<_> = intervals
            .iter()
            .map(|i| nearest_centre(i, &centres).0)
            .collect();
        let settled = now == of;
        of = now;
        if settled {
            break;
        }
        for (number, centre) in centres.iter_mut().enumerate() {
            *centre = mean(intervals, &of, number).unwrap_or(*centre);
        }
    }
    let score = criterion(intervals, &of, &centres);
    Clustering { of, score }
}

/// The nearest centre and the square of its distance.
fn nearest_centre(code: &CodeVector, centres: &[CodeVector]) -> (usize, f64) {
    let distances = centres.iter().map(|centre| square_distance(code, centre));
    let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.unwrap_or((0, 0.0))
}

fn square_distance(a: &CodeVector, b: &CodeVector) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

fn mean(intervals: &[CodeVector], of: &[usize], cluster: usize) -> Option<CodeVector> {
    let mut sum = [0.0; DIMENSIONS];
    let mut count = 0.0;
    for (code, _) in intervals.iter().zip(of).filter(|(_, of)| **of == cluster) {
        sum.iter_mut().zip(code).for_each(|(sum, x)| *sum += x);
        count += 1.0;
    }
    (count > 0.0).then(|| sum.map(|sum| sum / count))
}

/// Logarithm of the likelihood of spherical clusters less half the logarithm of the number of
/// points per parameter. The variance has a floor, because otherwise equal intervals would be
/// infinitely likely.
fn criterion(intervals: &[CodeVector], of: &[usize], centres: &[CodeVector]) -> f64 {
    let (n, k, d) = (
        intervals.len() as f64,
        centres.len() as f64,
        DIMENSIONS as f64,
    );
    let off = |(code, &of): (&CodeVector, &usize)| square_distance(code, &centres[of]);
    let squares: f64 = intervals.iter().zip(of).map(off).sum();
    let floor = EQUAL * EQUAL / d;
    let variance = (squares / (d * (n - k).max(1.0))).max(floor);
    let spread = -0.5 * n * d * (std::f64::consts::TAU * variance).ln() - 0.5 * squares / variance;
    let sizes = (0..centres.len()).map(|c| of.iter().filter(|of| **of == c).count() as f64);
    let placed: f64 = sizes
        .filter(|size| *size > 0.0)
        .map(|size| size * (size / n).ln())
        .sum();
    spread + placed - 0.5 * k * (d + 1.0) * n.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval in one of a few loops, with a little chance in it.
    fn interval(loop_number: usize, at: usize) -> CodeVector {
        let mut code = [0.0; DIMENSIONS];
        let chance = (at * 7919 % 100) as f64 / 1e4;
        code[loop_number] = 0.7 + chance;
        code[loop_number + 8] = 0.3 - chance;
        code
    }

    fn found(loops: &[(usize, usize)]) -> Vec<std::ops::Range<usize>> {
        let intervals = loops
            .iter()
            .flat_map(|&(number, count)| (0..count).map(move |i| (number, i)));
        let codes: Vec<_> = intervals.map(|(number, i)| interval(number, i)).collect();
        phases(&codes)
    }

    #[test]
    fn phases_are_found_in_their_order() {
        assert_eq!(found(&[(0, 40)]).len(), 1);
        assert_eq!(found(&[(0, 30), (1, 50)]), [0..30, 30..80]);
        assert_eq!(found(&[(0, 9), (1, 5), (0, 7)]), [0..9, 9..14, 14..21]);
        assert_eq!(found(&[(0, 1)]).len(), 1);
        assert!(phases(&[]).is_empty());
    }

    #[test]
    fn phases_that_alternate_quickly_are_joined() {
        let loops: Vec<_> = (0..100).map(|i| (i % 2, 1 + i % 3)).collect();
        let phases = found(&loops);
        assert!(phases.len() <= MOST_PHASES, "{phases:?}");
        let ends: Vec<_> = phases.iter().map(|phase| phase.end).collect();
        assert!(
            phases
                .iter()
                .skip(1)
                .map(|p| p.start)
                .eq(ends[..ends.len() - 1].iter().copied())
        );
    }
}
