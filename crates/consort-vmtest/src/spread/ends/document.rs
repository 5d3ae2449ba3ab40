//! A measurement of ends as a table of the TOML document that placements are in.

use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::spread::document::{round_to_thousandths, texts};
use crate::spread::ends::measurement::EndsMeasurement;
use crate::spread::tally::SpreadCounts;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct EndsDocument<'a> {
    ends: [EndsTable<'a>; 1],
}

#[derive(Serialize)]
struct EndsTable<'a> {
    kernel: &'a str,
    /// Ticks of the guest per second, where the kernel's configuration is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    tick_hz: Option<u32>,
    qemu: String,
    accelerator: &'static str,
    cores: u32,
    ways: u32,
    date: &'a str,
    guests: u64,
    repetitions_per_guest: u64,
    started: u32,
    looks: Vec<EndsRow>,
}

#[derive(Serialize)]
struct EndsRow {
    after_ms: u64,
    repetitions: u64,
    mean_elapsed_ms: f64,
    counts: BTreeMap<String, u64>,
}

/// The table `[[ends]]`, to be put at the end of the document of placements.
///
/// # Errors
/// Where qemu does not tell its version or the numbers cannot be written as TOML.
pub fn ends_document(ends: &EndsMeasurement, host: &GuestTools) -> Result<String, VmError> {
    let topology = ends.extent.topology;
    let table = EndsTable {
        kernel: &ends.guest.kernel,
        tick_hz: host.tick_hz(),
        qemu: host.qemu_version()?,
        accelerator: crate::qemu::ACCELERATOR,
        cores: topology.sockets * topology.cores,
        ways: topology.threads,
        date: &ends.guest.date,
        guests: ends.extent.guests.get(),
        repetitions_per_guest: ends.extent.repetitions,
        started: topology.pus(),
        looks: moment_rows(ends),
    };
    Ok(toml::to_string(&EndsDocument { ends: [table] })?)
}

fn moment_rows(ends: &EndsMeasurement) -> Vec<EndsRow> {
    let counts = ends.tally.counts.iter();
    let moment = |(&(_, _, after_ms), counts): (&_, &SpreadCounts)| EndsRow {
        after_ms,
        repetitions: counts.repetitions(),
        mean_elapsed_ms: round_to_thousandths(
            counts.elapsed_us as f64 / 1e3 / counts.repetitions() as f64,
        ),
        counts: texts(counts),
    };
    counts.map(moment).collect()
}
