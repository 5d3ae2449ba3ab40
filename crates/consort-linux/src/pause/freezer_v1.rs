//! The freezer controller of cgroup version 1
//! (Linux `Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst`).
//!
//! Pitfalls: between request and standstill the state reads FREEZING, and it is brought up to
//! date by reading it; a frozen process cannot even be killed.

use super::frozen::Files;
use crate::read;

pub(super) const FILES: Files = Files {
    request: "freezer.state",
    freeze: "FROZEN",
    thaw: "THAWED",
    is_frozen: |dir| read::text(&dir.join("freezer.state")).as_deref() == Some("FROZEN"),
};
