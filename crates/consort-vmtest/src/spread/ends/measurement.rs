//! The host's side: boots the guests, reads their looks and counts them.

use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::guest_topology::GuestTopology;
use crate::spread::measurement::{GuestIdentity, list, vm};
use crate::spread::tally::SpreadTally;
use crate::vm::Vm;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

/// Extent of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndsExtent {
    /// The machine that the guests show. As many processes start as it has PUs.
    pub topology: GuestTopology,
    /// Guests to boot one after another, each with its own draw of who ends.
    pub guests: NonZeroU64,
    /// Repetitions in each guest.
    pub repetitions: u64,
    /// Moments to look at, rising, ms of the guest after the last signal to those that end.
    pub after_ms: Vec<u64>,
    /// Time for one guest, of the host.
    pub limit: Duration,
}

/// Outcome of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndsMeasurement {
    /// Extent that was asked for.
    pub extent: EndsExtent,
    /// The last guest.
    pub guest: GuestIdentity,
    /// The counts of the survivors of all guests.
    pub tally: SpreadTally,
}

impl EndsMeasurement {
    /// Measures. `program` is `linux-placements`, which is put into the guests.
    ///
    /// # Errors
    /// Where a guest cannot be run or answers with something else than looks.
    pub fn take(host: &GuestTools, program: &Path, extent: EndsExtent) -> Result<Self, VmError> {
        let mut tally = SpreadTally::default();
        let mut run = |seed| {
            let topology = extent.topology.topology()?;
            let vm = guest(program, &extent, seed)?;
            GuestIdentity::run(&vm, host, extent.limit, &topology, &mut tally)
        };
        let mut guest = run(0)?;
        for seed in 1..extent.guests.get() {
            guest = run(seed)?;
        }
        Ok(Self {
            extent,
            guest,
            tally,
        })
    }
}

fn guest(program: &Path, extent: &EndsExtent, seed: u64) -> Result<Vm, VmError> {
    let inside = format!(
        "linux-placements inside-ends {} {} {} {seed}",
        extent.repetitions,
        extent.topology.pus(),
        list(&extent.after_ms),
    );
    vm(extent.topology, program, &inside)
}
