//! Waiting, for a limited time, until a program stands still.

use super::mechanism::PauseMechanism;
use std::time::{Duration, Instant};

/// Longest wait. A program that does not stand still by then is reported: a thread that waits in
/// the kernel for a disk or a server can take any time.
const LIMIT: Duration = Duration::from_millis(200);
/// The limit for a program that has exceeded it before, so that not every pause waits in vain.
const SHORT_LIMIT: Duration = Duration::from_millis(10);
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// Waits until all processes that the mechanism holds stand still; returns false where [`LIMIT`]
/// or, without patience, [`SHORT_LIMIT`] passes first.
pub(super) fn wait_until_still(mechanism: &dyn PauseMechanism, patient: bool) -> bool {
    let begun = Instant::now();
    let limit = if patient { LIMIT } else { SHORT_LIMIT };
    let mut wait = FIRST_WAIT;
    while !mechanism.is_still() {
        if begun.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(wait);
        wait = LONGEST_WAIT.min(wait * 2);
    }
    true
}
