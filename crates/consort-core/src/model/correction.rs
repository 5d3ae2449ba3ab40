//! Correction factors of pairs of threads: actual performance over predicted.

use super::pairs::PairSlowdowns;
use crate::ids::ThreadId;
use std::collections::BTreeMap;

/// Least share of the predicted performance that says anything about a pair. Below it the thread
/// changed its phase or did not run (section 4.2 of the paper).
const LEAST_FACTOR: f64 = 0.5;

/// Weight of the newest slice in the average; the paper gives none.
const DEFAULT_WEIGHT: f64 = 0.5;

/// Result of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrectionUpdate {
    /// The factors of the thread next to these co-runners moved.
    Taken,
    /// The performance is below half of the prediction, or not positive and finite; the factors
    /// stay.
    Refused,
}

/// Correction factors: actual over predicted performance of a thread next to a co-runner, averaged
/// over slices; 1 for unknown pairs. Multiply a prediction of performance by it.
#[doc(alias = "correction factor")]
#[derive(Clone, Debug, PartialEq)]
pub struct Corrections {
    weight: f64,
    places: BTreeMap<ThreadId, usize>,
    free: Vec<usize>,
    /// Factors by place of the thread, ascending by that of the co-runner. Only pairs with a
    /// measurement of either thread are stored.
    factors: Vec<Vec<PairFactors>>,
}

/// The factors of two threads next to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PairFactors {
    other: usize,
    own: f64,
    others: f64,
}

impl Default for Corrections {
    fn default() -> Self {
        Self::new(DEFAULT_WEIGHT)
    }
}

impl Corrections {
    /// Starts without pairs; `weight`, 0 to 1, is that of the newest slice.
    pub fn new(weight: f64) -> Self {
        Self {
            weight: super::level::share(weight, 1.0),
            places: BTreeMap::new(),
            free: Vec::new(),
            factors: Vec::new(),
        }
    }

    /// Records the performance of a thread in a slice next to co-runners (instructions per cycle
    /// over those alone), and the uncorrected prediction. With several co-runners each pair gets
    /// the same factor.
    pub fn update(
        &mut self,
        thread: ThreadId,
        co_runners: &[ThreadId],
        actual: f64,
        predicted: f64,
    ) -> CorrectionUpdate {
        let factor = actual / predicted;
        if predicted <= 0.0 || !factor.is_finite() || factor < LEAST_FACTOR {
            return CorrectionUpdate::Refused;
        }
        let own = self.ensure_place(thread);
        for co_runner in co_runners {
            let other = self.ensure_place(*co_runner);
            let weight = self.weight;
            let known = &mut self.factors_mut(own, other).own;
            *known += weight * (factor - *known);
            let known = *known;
            self.factors_mut(other, own).others = known;
        }
        CorrectionUpdate::Taken
    }

    /// The factor of a thread next to one co-runner.
    pub fn factor(&self, thread: ThreadId, co_runner: ThreadId) -> f64 {
        let place = |id: &ThreadId| self.places.get(id).copied();
        let both = place(&thread).zip(place(&co_runner));
        both.map_or(1.0, |(own, other)| self.at(own, other))
    }

    /// The factor of a thread next to several co-runners: the mean of the pairs' factors, 1 without
    /// co-runners.
    pub fn factor_among(&self, thread: ThreadId, co_runners: &[ThreadId]) -> f64 {
        let factors = co_runners.iter().map(|other| self.factor(thread, *other));
        let count = co_runners.len().max(1) as f64;
        if co_runners.is_empty() {
            return 1.0;
        }
        factors.sum::<f64>() / count
    }

    /// Forgets an exited thread.
    pub fn forget(&mut self, thread: ThreadId) {
        let Some(place) = self.places.remove(&thread) else {
            return;
        };
        for seen in std::mem::take(&mut self.factors[place]) {
            let row = &mut self.factors[seen.other];
            if let Ok(at) = row.binary_search_by_key(&place, |seen| seen.other) {
                row.remove(at);
            }
        }
        self.free.push(place);
    }

    /// Corrects the predicted slowdowns of all pairs and replaces earlier corrections; `threads`
    /// are the ids in the order of `pairs`. Factors multiply performance, so slowdowns are divided.
    pub fn apply(&self, threads: &[ThreadId], pairs: &mut PairSlowdowns) {
        let place = |id: &ThreadId| self.places.get(id).copied();
        let places: Vec<Option<usize>> = threads.iter().map(place).collect();
        let mut threads_at = vec![None; self.factors.len()];
        for (thread, place) in places.iter().enumerate() {
            place
                .iter()
                .for_each(|&place| threads_at[place] = Some(thread));
        }
        pairs.correct(places.iter().map(|place| {
            let seen = place.map_or(&[][..], |place| &self.factors[place]);
            let here = |seen: &PairFactors| Some((threads_at[seen.other]?, seen.own, seen.others));
            seen.iter().filter_map(here)
        }));
    }

