//! The disadvantage of each core for memory-bound threads, from measurements of threads alone on
//! several.
//!
//! The model: `ln IPC(t, c) = a(t) − m(t)·d(c)`, where `a(t)` is of the thread, `m(t)` the share of
//! its cycles that waits for memory (0 to 1), `d(c)` the disadvantage of a core, and all `d`
//! together are 0. In other words, a thread that does nothing but wait loses `d(c)` of its speed
//! there, to the first order.
//!
//! Least squares over all measurements, each of a weight; `m` of a thread is its mean. The best
//! `a(t)` is the thread's mean of `ln IPC + m·d`, so it cancels when means over the thread's
//! measurements are subtracted on both sides, and equations in `d` alone are left. A small ridge
//! pulls towards 0 what was measured little, so they always have one solution. Its sum is 0 of
//! itself: without the ridge every row of the matrix adds up to 0, as do the right sides.

/// Weight of the ridge that pulls every `d` towards 0: as much as this many measurements of a
/// thread that only waits. An estimate: noise of a measurement of a tenth against disadvantages of
/// a third would have it at 0.1.
const RIDGE: f64 = 0.1;

/// One thread alone on one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AloneIpcSample {
    /// Any number that is the thread's own.
    pub(super) thread: usize,
    pub(super) core: usize,
    /// Natural logarithm of instructions per cycle.
    pub(super) ln_ipc: f64,
    /// Share of the thread's cycles that waited for memory, 0 to 1.
    pub(super) memory: f64,
    pub(super) weight: f64,
}

/// The disadvantages of `cores` cores; measurements on others do not count.
pub(super) fn disadvantages(measured: &[AloneIpcSample], cores: usize) -> Vec<f64> {
    let mut equations = DisadvantageEquations::new(cores);
    let mut sorted: Vec<&AloneIpcSample> = measured.iter().filter(|m| m.core < cores).collect();
    sorted.sort_by_key(|m| m.thread);
    for of_one in sorted.chunk_by(|a, b| a.thread == b.thread) {
        equations.add_thread(of_one);
    }
    equations.solve()
}

/// `(A + ridge)·d = b`.
struct DisadvantageEquations {
    /// Row by row, with `b` as the last column.
    rows: Vec<Vec<f64>>,
}

impl DisadvantageEquations {
    fn new(cores: usize) -> Self {
        let mut rows = vec![vec![0.0; cores + 1]; cores];
        for (core, row) in rows.iter_mut().enumerate() {
            row[core] = RIDGE;
        }
        Self { rows }
    }

    /// Adds the measurements of one thread.
    fn add_thread(&mut self, of_one: &[&AloneIpcSample]) {
        let cores = self.rows.len();
        let weight: f64 = of_one.iter().map(|m| m.weight).sum();
        if weight <= 0.0 {
            return;
        }
        let mean = |value: fn(&AloneIpcSample) -> f64| {
            let sum: f64 = of_one.iter().map(|m| m.weight * value(m)).sum();
            sum / weight
        };
        let (memory, ln) = (mean(|m| m.memory), mean(|m| m.ln_ipc));
        let mut visits = vec![0.0; cores];
        for m in of_one {
            visits[m.core] += m.weight / weight;
        }
        for m in of_one {
            let here = |core: usize| f64::from(u8::from(core == m.core));
            let share = (0..cores).map(|core| memory * (here(core) - visits[core]));
            self.add_equation(&share.collect::<Vec<_>>(), m.ln_ipc - ln, m.weight);
        }
    }

    fn add_equation(&mut self, share: &[f64], ln: f64, weight: f64) {
        for (row, own) in self.rows.iter_mut().zip(share) {
            let targets = share.iter().copied().chain([-ln]);
            for (entry, other) in row.iter_mut().zip(targets) {
                *entry += weight * own * other;
            }
        }
    }

