//! Requests to stop, heard by whatever runs long.

use crate::error::ExperimentError;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The request that concerns what this thread does now.
    static CURRENT: RefCell<StopRequest> = RefCell::default();
}

/// A request to stop, which runs look at between quanta and jobs. Clones are one request.
///
/// What runs inside of [`StopRequest::scope`], on the workers of a [`crate::ExperimentContext`] as well, ends with
/// an error soon after a call of [`StopRequest::request`]. Outside of any scope there are no requests.
#[derive(Clone, Debug, Default)]
pub struct StopRequest(Arc<AtomicBool>);

impl StopRequest {
    /// Asks what runs in the scope to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Says whether somebody has asked.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does something that can be asked to stop.
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

    /// Ends a run that was asked to stop.
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
    use crate::Scale;
    use crate::testing::workers;
    use crate::{ExperimentContext, JobsError, StageProgress};

    #[test]
    fn jobs_and_runs_of_the_scope_end_and_others_go_on() {
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
