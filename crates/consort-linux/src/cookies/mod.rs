//! Core-scheduling cookies: only threads that a plan has together on one core run there together.
//!
//! Threads on the CPUs of one core run at the same time only if they have the same cookie; a CPU
//! whose core is taken by others idles until they leave (Linux,
//! `Documentation/admin-guide/hw-vuln/core-scheduling.rst`). So the threads of a core get a cookie
//! in common, and all others none. A thread that is alone on its core gets none either: its
//! sibling CPU would idle for nothing.
//!
//! Usage, by the live machine, once per quantum: `look` finds the threads that may be given
//! cookies, `share` gives one to each group of them. `kernel` has the system call, and `status`
//! finds if it can be used here.
//!
//! Every cookie is made by a thread of Consort's that keeps it, and its number is journalled before
//! any other thread gets it. So a restoration can take away every cookie of these numbers, even
//! inherited ones. Children inherit cookies, and an `exec` does not take them away: so the cookie
//! of each thread is read anew in every quantum.
//!
//! Pitfalls: a program that runs with another user's rights keeps the cookie that it has inherited,
//! unless Consort runs as root. While Consort has a cookie itself it can take none away.

mod core_scheduling;
mod groups;

pub(crate) use core_scheduling::{CoreScheduling, HostCoreScheduling};
pub(crate) use groups::{CookieReport, Cookies};

use crate::enact::{Enactor, GuardianHealth, JournalRecord};
use crate::owners;
use consort_core::ThreadId;
use groups::CookieJournal;
use nix::errno::Errno;
use serde::Serialize;
use std::path::Path;

impl CookieJournal for Enactor {
    fn is_there(&self, thread: ThreadId) -> Option<bool> {
        self.is_same(thread)
    }

    fn is_guarded(&mut self) -> bool {
        !matches!(self.ensure_guardian(), GuardianHealth::Missing(_))
    }

    fn journal_cookie(&mut self, cookie: u64) -> Result<(), String> {
        let noted = self.record(&[JournalRecord::Cookie(cookie)]);
        noted.map_err(|error| error.to_string())
    }
}

/// Availability of cookies, which keep other threads off the cores of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CookieStatus {
    /// True if they can be used.
    pub available: bool,
    /// Effect of cookies, or the obstacle to using them.
    pub reason: String,
}

/// Queries this kernel, and looks below `root` for a scheduler that cookies do not go together with.
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
        Err(Errno::ENODEV) => Some("no core has two CPUs that are online".to_owned()),
        Err(errno) => Some(format!("the kernel refuses: {errno}")),
        Ok(0) => scheduler.map(|name| {
            format!(
                "sched_ext scheduler {name} is enabled; together with cookies that hangs hosts \
                 with SMT (sched-ext/scx#3715)"
            )
        }),
        Ok(_) => Some(
            "consort was started with a core-scheduling cookie, so another program arranges cores \
             here"
                .to_owned(),
        ),
    };
    CookieStatus {
        available: obstacle.is_none(),
        reason: obstacle.unwrap_or_else(|| {
            "only threads that a plan seats on one core run there together".to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_obstacle_is_reported() {
        let reason = |own, scheduler: Option<&str>| {
            let status = status(own, scheduler.map(str::to_owned));
            (!status.available).then_some(status.reason)
        };
        assert_eq!(reason(Ok(0), None), None);
        for (own, scheduler, words) in [
            (Err(Errno::EINVAL), None, "CONFIG_SCHED_CORE"),
            (Err(Errno::ENODEV), None, "no core has two CPUs"),
            (Err(Errno::EPERM), None, "EPERM"),
            (Ok(7), None, "started with a core-scheduling cookie"),
            (Ok(0), Some("lavd"), "scheduler lavd is enabled"),
        ] {
            let reported = reason(own, scheduler).unwrap();
            assert!(reported.contains(words), "{reported}");
        }
    }
}
