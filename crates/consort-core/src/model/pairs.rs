//! The forward model for every pair of many threads.

use super::error::ModelError;
use super::level::{Level, share};

/// Threads on either side of a tile of pairs: two tiles fit into any L1D.
const TILE: usize = 32;

/// The slowdown of every thread next to every other on one core of two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairSlowdowns {
    threads: usize,
    /// Row by row; a row is one thread next to each co-runner.
    slowdowns: Vec<f64>,
    scratch: Columns,
}

/// Shares by component, so that one component of many threads is contiguous.
#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    /// Components that have a product term, one after another.
    shares: Vec<f64>,
    /// What a co-runner adds to whoever runs next to it, without products.
    added: Vec<f64>,
    /// Slowdown of a thread next to nobody, without products.
    alone: Vec<f64>,
}

impl PairSlowdowns {
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Slowdowns of one thread next to each other one; what stands at its own
    /// place is next to a copy of itself. Empty for a thread that is not there.
    pub fn next_to(&self, thread: usize) -> &[f64] {
        let from = thread.saturating_mul(self.threads);
        let row = self.slowdowns.get(from..from.saturating_add(self.threads));
        row.unwrap_or_default()
    }

    /// The same row, to be corrected.
    pub(super) fn next_to_mut(&mut self, thread: usize) -> &mut [f64] {
        let from = thread.saturating_mul(self.threads);
        let row = self
            .slowdowns
            .get_mut(from..from.saturating_add(self.threads));
        row.unwrap_or_default()
    }

    /// Puts the cost of each pair, the sum of what both slowdowns cost, in the place of either
    /// slowdown. Tile by tile, so that the mirrored half is in the cache as well.
    pub fn sum_both(&mut self, cost: impl Fn(f64) -> f64) {
        let n = self.threads;
        let tiles = (0..n).step_by(TILE);
        for (rows, columns) in tiles.flat_map(|r| (r..n).step_by(TILE).map(move |c| (r, c))) {
            for i in rows..(rows + TILE).min(n) {
                for j in columns.max(i + 1)..(columns + TILE).min(n) {
                    let sum = cost(self.slowdowns[i * n + j]) + cost(self.slowdowns[j * n + i]);
                    self.slowdowns[i * n + j] = sum;
                    self.slowdowns[j * n + i] = sum;
                }
            }
        }
    }

    /// Slowdown of a thread next to one co-runner.
    pub fn get(&self, thread: usize, co_runner: usize) -> Option<f64> {
        self.next_to(thread).get(co_runner).copied()
    }
}

impl Level {
    /// The slowdown of every thread next to every other, [`Level::slowdown`]
    /// for all pairs. `stacks` holds the ST stacks one after another.
    ///
    /// # Errors
    /// A length that is no multiple of the number of components, or a level for
    /// more than two threads per core.
    pub fn pairs(&self, stacks: &[f64]) -> Result<PairSlowdowns, ModelError> {
        let mut pairs = PairSlowdowns::default();
        self.pairs_into(stacks, &mut pairs)?;
        Ok(pairs)
    }

    /// The same into `pairs`, whose storage is used again.
    ///
    /// # Errors
    /// Those of [`Level::pairs`].
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
        pairs.threads = stacks.len() / expected;
        pairs.scratch.fill(self, stacks);
        let PairSlowdowns {
            threads,
            slowdowns,
            scratch,
        } = pairs;
        slowdowns.resize(*threads * *threads, 0.0);
        if *threads > 0 {
            for (thread, row) in slowdowns.chunks_exact_mut(*threads).enumerate() {
                scratch.row(self, thread, row);
            }
        }
        Ok(())
    }
}

impl Columns {
    fn fill(&mut self, level: &Level, stacks: &[f64]) {
        let components = level.parameters().len();
        let threads = stacks.len() / components;
        self.shares.clear();
        self.added.clear();
        self.added.resize(threads, 0.0);
        self.alone.clear();
        self.alone.resize(threads, 0.0);
        for (component, p) in level.parameters().iter().enumerate() {
            let of_all = stacks.iter().skip(component).step_by(components);
            for (thread, value) in of_all.enumerate() {
                let share = share(*value, 1.0);
                self.alone[thread] += p.alpha + p.beta * share;
                self.added[thread] += p.gamma * share;
                if p.delta != 0.0 {
                    self.shares.push(share);
                }
            }
        }
    }

    /// The sum over components separates into what the thread brings, what the
    /// co-runner brings, and one product per component; only the products are
    /// left to do for each pair.
    fn row(&self, level: &Level, thread: usize, row: &mut [f64]) {
        let threads = row.len();
        let alone = self.alone[thread];
        for (slowdown, added) in row.iter_mut().zip(&self.added) {
            *slowdown = alone + added;
        }
        let deltas = level.parameters().iter().map(|p| p.delta);
        let columns = self.shares.chunks_exact(threads);
        for (delta, column) in deltas.filter(|d| *d != 0.0).zip(columns) {
            let factor = delta * column[thread];
            for (slowdown, share) in row.iter_mut().zip(column) {
                *slowdown += factor * share;
            }
        }
        row.iter_mut()
            .for_each(|slowdown| *slowdown = slowdown.max(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Parameters;

    #[test]
    fn costs_of_pairs_are_both_summed_whatever_the_tiles() {
        let parameters = Parameters {
            alpha: 0.1,
            beta: 1.2,
            gamma: 0.3,
            delta: 0.4,
        };
        let level = Level::new(2, vec![parameters; 2]).unwrap();
        for threads in [0, 1, 2, TILE - 1, TILE, TILE + 1, 3 * TILE + 5] {
            let share = |i: usize| (i * 37 % 101) as f64 / 101.0;
            let stacks: Vec<f64> = (0..threads)
                .flat_map(|i| [share(i), 1.0 - share(i)])
                .collect();
            let before = level.pairs(&stacks).unwrap();
            let mut costs = before.clone();
            costs.sum_both(|slowdown| slowdown * slowdown);
            for i in 0..threads {
                for j in (0..threads).filter(|&j| j != i) {
                    let (one, other) = (before.get(i, j).unwrap(), before.get(j, i).unwrap());
                    assert_eq!(costs.get(i, j), Some(one * one + other * other));
                }
            }
        }
    }
}
