//! The freezer of cgroup version 2 (Linux `Documentation/admin-guide/cgroup-v2.rst`,
//! "cgroup.freeze" and "cgroup.events"; since Linux 5.2).
//!
//! Pitfall: the root cgroup has neither file.

use super::frozen::Files;
use crate::read;

pub(super) const FILES: Files = Files {
    request: "cgroup.freeze",
    freeze: "1",
    thaw: "0",
    is_frozen: |dir| {
        let events = read::text(&dir.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "frozen 1")
    },
};
