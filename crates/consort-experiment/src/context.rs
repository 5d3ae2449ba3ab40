//! Seed, scale and workers that experiments run with.

use crate::error::{ExperimentError, JobsError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The shape of the result, in seconds.
    Quick,
    /// As many runs as the source had.
    Full,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

/// Progress of a stage of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageProgress {
    /// Jobs done.
    pub done: usize,
    /// Jobs of the stage.
    pub total: usize,
}

/// Results that several studies use, computed once for all studies that share them.
///
/// A result follows from its name, seed and scale alone, so a kept one equals a new one. Clones share
/// their contents.
#[derive(Clone, Default)]
pub struct SharedResults(Arc<Mutex<BTreeMap<ResultKey, ResultSlot>>>);

type ResultKey = (String, u64, Scale);
/// A result; empty until it is computed. The lock is held meanwhile, so that no other study computes
/// it, too.
type ResultSlot = Arc<Mutex<Option<Arc<dyn Any + Send + Sync>>>>;

impl fmt::Debug for SharedResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Made")
    }
}

impl SharedResults {
    fn slot(&self, key: ResultKey) -> ResultSlot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(key).or_default())
    }
}

/// Seed, scale, workers and progress of one study.
pub struct ExperimentContext<'a> {
    seed: u64,
    scale: Scale,
    workers: NonZeroUsize,
    progress: &'a (dyn Fn(StageProgress) + Sync),
    made: SharedResults,
}

impl<'a> ExperimentContext<'a> {
    /// A context; `progress` is called before the first job and after each, from any thread but
    /// one at a time.
    pub fn new(
        seed: u64,
        scale: Scale,
        workers: NonZeroUsize,
        progress: &'a (dyn Fn(StageProgress) + Sync),
    ) -> Self {
        Self {
            seed,
            scale,
            workers,
            progress,
            made: SharedResults::default(),
        }
    }

    /// The same context with what other studies have made.
    #[must_use]
    pub fn with_shared_results(mut self, made: &SharedResults) -> Self {
        self.made = made.clone();
        self
    }

    /// Takes what was made before under this name, with this seed and scale, or makes it now;
    /// a failure is not kept. A name always stands for one type.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_compute<T: Send + Sync + 'static, E>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let slot = self.made.slot((name.to_owned(), self.seed, self.scale));
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slot.as_ref().map(Arc::clone);
        if let Some(Ok(known)) = known.map(Arc::downcast) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        *slot = Some(Arc::<T>::clone(&made));
        Ok(made)
    }

    /// The study's seed; the seeds of its runs follow from it.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Amount of work.
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
    /// When the worker threads cannot be started, or a stop is requested; see [`StopRequest`].
    pub fn map<T: Sync, R: Send>(
        &self,
        jobs: &[T],
        work: impl Fn(&T) -> R + Sync,
    ) -> Result<Vec<R>, JobsError> {
        let with_result = |job| (job, Mutex::new(None));
        let jobs: Vec<(&T, Mutex<Option<R>>)> = jobs.iter().map(with_result).collect();
        self.run_jobs(jobs.len(), &|at| {
            if let Some((job, result)) = jobs.get(at) {
                let done = work(job);
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            }
        })?;
        let results = jobs.into_iter().map(|(_, result)| result.into_inner());
        let done = results.filter_map(|result| result.unwrap_or_else(PoisonError::into_inner));
        Ok(done.collect())
    }

    /// Does jobs by their number on the workers. Not generic: what distributes jobs would be
    /// compiled for every kind of job, a tenth of the code of all studies.
    fn run_jobs(&self, jobs: usize, work: &(dyn Fn(usize) + Sync)) -> Result<(), JobsError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.workers.get())
            .build()
            .map_err(|error| JobsError::Workers(error.to_string()))?;
        let done = Mutex::new(0);
        let stop = StopRequest::current();
        (self.progress)(StageProgress {
            done: 0,
            total: jobs,
        });
        let tracked = |at: usize| {
            if stop.is_requested() {
                return Err(JobsError::Stopped);
            }
            stop.scope(|| work(at));
            // Progress is called under the lock, so that it never runs backwards.
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            *done += 1;
            let done = *done;
            (self.progress)(StageProgress { done, total: jobs });
            Ok(())
        };
        // Jobs differ in length by orders of magnitude, so no worker takes several at once.
        let numbers = (0..jobs).into_par_iter().with_max_len(1);
        pool.install(|| numbers.try_for_each(tracked))
    }
}

