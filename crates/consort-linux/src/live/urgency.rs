//! Being on time at quanta of a few milliseconds.
//!
//! Threads that fill every PU are what Consort is for, and a fair scheduler lets whoever wakes up
//! wait for its share: with 16 busy threads on 2 PUs turns came after 60 ms instead of 4 (Linux
//! 6.18). So for short quanta Consort takes the lowest real-time priority where it may
//! (`sched(7)`, "SCHED_FIFO"; root or CAP_SYS_NICE). How long it can keep others waiting is bounded
//! by the pace: turns take at most a fifth of one PU.
//!
//! Pitfall: to be called when the command has been launched, and with `SCHED_RESET_ON_FORK`, so
//! that nobody inherits the priority.

use nix::errno::Errno;
use nix::libc;
use std::time::Duration;

/// Quanta from this length on can bear some lateness.
const SHORT: Duration = Duration::from_millis(50);
/// The lowest: whoever else is real-time goes first.
const PRIORITY: libc::c_int = 1;

/// Lets this thread run when it wakes up, if quanta are short and it may.
pub(super) fn be_on_time(quantum: Duration) {
    if quantum >= SHORT {
        return;
    }
    if let Err(errno) = take_priority() {
        // Not an error: the report tells how long quanta were.
        tracing::debug!("no real-time priority for quanta of {quantum:?}: {errno}");
    }
}

fn take_priority() -> Result<(), Errno> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: the kernel reads the parameters through a pointer that is valid for the call; 0 is
    // the calling thread.
    let answer = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    Errno::result(answer).map(drop)
}
