//! Availability of core-scheduling cookies on a host.

use super::core_scheduling::HostCoreScheduling;
use crate::owners;
use nix::errno::Errno;
use serde::Serialize;
use std::path::Path;

/// Availability of cookies, which keep other threads off the cores of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CookieStatus {
    /// True if they can be used.
    pub available: bool,
    /// Effect of cookies, or the obstacle to using them.
    pub reason: String,
}

/// Asks this kernel, and looks below `root` for a scheduler that cookies do not go together with.
pub(crate) fn probe(root: &Path) -> CookieStatus {
    status(HostCoreScheduling.own_cookie(), owners::sched_ext(root))
}

/// Judges cookies. `own` is the cookie of this process; `scheduler` the name of a sched_ext
/// scheduler that is enabled.
fn status(own: Result<u64, Errno>, scheduler: Option<String>) -> CookieStatus {
    let obstacle = match own {
        Err(Errno::EINVAL) => Some(
            "the kernel has no core scheduling (CONFIG_SCHED_CORE, since Linux 5.14)".to_owned(),
        ),
        Err(Errno::ENODEV) => Some("no core has two PUs that are online".to_owned()),
        Err(errno) => Some(format!("the kernel refuses: {errno}")),
        Ok(0) => scheduler.map(|name| {
            format!(
                "sched_ext scheduler {name} is enabled; together with cookies that hangs hosts \
                 with SMT (sched-ext/scx#3715)"
            )
        }),
        Ok(_) => Some(
            "consort was started with a core-scheduling cookie, so somebody else arranges cores \
             here"
                .to_owned(),
        ),
    };
    CookieStatus {
        available: obstacle.is_none(),
        reason: obstacle.unwrap_or_else(|| {
            "whom a plan seats on one core, and nobody else, runs there together".to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_obstacle_is_told() {
        let reason = |own, scheduler: Option<&str>| {
            let status = status(own, scheduler.map(str::to_owned));
            (!status.available).then_some(status.reason)
        };
        assert_eq!(reason(Ok(0), None), None);
        for (own, scheduler, words) in [
            (Err(Errno::EINVAL), None, "CONFIG_SCHED_CORE"),
            (Err(Errno::ENODEV), None, "no core has two PUs"),
            (Err(Errno::EPERM), None, "EPERM"),
            (Ok(7), None, "started with a core-scheduling cookie"),
            (Ok(0), Some("lavd"), "scheduler lavd is enabled"),
        ] {
            let told = reason(own, scheduler).unwrap();
            assert!(told.contains(words), "{told}");
        }
    }
}
