//! Control groups: the PUs that their cpusets allow, their files, and the rules by which they are
//! managed.
//!
//! Usage: `cpuset()` for this process, `CpusetHierarchies::cpuset_of` for any thread
//! whose `cgroup` file the caller has read, `Hierarchy` for the directory of a
//! cgroup that is to be written, `CpuLimits` for limits of CPU time.

mod cpu_limit;
mod cpuset;
mod directory;
mod kernel_text;
mod members;
mod rules;
mod walk;

pub use cpu_limit::CpuLimit;
pub(crate) use cpu_limit::{CpuLimits, read_limit};
pub use cpuset::CgroupVersion;
pub(crate) use cpuset::{CgroupCpuset, CpusetHierarchies, CpusetLocation, cpuset, membership_text};
pub(crate) use directory::Hierarchy;
pub(crate) use kernel_text::{cgroups_of, decode, escape_for_display, text_of_file};
pub use rules::{CgroupPattern, CgroupPatternError, CgroupRule, CgroupRules};
pub(crate) use rules::{GroupSearch, ProgramGroup};
