//! Waiting, but not for ever, until a program stands still.

use super::mechanism::Mechanism;
use std::time::{Duration, Instant};

/// A program that does not stand still by then is reported: a thread that waits in the kernel for
/// a disk or a server can take any time.
const LIMIT: Duration = Duration::from_millis(200);
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// Whether all stand still, now or, with patience, within a fifth of a second.
pub(super) fn wait_until_still(mechanism: &dyn Mechanism, patient: bool) -> bool {
    let begun = Instant::now();
    let mut wait = FIRST_WAIT;
    while !mechanism.is_still() {
        if !patient || begun.elapsed() >= LIMIT {
            return false;
        }
        std::thread::sleep(wait);
        wait = LONGEST_WAIT.min(wait * 2);
    }
    true
}
