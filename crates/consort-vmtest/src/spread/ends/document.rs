//! A measurement of ends as a table of the TOML document that placements are in.

use crate::error::VmError;
use crate::host::Host;
use crate::spread::document::{rounded, texts};
use crate::spread::ends::measurement::Ends;
use crate::spread::tally::Counts;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Document<'a> {
    ends: [Table<'a>; 1],
}

#[derive(Serialize)]
struct Table<'a> {
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
    looks: Vec<Moment>,
}

#[derive(Serialize)]
struct Moment {
    after_ms: u64,
    repetitions: u64,
    mean_elapsed_ms: f64,
    counts: BTreeMap<String, u64>,
}

/// The table `[[ends]]`, to be put at the end of the document of placements.
///
/// # Errors
/// Where qemu does not tell its version or the numbers cannot be written as TOML.
pub fn ends_document(ends: &Ends, host: &Host) -> Result<String, VmError> {
    let topology = ends.extent.topology;
    let table = Table {
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
        looks: looks(ends),
    };
    Ok(toml::to_string(&Document { ends: [table] })?)
}

fn looks(ends: &Ends) -> Vec<Moment> {
    let counts = ends.tally.counts.iter();
    let moment = |(&(_, _, after_ms), counts): (&_, &Counts)| Moment {
        after_ms,
        repetitions: counts.repetitions(),
        mean_elapsed_ms: rounded(counts.elapsed_us as f64 / 1e3 / counts.repetitions() as f64),
        counts: texts(counts),
    };
    counts.map(moment).collect()
}
