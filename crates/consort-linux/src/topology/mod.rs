//! Topology, allowed PUs and identity of the host, from sysfs and procfs.
//!
//! Usage: [`discover()`] once at the start, [`PuLimitWatch::poll`] once per quantum, and [`discover()`]
//! again when that reports a change. Every reader takes the root that `/sys` and `/proc` are below:
//! `/` for the host, another directory in containers and tests.
//!
//! Pitfalls: missing files are normal; each assumption in their place is noted in
//! [`TopologyDiscovery::notes`]. [`TopologyDiscovery::topology`] holds only the PUs that may be used, so a core may
//! show fewer PUs than it has; [`TopologyDiscovery::machine`] has them all. Hypervisors may show a topology
//! that is not the hardware's.

mod allowed;
mod caches;
mod core_types;
mod cores;
mod cpuinfo;
mod discover;
mod draw;
mod groups;
mod hypervisor;
mod identity;
mod isolated;
mod nodes;
mod notes;
mod partition;
mod pu_topology;
mod pus;
mod watch;

pub use crate::cgroup::CgroupVersion;
pub use allowed::UsablePus;
pub(crate) use caches::caches;
pub use caches::{CacheKind, DiscoveredCache};
pub use core_types::CoreTypeSource;
pub use discover::{
    DiscoveryError, TopologyDiscovery, core_type_members, discover, discover_with_affinity,
};
pub use draw::draw;
pub use hypervisor::{Hypervisor, hypervisor};
pub use identity::{CpuIdentity, IdentityGroup, identities};
pub use nodes::NumaNode;
pub(crate) use pus::{is_online, online_pus};
pub use watch::{PuLimitWatch, PuLimits};
