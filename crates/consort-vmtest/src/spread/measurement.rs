//! The host's side: boots the guests, reads their snapshots and counts them.

use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::guest_topology::GuestTopology;
use crate::spread::snapshot::parse_snapshots;
use crate::spread::tally::SpreadTally;
use crate::vm::Vm;
use consort_core::topology::Topology;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

const PROGRAM: &str = "/bin/linux-placements";

/// Extent of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementExtent {
    /// Guests to boot one after another, so that what differs between boots is in the counts too.
    pub guests: NonZeroU64,
    /// Repetitions of every number of threads and arrival in each guest.
    pub repetitions: u64,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Moments of snapshots, rising, ms of the guest after the last thread was started.
    pub after_ms: Vec<u64>,
    /// Time for one guest, of the host.
    pub limit: Duration,
}

/// A guest's report of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestIdentity {
    /// The kernel's release and version (`uname -rv`).
    pub kernel: String,
    /// Year, month and day, UTC.
    pub date: String,
}

/// Outcome of the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Extent of the measurement.
    pub extent: MeasurementExtent,
    /// The last guest.
    pub guest: GuestIdentity,
    /// The counts of all guests.
    pub tally: SpreadTally,
}

impl Measurement {
    /// The machine that all guests show: four cores of two ways.
    #[must_use]
    pub fn topology() -> GuestTopology {
        GuestTopology::smt(4, 2)
    }

    /// Measures. `program` is `linux-placements`, which is put into the guests.
    ///
    /// # Errors
    /// A guest cannot be run or answers with something else than snapshots.
    pub fn take(
        host: &GuestTools,
        program: &Path,
        extent: MeasurementExtent,
    ) -> Result<Self, VmError> {
        let topology = Self::topology().topology()?;
        let inside = format!(
            "linux-placements inside {} {} {}",
            extent.repetitions,
            list(&extent.threads),
            list(&extent.after_ms)
        );
        let vm = guest(Self::topology(), program, &inside)?;
        let mut tally = SpreadTally::default();
        let mut guest = GuestIdentity::run(&vm, host, extent.limit, &topology, &mut tally)?;
        for _ in 1..extent.guests.get() {
            guest = GuestIdentity::run(&vm, host, extent.limit, &topology, &mut tally)?;
        }
        Ok(Self {
            extent,
            guest,
            tally,
        })
    }
}

impl GuestIdentity {
    /// Runs one guest and adds its snapshots.
    fn run(
        vm: &Vm,
        host: &GuestTools,
        limit: Duration,
        topology: &Topology,
        tally: &mut SpreadTally,
    ) -> Result<Self, VmError> {
        let outcome = vm.run(host, limit)?;
        tally.add(topology, &parse_snapshots(outcome.output("looks")?)?);
        Ok(Self {
            kernel: outcome.output("kernel")?.to_owned(),
            date: outcome.output("date")?.to_owned(),
        })
    }
}

/// A guest that prints its kernel and date and then runs the measurement `inside`.
fn guest(topology: GuestTopology, program: &Path, inside: &str) -> Result<Vm, VmError> {
    Ok(Vm::new(topology)
        .program(PROGRAM, program)?
        .command("kernel", "uname -rv")
        .command("date", "date -u +%Y-%m-%d")
        .command("looks", inside))
}

fn list(numbers: &[impl ToString]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(",")
}

/// Extent of a measurement of ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndsExtent {
    /// The machine that the guests show. As many processes start as it has CPUs.
    pub topology: GuestTopology,
    /// Guests to boot one after another, each with its own draw of the processes that end.
    pub guests: NonZeroU64,
    /// Repetitions in each guest.
    pub repetitions: u64,
    /// Moments of snapshots, rising, ms of the guest after the last signal to a process that ends.
    pub after_ms: Vec<u64>,
    /// Time for one guest, of the host.
    pub limit: Duration,
}

/// Outcome of a measurement of ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndsMeasurement {
    /// Extent of the measurement.
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
    /// A guest cannot be run or answers with something else than snapshots.
    pub fn take(host: &GuestTools, program: &Path, extent: EndsExtent) -> Result<Self, VmError> {
        let mut tally = SpreadTally::default();
        let mut run = |seed| {
            let topology = extent.topology.topology()?;
            let inside = format!(
                "linux-placements inside-ends {} {} {} {seed}",
                extent.repetitions,
                extent.topology.pus(),
                list(&extent.after_ms),
            );
            let vm = guest(extent.topology, program, &inside)?;
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
