//! The unit in which `/proc` counts time.

use nix::unistd::{SysconfVar, sysconf};

/// Length of a clock tick (`USER_HZ`, 100 per second on every architecture in use), ns.
pub(crate) fn tick_ns() -> u64 {
    let per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    let per_s = per_s.and_then(|n| u64::try_from(n).ok());
    1_000_000_000 / per_s.filter(|&n| n > 0).unwrap_or(100)
}
