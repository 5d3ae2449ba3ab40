//! The unit in which `/proc` counts time.

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use std::time::Duration;

/// Length of a clock tick (`USER_HZ`, 100 per second on every architecture in use), ns.
pub(crate) fn tick_ns() -> u64 {
    let per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_s = per_s.and_then(|n| u64::try_from(n).ok());
    1_000_000_000 / per_s.filter(|&n| n > 0).unwrap_or(100)
}

/// Clock ticks since boot: the clock of threads' start times.
pub(crate) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
    let now_ns = now.map_or(0, |now| now.as_nanos());
    u64::try_from(now_ns / u128::from(tick_ns())).unwrap_or(u64::MAX)
}
