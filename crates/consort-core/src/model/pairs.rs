//! The forward model for every pair of many threads.
//!
//! Nothing is stored per pair: with many threads, computing the slowdowns of a thread next to all
//! others takes less time than loading them from memory.

use super::level::{LevelParameters, share};
use crate::model::ModelError;

/// The slowdown of every thread next to every other, two per core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairSlowdowns {
    /// Components that have a product term.
    products: Vec<ProductTerm>,
    /// Slowdown that each thread adds to a co-runner, without products.
    added: Vec<f64>,
    /// Slowdown of a thread without a co-runner, without products.
    alone: Vec<f64>,
    /// Pairs to be corrected, in the order of their first thread.
    corrected: Vec<PairCorrection>,
    /// Index of the first corrected pair of each thread; threads beyond the end have none.
    corrected_from: Vec<usize>,
    /// Buffer for the slowdowns of others, so that memory is allocated once.
    scratch: Vec<f64>,
}

/// One component of all threads.
#[derive(Clone, Debug, Default, PartialEq)]
struct ProductTerm {
    shares: Vec<f64>,
    /// The shares times the coefficient of the product.
    weighted: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct PairCorrection {
    second: usize,
    first_by: f64,
    second_by: f64,
}

impl PairSlowdowns {
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.alone.len()
    }

    /// Slowdown of a thread next to one co-runner. Next to itself it is the prediction for a copy.
    pub fn get(&self, thread: usize, co_runner: usize) -> Option<f64> {
        let mut slowdown = self.alone.get(thread)? + self.added.get(co_runner)?;
        for product in &self.products {
            slowdown += product.weighted[thread] * product.shares[co_runner];
        }
        let (first, second) = (thread.min(co_runner), thread.max(co_runner));
        let corrected = self
            .pair_corrections(first)
            .iter()
            .find(|c| c.second == second);
        let factor = corrected.map_or(1.0, |corrected| {
            if thread == first {
                corrected.first_by
            } else {
                corrected.second_by
            }
        });
        Some(at_least_one(slowdown) / factor)
    }

    /// Writes the cost of each pair of `first` with the threads after it, in their order: the sum
    /// of the costs of both slowdowns. Entries beyond the last thread stay as they are.
    pub fn fill_costs_after(&mut self, first: usize, cost: impl Fn(f64) -> f64, costs: &mut [f64]) {
        let mut others = std::mem::take(&mut self.scratch);
        let count = costs.len().min(self.threads().saturating_sub(first + 1));
        let costs = &mut costs[..count];
        others.resize(count, 0.0);
        self.predict(first, costs, &mut others);
        for corrected in self.pair_corrections(first) {
            let at = corrected.second - first - 1;
            if at < count {
                costs[at] /= corrected.first_by;
                others[at] /= corrected.second_by;
            }
        }
        for (own, other) in costs.iter_mut().zip(&others) {
            *own = cost(*own) + cost(*other);
        }
        self.scratch = others;
    }

    /// Predicts the slowdowns of a thread next to those after it, and of those next to it. The sum
    /// over components separates into a part of the thread, a part of the co-runner, and one
    /// product per component; only the products remain to be computed for each pair.
    fn predict(&self, first: usize, own: &mut [f64], others: &mut [f64]) {
        let Some((&alone, &added)) = self.alone.get(first).zip(self.added.get(first)) else {
            return;
        };
        let after = first + 1..first + 1 + own.len();
        let each = self.alone[after.clone()]
            .iter()
            .zip(&self.added[after.clone()]);
        for ((own, other), (their_alone, their_added)) in own.iter_mut().zip(&mut *others).zip(each)
        {
            *own = alone + their_added;
            *other = their_alone + added;
        }
        for product in &self.products {
            let (share, weighted) = (product.shares[first], product.weighted[first]);
            let shares = &product.shares[after.clone()];
            let each = shares.iter().zip(&product.weighted[after.clone()]);
            for ((own, other), (their_share, their_weighted)) in
                own.iter_mut().zip(&mut *others).zip(each)
            {
                *own += weighted * their_share;
                *other += their_weighted * share;
            }
        }
        for slowdown in own.iter_mut().chain(others) {
            *slowdown = at_least_one(*slowdown);
        }
    }

    fn pair_corrections(&self, first: usize) -> &[PairCorrection] {
        let from = |thread| self.corrected_from.get(thread).copied();
        let end = from(first + 1).unwrap_or(self.corrected.len());
        from(first).map_or(&[], |from| &self.corrected[from..end])
    }

    /// Replaces the corrected pairs: takes, for each thread in order, its co-runners with the
    /// divisors of its own slowdown next to them and of theirs next to it.
    pub(super) fn correct<I: Iterator<Item = (usize, f64, f64)>>(
        &mut self,
        factors: impl Iterator<Item = I>,
    ) {
        self.corrected.clear();
        self.corrected_from.clear();
        for (first, co_runners) in factors.enumerate() {
            self.corrected_from.push(self.corrected.len());
            let later = co_runners.filter(|(second, ..)| *second > first);
            self.corrected
                .extend(later.map(|(second, first_by, second_by)| PairCorrection {
                    second,
                    first_by,
                    second_by,
                }));
        }
    }

