//! Linux guests with real topologies, for tests that the host's own processor cannot serve.
//!
//! Purpose: a guest under qemu's software emulation shows a real kernel with any number of
//! sockets, cores, SMT ways and NUMA nodes, so that discovery, placement, masks and their
//! restoration are tested on 4-way SMT without owning such a machine.
//!
//! Usage:
//!
//! ```no_run
//! use consort_vmtest::{GuestTools, GuestTopology, Vm};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tools = GuestTools::find()?;
//! let output = Vm::new(GuestTopology::smt(4, 2))
//!     .command("cpus", "cat /sys/devices/system/cpu/online")
//!     .run(&tools, Duration::from_secs(120))?;
//! assert_eq!(output.output("cpus")?, "0-7");
//! # Ok(())
//! # }
//! ```
//!
//! Pitfalls: one host thread emulates all CPUs in turn, so nothing about *time* inside a guest
//! means anything; wait for a state, count polls, never compare durations. There is no PMU. A
//! boot takes about ten seconds: put many commands into one guest. `.ci/install-vm` installs
//! what [`GuestTools::find`] needs.

mod console;
mod error;
mod guest_tools;
mod guest_topology;
mod initramfs;
mod masks;
mod qemu;
mod scenario;
pub mod spread;
mod vm;

pub use console::{GuestOutput, OutputSection};
pub use error::VmError;
pub use guest_tools::{GuestTools, MissingTool, built_program};
pub use guest_topology::GuestTopology;
pub use masks::{
    ThreadMask, check_fp_paired_with_light, check_fp_spread, check_same_masks, thread_masks,
};
pub use scenario::{LoadShare, Scenario, ScenarioKind};
pub use vm::Vm;