    fn at(&self, own: usize, other: usize) -> f64 {
        let row = &self.factors[own];
        let found = row.binary_search_by_key(&other, |seen| seen.other);
        found.map_or(1.0, |at| row[at].own)
    }

    /// The factors of two threads, added with the value 1 if they are new.
    fn factors_mut(&mut self, own: usize, other: usize) -> &mut PairFactors {
        let row = &mut self.factors[own];
        let at = row
            .binary_search_by_key(&other, |seen| seen.other)
            .unwrap_or_else(|at| {
                let (own, others) = (1.0, 1.0);
                row.insert(at, PairFactors { other, own, others });
                at
            });
        &mut row[at]
    }

    fn ensure_place(&mut self, thread: ThreadId) -> usize {
        if let Some(place) = self.places.get(&thread) {
            return *place;
        }
        let place = self.free.pop().unwrap_or(self.factors.len());
        if place == self.factors.len() {
            self.factors.push(Vec::new());
        }
        self.places.insert(thread, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::power8;
    use proptest::prelude::*;

    fn id(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    #[test]
    fn unknown_pair_has_factor_one() {
        let mut corrections = Corrections::default();
        assert_eq!(corrections.factor(id(1), id(2)), 1.0);
        assert_eq!(
            corrections.update(id(1), &[id(2)], 0.6, 0.5),
            CorrectionUpdate::Taken
        );
        assert_eq!(corrections.factor(id(2), id(1)), 1.0, "pairs are ordered");
        assert_eq!(corrections.factor(id(1), id(3)), 1.0);
    }

    #[test]
    fn factors_are_an_exponential_moving_average() {
        let mut corrections = Corrections::new(0.25);
        corrections.update(id(1), &[id(2)], 0.6, 0.5);
        assert!((corrections.factor(id(1), id(2)) - 1.05).abs() < 1e-15);
        corrections.update(id(1), &[id(2)], 0.4, 0.5);
        assert!((corrections.factor(id(1), id(2)) - 0.9875).abs() < 1e-15);
    }

    #[test]
    fn less_than_half_the_prediction_is_refused() {
        let mut corrections = Corrections::default();
        let refused = [
            (0.499, 1.0),
            (1.0, 0.0),
            (-1.0, -1.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (f64::INFINITY, 1.0),
        ];
        for (actual, predicted) in refused {
            let update = corrections.update(id(1), &[id(2)], actual, predicted);
            assert_eq!(update, CorrectionUpdate::Refused, "{actual} {predicted}");
        }
        assert_eq!(corrections, Corrections::default());
        assert_eq!(
            corrections.update(id(1), &[id(2)], 0.5, 1.0),
            CorrectionUpdate::Taken
        );
    }

    #[test]
    fn several_co_runners_share_one_factor() {
        let mut corrections = Corrections::new(1.0);
        corrections.update(id(1), &[id(2), id(3)], 0.6, 0.5);
        corrections.update(id(1), &[id(3)], 0.8, 0.5);
        assert!((corrections.factor_among(id(1), &[id(2), id(3)]) - 1.4).abs() < 1e-15);
        assert_eq!(corrections.factor_among(id(1), &[]), 1.0);
    }

    #[test]
    fn reused_place_starts_without_factors() {
        let mut corrections = Corrections::new(1.0);
        corrections.update(id(1), &[id(2)], 0.6, 0.5);
        corrections.update(id(2), &[id(1)], 0.6, 0.5);
        corrections.forget(id(2));
        corrections.forget(id(9));
        corrections.update(id(3), &[], 0.6, 0.5);
        assert_eq!(corrections.factor(id(1), id(3)), 1.0);
        assert_eq!(corrections.factor(id(3), id(1)), 1.0);
    }

    #[test]
    fn pairs_are_corrected_in_the_order_of_the_threads() {
        let stacks = [0.4, 0.1, 0.1, 0.4, 0.3, 0.2, 0.1, 0.4, 0.1, 0.1, 0.1, 0.7];
        let mut pairs = power8().pairs(&stacks).unwrap();
        let plain = pairs.clone();
        let mut corrections = Corrections::new(1.0);
        corrections.update(id(7), &[id(5)], 0.8, 1.0);
        corrections.apply(&[id(5), id(6), id(7)], &mut pairs);
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let factor = if (i, j) == (2, 0) { 0.8 } else { 1.0 };
            assert_eq!(pairs.get(i, j), plain.get(i, j).map(|s| s / factor));
        }
    }

    proptest! {
        #[test]
        fn factors_stay_within_measured_range(
            weight in 0.0f64..1.0, seen in prop::collection::vec(0.0f64..2.0, 0..20),
        ) {
            let mut corrections = Corrections::new(weight);
            for factor in &seen {
                corrections.update(id(1), &[id(2)], *factor, 1.0);
            }
            let factor = corrections.factor(id(1), id(2));
            prop_assert!((LEAST_FACTOR..=2.0).contains(&factor));
        }
    }
}
