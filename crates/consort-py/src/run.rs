//! Long calls, which release the interpreter lock and react to signals.

use crate::failure::Failure;
use consort_experiment::StopRequest;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time between looks for signals.
const EVERY: Duration = Duration::from_millis(20);
/// Time that work has to stop. After it Python continues in any case, and work that has not stopped
/// ends by itself.
const GRACE: Duration = Duration::from_millis(500);

/// Does work on a thread of its own while this one checks for signals: Python runs handlers of
/// signals only on its main thread, which would otherwise be blocked until the work is done.
///
/// # Errors
/// Those of `work`; what a handler of a signal raised, for example `KeyboardInterrupt`.
pub(crate) fn interruptible<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&StopRequest) -> Result<R, Failure> + Send + 'static,
) -> PyResult<R> {
    let (send, mut receive) = channel();
    let stop = StopRequest::default();
    let requested = stop.clone();
    let started = thread::Builder::new()
        .name("consort".to_owned())
        .spawn(move || {
            // After an interruption the receiver is gone, and the result is of no use.
            let _ = send.send(requested.scope(|| work(&requested)));
        });
    started.map_err(|error| Failure::run(format!("cannot start a thread: {error}")))?;
    loop {
        let (received, again) = py.detach(move || (receive.recv_timeout(EVERY), receive));
        receive = again;
        match received {
            Ok(result) => return Ok(result?),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::run("the run ended without a result").into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupted) = py.check_signals() {
            stop.request();
            py.detach(move || receive.recv_timeout(GRACE).is_ok());
            return Err(interrupted);
        }
    }
}

/// Worker threads: the given number, else as many as there are CPUs.
pub(crate) fn workers(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    let all = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    jobs.unwrap_or_else(all)
}