    fn fill(&mut self, level: &LevelParameters, stacks: &[f64]) {
        let components = level.parameters().len();
        let threads = stacks.len() / components;
        for column in [&mut self.added, &mut self.alone] {
            column.clear();
            column.resize(threads, 0.0);
        }
        self.corrected.clear();
        self.corrected_from.clear();
        self.products.clear();
        for (component, p) in level.parameters().iter().enumerate() {
            let of_all = stacks.iter().skip(component).step_by(components);
            let shares: Vec<f64> = of_all.map(|value| share(*value, 1.0)).collect();
            for (thread, share) in shares.iter().enumerate() {
                self.alone[thread] += p.alpha + p.beta * share;
                self.added[thread] += p.gamma * share;
            }
            if p.delta != 0.0 {
                let weighted = shares.iter().map(|share| p.delta * share).collect();
                self.products.push(ProductTerm { shares, weighted });
            }
        }
    }
}

/// No thread gains from sharing a core. Unlike `f64::max` this is a single instruction.
fn at_least_one(slowdown: f64) -> f64 {
    if slowdown > 1.0 { slowdown } else { 1.0 }
}

impl LevelParameters {
    /// Predicts the slowdown of every thread next to every other, [`LevelParameters::slowdown`] for
    /// all pairs. `stacks` holds the ST stacks one after another.
    ///
    /// # Errors
    /// If the length is no multiple of the number of components, or the level is for more than two
    /// threads per core.
    pub fn pairs(&self, stacks: &[f64]) -> Result<PairSlowdowns, ModelError> {
        let mut pairs = PairSlowdowns::default();
        self.pairs_into(stacks, &mut pairs)?;
        Ok(pairs)
    }

    /// Computes [`LevelParameters::pairs`] into `pairs`, whose memory is reused; nothing is
    /// corrected yet.
    ///
    /// # Errors
    /// Those of [`LevelParameters::pairs`].
    pub fn pairs_into(&self, stacks: &[f64], pairs: &mut PairSlowdowns) -> Result<(), ModelError> {
        let expected = self.parameters().len();
        let found = stacks.len() % expected;
        if found != 0 {
            return Err(ModelError::Components { found, expected });
        }
        if self.ways() != 2 {
            let (threads, ways) = (2, self.ways());
            return Err(ModelError::Threads { threads, ways });
        }
        pairs.fill(self, stacks);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadId;
    use crate::model::{ComponentParameters, Corrections};

    fn id(tid: usize) -> ThreadId {
        ThreadId {
            pid: 1,
            tid: tid as u32,
            start_ticks: 0,
        }
    }

    #[test]
    fn pair_cost_is_the_sum_of_both() {
        let parameters = |delta| ComponentParameters {
            alpha: 0.1,
            beta: 1.2,
            gamma: 0.3,
            delta,
        };
        let level =
            LevelParameters::new(2, vec![parameters(0.4), parameters(0.0), parameters(-0.2)]);
        let level = level.unwrap();
        for threads in [0, 1, 2, 31, 100] {
            let share = |i: usize| (i * 37 % 101) as f64 / 101.0;
            let stacks: Vec<f64> = (0..threads)
                .flat_map(|i| [share(i), 0.5 * (1.0 - share(i)), 0.5 * (1.0 - share(i))])
                .collect();
            let mut pairs = level.pairs(&stacks).unwrap();
            assert_eq!(pairs.threads(), threads);
            let ids: Vec<ThreadId> = (0..threads).map(id).collect();
            let mut corrections = Corrections::default();
            for i in 0..threads {
                let others: Vec<ThreadId> = (0..i).step_by(7).map(id).collect();
                corrections.update(id(i), &others, 1.1, 1.0);
                corrections.update(id(i / 2), &[id(i)], 0.9, 1.0);
            }
            corrections.apply(&ids, &mut pairs);
            for i in 0..threads {
                let mut costs = vec![0.0; threads - i - 1];
                pairs.fill_costs_after(i, |slowdown| slowdown * slowdown, &mut costs);
                for j in i + 1..threads {
                    let of = |a: usize, b: usize| {
                        let stacks: Vec<&[f64]> = stacks.chunks(3).collect();
                        let corrected =
                            level.slowdown(stacks[a], stacks[b]) / corrections.factor(id(a), id(b));
                        assert!((pairs.get(a, b).unwrap() - corrected).abs() < 1e-12);
                        pairs.get(a, b).unwrap()
                    };
                    let (one, other) = (of(i, j), of(j, i));
                    assert_eq!(costs[j - i - 1], one * one + other * other, "{i} {j}");
                }
            }
        }
    }
}
