//! Which PUs a cgroup's cpuset allows.
//!
//! Usage: [`cpuset()`] for this process, [`Hierarchies::cpuset_of`] for any thread
//! whose `cgroup` file the caller has read.

mod cpuset;
mod membership;
mod mountinfo;

pub use cpuset::CgroupVersion;
pub(crate) use cpuset::{Hierarchies, Place, cpuset, membership_text};
