//! The freezer's files in each version of cgroups.
//!
//! Version 1 has a freezer controller (Linux
//! `Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst`), version 2 a freezer in each cgroup
//! (Linux `Documentation/admin-guide/cgroup-v2.rst`, "cgroup.freeze" and "cgroup.events"; since
//! Linux 5.2).
//!
//! Pitfalls: in version 1 the state reads FREEZING between request and standstill, and is brought
//! up to date by reading it; a frozen process cannot even be killed. In version 2 the root cgroup
//! has neither file.

use crate::cgroup::CgroupVersion;
use crate::read;
use std::path::Path;

/// The version 1 controller that a version's freezer needs; version 2 needs none.
pub(super) fn controller(version: CgroupVersion) -> Option<&'static str> {
    match version {
        CgroupVersion::V1 => Some("freezer"),
        CgroupVersion::V2 => None,
    }
}

/// Names and values of the freezer's files in one version of cgroups.
#[derive(Clone, Copy)]
pub(super) struct FreezerFiles {
    /// The file that takes requests.
    pub request: &'static str,
    pub freeze: &'static str,
    pub thaw: &'static str,
    /// Returns true if all processes in the cgroup of this directory stand still.
    pub is_frozen: fn(&Path) -> bool,
}

impl FreezerFiles {
    /// The files of a version.
    pub(super) fn from_version(version: CgroupVersion) -> Self {
        match version {
            CgroupVersion::V1 => Self {
                request: "freezer.state",
                freeze: "FROZEN",
                thaw: "THAWED",
                is_frozen: |dir| {
                    read::text(&dir.join("freezer.state")).as_deref() == Some("FROZEN")
                },
            },
            CgroupVersion::V2 => Self {
                request: "cgroup.freeze",
                freeze: "1",
                thaw: "0",
                is_frozen: |dir| {
                    let events = read::text(&dir.join("cgroup.events")).unwrap_or_default();
                    events.lines().any(|line| line == "frozen 1")
                },
            },
        }
    }
}
