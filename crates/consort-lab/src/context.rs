//! What a study gets to run with.

use crate::study::{Scale, StudyError};
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// How far a stage of a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Jobs done.
    pub done: usize,
    /// Jobs of the stage.
    pub total: usize,
}

/// Seed, scale, workers and progress of one study.
pub struct Context<'a> {
    seed: u64,
    scale: Scale,
    workers: NonZeroUsize,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl<'a> Context<'a> {
    /// A context; `progress` is called after each job, from any thread but one
    /// at a time.
    pub fn new(
        seed: u64,
        scale: Scale,
        workers: NonZeroUsize,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> Self {
        Self {
            seed,
            scale,
            workers,
            progress,
        }
    }

    /// The study's seed; the seeds of its runs follow from it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Threads to run on; no result may depend on it.
    pub(crate) fn workers(&self) -> NonZeroUsize {
        self.workers
    }

    /// How much to run.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// One of two values by scale, for example numbers of runs.
    pub fn by_scale<T>(&self, quick: T, full: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }

    /// Does independent jobs on the workers. Results come in the order of the
    /// jobs, so they are the same for any number of workers.
    ///
    /// # Errors
    /// When the worker threads cannot be started.
    pub fn map<T: Sync, R: Send>(
        &self,
        jobs: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Result<Vec<R>, StudyError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.workers.get())
            .build()
            .map_err(|error| StudyError::Workers(error.to_string()))?;
        let done = Mutex::new(0);
        let tracked = |job: &T| {
            let result = work(job);
            self.tick(&done, jobs.len());
            result
        };
        // Jobs differ in length by orders of magnitude: nobody takes several at once.
        let jobs = jobs.par_iter().with_max_len(1);
        Ok(pool.install(|| jobs.map(tracked).collect()))
    }

    /// Counts under the lock, so that progress never runs backwards.
    fn tick(&self, done: &Mutex<usize>, total: usize) {
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        (self.progress)(Progress { done: *done, total });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;

    #[test]
    fn results_are_in_order_for_any_number_of_workers() {
        let jobs: Vec<u64> = (0..100).collect();
        for count in [1, 2, 7] {
            let context = Context::new(1, Scale::Full, workers(count), &|_| ());
            let squares = context.map(&jobs, |job| job * job).unwrap();
            assert!(squares.iter().zip(&jobs).all(|(s, j)| *s == j * j));
        }
    }

    #[test]
    fn progress_counts_every_job_upwards() {
        let seen = Mutex::new(Vec::new());
        let note = |progress: Progress| seen.lock().unwrap().push(progress);
        let context = Context::new(1, Scale::Quick, workers(3), &note);
        context.map(&[(); 20], |()| ()).unwrap();
        let counts: Vec<usize> = seen.lock().unwrap().iter().map(|p| p.done).collect();
        assert_eq!(counts, (1..=20).collect::<Vec<_>>());
        assert!(seen.lock().unwrap().iter().all(|p| p.total == 20));
        assert_eq!(context.by_scale(2, 10), 2);
    }
}