    /// Gauss-Jordan elimination; the matrix is symmetric and positive definite, so no pivot is 0.
    fn solve(mut self) -> Vec<f64> {
        let cores = self.rows.len();
        for pivot in 0..cores {
            let lead = self.rows[pivot].clone();
            for (at, row) in self.rows.iter_mut().enumerate() {
                if at == pivot {
                    continue;
                }
                let factor = row[pivot] / lead[pivot];
                for (entry, lead) in row.iter_mut().zip(&lead) {
                    *entry -= factor * lead;
                }
            }
        }
        let answer = self.rows.iter().enumerate();
        answer.map(|(i, row)| row[cores] / row[i]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CORES: usize = 6;
    const THREADS: usize = 8;

    /// Measurements as (thread, core, noise), each thread with its own speed and memory share.
    fn measured(visits: &[(usize, usize, f64)], planted: &[f64]) -> Vec<AloneIpcSample> {
        let one = |&(thread, core, noise): &(usize, usize, f64)| {
            let memory = 0.2 + 0.1 * thread as f64;
            AloneIpcSample {
                thread,
                core,
                ln_ipc: 0.3 * thread as f64 - 1.0 - memory * planted[core] + noise,
                memory,
                weight: 1.0,
            }
        };
        visits.iter().map(one).collect()
    }

    fn visits(noise: f64) -> impl Strategy<Value = Vec<(usize, usize, f64)>> {
        let visit = (0..THREADS, 0..CORES, -noise..=noise);
        prop::collection::vec(visit, 0..200)
    }

    /// Visits, as many as 25 measurements of eight threads make.
    fn many(noise: f64) -> impl Strategy<Value = Vec<(usize, usize, f64)>> {
        let visit = (0..THREADS, 0..CORES, -noise..=noise);
        prop::collection::vec(visit, 200)
    }

    /// Disadvantages of sum 0.
    fn planted() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-0.5f64..0.5, CORES).prop_map(|mut d| {
            let mean = d.iter().sum::<f64>() / CORES as f64;
            d.iter_mut().for_each(|d| *d -= mean);
            d
        })
    }

    proptest! {
        #[test]
        fn what_was_planted_is_recovered_from_noisy_measurements(
            visits in many(0.05), planted in planted(),
        ) {
            let found = disadvantages(&measured(&visits, &planted), CORES);
            for (found, planted) in found.iter().zip(&planted) {
                prop_assert!((found - planted).abs() < 0.08, "{found} for {planted}");
            }
        }

        #[test]
        fn cores_that_are_alike_have_none(visits in visits(0.0)) {
            let found = disadvantages(&measured(&visits, &[0.0; CORES]), CORES);
            prop_assert!(found.iter().all(|d| d.abs() < 1e-12), "{found:?}");
        }

        #[test]
        fn the_sum_is_zero(visits in visits(0.3), planted in planted()) {
            let found = disadvantages(&measured(&visits, &planted), CORES);
            prop_assert!(found.iter().sum::<f64>().abs() < 1e-9, "{found:?}");
        }

        #[test]
        fn renamed_cores_have_the_same_disadvantages(
            visits in visits(0.3),
            planted in planted(),
            names in Just((0..CORES).collect::<Vec<usize>>()).prop_shuffle(),
        ) {
            let before = measured(&visits, &planted);
            let rename = |m: &AloneIpcSample| AloneIpcSample { core: names[m.core], ..*m };
            let after: Vec<AloneIpcSample> = before.iter().map(rename).collect();
            let (before, after) = (disadvantages(&before, CORES), disadvantages(&after, CORES));
            for (core, d) in before.iter().enumerate() {
                prop_assert!((after[names[core]] - d).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn thread_on_one_core_shows_no_disadvantage() {
        let found = disadvantages(
            &measured(&[(0, 1, 0.2), (0, 1, -0.1)], &[0.0; CORES]),
            CORES,
        );
        assert_eq!(found, [0.0; CORES]);
        assert_eq!(disadvantages(&[], 2), [0.0; 2]);
    }

    #[test]
    fn what_counts_more_is_nearer() {
        let mut measured = measured(&[(0, 0, 0.0), (0, 1, 0.0), (0, 1, 0.4)], &[0.0; CORES]);
        let even = disadvantages(&measured, CORES)[1];
        measured[2].weight = 0.1;
        assert!(disadvantages(&measured, CORES)[1].abs() < even.abs());
    }
}
