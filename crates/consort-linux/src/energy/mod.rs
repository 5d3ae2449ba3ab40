//! Energy as the processor meters it, and the share of it that each thread is given.
//!
//! Purpose: the signal [`EnergyObserver`](consort_core::Signal::Energy) on hosts with RAPL
//! (Intel Software Developer's Manual volume 3B, section 15.10; AMD has the same
//! meters since family 17h), as Linux shows them in `/sys/class/powercap`.
//!
//! Usage: [`probe`] tells whether there is a meter; [`RaplMeter::open`] opens it, and
//! [`RaplMeter::spent_j`] tells the energy spent since the last call. [`EnergyRate`] shares that out among
//! threads by time on PUs.
//!
//! Pitfalls: meters are per package, so a thread's energy is a share by time on PUs, not a
//! measurement: a thread that works hard and one that waits for memory have the same. A counter
//! that wraps around more than once between two readings tells too little; how soon that can happen
//! depends on its range (about a minute on some processors at full power). Since Linux 5.10 only
//! root may read the counters, as they leak secrets (CVE-2020-8694).

mod meter;
mod shares;
mod zones;

pub use meter::RaplMeter;
pub use shares::EnergyRate;
pub(crate) use shares::host_busy_ns;
pub use zones::{EnergyStatus, probe};