thread_local! {
    /// The request that concerns what this thread does now.
    static CURRENT: RefCell<StopRequest> = RefCell::default();
}

/// A request to stop, which runs look at between quanta and jobs. Clones are one request.
///
/// Runs inside [`StopRequest::scope`], also those on the workers of an [`ExperimentContext`], end with
/// an error soon after a call of [`StopRequest::request`]. Outside any scope there are no requests.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<AtomicBool>);

impl StopRequest {
    /// Stops what runs in the scope.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True after [`StopRequest::request`].
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does work that this request can stop.
    pub fn scope<R>(&self, work: impl FnOnce() -> R) -> R {
        let outer = CURRENT.with(|current| current.replace(self.clone()));
        let result = work();
        CURRENT.with(|current| current.replace(outer));
        result
    }

    /// The request of the scope that this thread is in.
    pub(crate) fn current() -> Self {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Returns an error if the scope that this thread is in is to stop.
    pub(crate) fn check() -> Result<(), ExperimentError> {
        match CURRENT.with(|current| current.borrow().is_requested()) {
            true => Err(ExperimentError::Stopped),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use crate::{ExperimentContext, JobsError, Scale, StageProgress};

    #[test]
    fn results_keep_order_with_any_workers() {
        let jobs: Vec<u64> = (0..100).collect();
        for count in [1, 2, 7] {
            let context = ExperimentContext::new(1, Scale::Full, workers(count), &|_| ());
            let squares = context.map(&jobs, |job| job * job).unwrap();
            assert!(squares.iter().zip(&jobs).all(|(s, j)| *s == j * j));
        }
    }

    #[test]
    fn results_are_computed_once_failures_again() {
        let shared = SharedResults::default();
        let context = |seed| {
            ExperimentContext::new(seed, Scale::Quick, workers(1), &|_| ())
                .with_shared_results(&shared)
        };
        let failing =
            context(1).get_or_compute("a", || Err::<u64, _>(JobsError::Workers("no".to_owned())));
        assert!(failing.is_err());
        let mut made = 0;
        for (name, seed) in [("a", 1), ("a", 1), ("a", 2), ("b", 1), ("a", 2)] {
            let got = context(seed).get_or_compute(name, || {
                made += 1;
                Ok::<_, JobsError>(seed)
            });
            assert_eq!(*got.unwrap(), seed);
        }
        assert_eq!(made, 3);
    }

    #[test]
    fn progress_counts_every_job_upwards() {
        let seen = Mutex::new(Vec::new());
        let note = |progress: StageProgress| seen.lock().unwrap().push(progress);
        let context = ExperimentContext::new(1, Scale::Quick, workers(3), &note);
        context.map(&[(); 20], |()| ()).unwrap();
        let counts: Vec<usize> = seen.lock().unwrap().iter().map(|p| p.done).collect();
        assert_eq!(counts, (0..=20).collect::<Vec<_>>());
        assert!(seen.lock().unwrap().iter().all(|p| p.total == 20));
        assert_eq!(context.by_scale(2, 10), 2);
    }

    #[test]
    fn stop_ends_only_runs_of_its_scope() {
        let stop = StopRequest::default();
        let ask_after_two = |at: StageProgress| {
            if at.done == 2 {
                stop.request();
            }
        };
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &ask_after_two);
        let jobs: Vec<u64> = (0..100).collect();
        let stopped = stop.scope(|| context.map(&jobs, |_| StopRequest::check().is_ok()));
        assert!(matches!(stopped, Err(JobsError::Stopped)));
        assert!(stop.scope(|| StopRequest::check().is_err()));
        assert!(StopRequest::check().is_ok());
        assert_eq!(
            context.map(&jobs, |job| *job).map(|all| all.len()).ok(),
            Some(100)
        );
    }
}
