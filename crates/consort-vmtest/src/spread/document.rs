//! Measurements as TOML, for people and for `consort-sim`.

use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::spread::measurement::{EndsMeasurement, Measurement};
use crate::spread::snapshot::SpinnerArrival;
use crate::spread::tally::SpreadCounts;
use serde::Serialize;
use std::collections::BTreeMap;

/// Comment at the head of the document: the meaning of its numbers and the way to make them again.
const HEADER: &str = "\
# Placements that the Linux kernel makes of spinning threads: measured, not modelled.
#
# Made again by, from the root of the repository (see .ci/install-vm for what it needs):
#   cargo run -p consort-vmtest --bin linux-placements -- measure GUESTS REPETITIONS > FILE
# with the `guests` and `repetitions_per_guest` below. In every guest, each repetition of each
# number of threads and arrival starts threads that spin and never sleep, looks at where they are
# (field 39 of /proc/PID/task/TID/stat) at each moment, and ends them; 100 ms of rest follow. The
# kinds of repetition take turns.
#
# The guests are emulated by one thread of the host. Timing inside means nothing for real
# machines, nor do rates per guest second; which CPU is chosen among those that the kernel sees is
# the real kernel's decision.
#
# arrival: `threads` of one process, created one after another; `processes`, forked one after
# another without exec. after_ms: when it was looked, ms of the guest after the start of the last
# thread; the first is early, the last is late. A placement is written up to symmetry: every core
# as the threads on its CPUs, the fullest CPU first, joined by `|`; cores with the most threads
# first, then those with the fullest CPU, separated by spaces. `1|1 1|0 1|0 0|0`: two threads share
# a core; `2|0 1|0 1|0 0|0`: two share a CPU. Counts are repetitions.
#
# ends, at the end of the file: as many processes as there are CPUs start as above, spin for 300 ms,
# and a random half of them is killed; where the others are is looked at. Each table is made again by
#   cargo run -p consort-vmtest --bin linux-placements -- ends CORES WAYS GUESTS REPETITIONS
# after_ms counts from the last signal; elapsed times are those of the end of the look. Times depend
# on how soon the one host thread of the emulation gets round all CPUs: an order of magnitude.

";

#[derive(Serialize)]
struct SpreadDocument<'a> {
    kernel: &'a str,
    /// Ticks of the guest per second, if the kernel's configuration is at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    tick_hz: Option<u32>,
    qemu: String,
    accelerator: &'static str,
    sockets: u32,
    cores: u32,
    ways: u32,
    date: &'a str,
    guests: u64,
    repetitions_per_guest: u64,
    placements: Vec<PlacementTable>,
    migrations: Vec<Migrations>,
}

#[derive(Serialize)]
struct PlacementTable {
    threads: usize,
    arrival: SpinnerArrival,
    after_ms: u64,
    repetitions: u64,
    mean_elapsed_ms: f64,
    counts: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Migrations {
    threads: usize,
    arrival: SpinnerArrival,
    per_thread_second: f64,
}

/// Returns the document of a measurement.
///
/// # Errors
/// qemu does not print its version, or the numbers cannot be written as TOML.
pub fn document(measurement: &Measurement, host: &GuestTools) -> Result<String, VmError> {
    let topology = Measurement::topology();
    let document = SpreadDocument {
        kernel: &measurement.guest.kernel,
        tick_hz: host.tick_hz(),
        qemu: host.qemu_version()?,
        accelerator: crate::qemu::ACCELERATOR,
        sockets: topology.sockets,
        cores: topology.cores,
        ways: topology.threads,
        date: &measurement.guest.date,
        guests: measurement.extent.guests.get(),
        repetitions_per_guest: measurement.extent.repetitions,
        placements: placements(measurement),
        migrations: migrations(measurement),
    };
    let text = toml::to_string(&document)?;
    Ok(format!("{HEADER}{text}"))
}

fn placements(measurement: &Measurement) -> Vec<PlacementTable> {
    let counts = measurement.tally.counts.iter();
    let table = |(&(threads, arrival, after_ms), counts): (&_, &SpreadCounts)| PlacementTable {
        threads,
        arrival,
        after_ms,
        repetitions: counts.repetitions(),
        mean_elapsed_ms: round_to_thousandths(
            counts.elapsed_us as f64 / 1e3 / counts.repetitions() as f64,
        ),
        counts: texts(counts),
    };
    counts.map(table).collect()
}

fn texts(counts: &SpreadCounts) -> BTreeMap<String, u64> {
    let spreads = counts.spreads.iter();
    spreads
        .map(|(spread, &count)| (spread.to_string(), count))
        .collect()
}

fn migrations(measurement: &Measurement) -> Vec<Migrations> {
    let threads = measurement.extent.threads.iter();
    let kinds = threads.flat_map(|&threads| SpinnerArrival::ALL.map(|arrival| (threads, arrival)));
    let rate = |(threads, arrival)| {
        let rate = measurement
            .tally
            .migrations_per_thread_second(threads, arrival)?;
        Some(Migrations {
            threads,
            arrival,
            per_thread_second: round_to_thousandths(rate),
        })
    };
    kinds.filter_map(rate).collect()
}

/// Rounds to three decimals, which are more than the repetitions support.
fn round_to_thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[derive(Serialize)]
struct EndsDocument<'a> {
    ends: [EndsTable<'a>; 1],
}

#[derive(Serialize)]
struct EndsTable<'a> {
    kernel: &'a str,
    /// Ticks of the guest per second, if the kernel's configuration is at hand.
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

/// Returns the table `[[ends]]`, to be put at the end of the document of placements.
///
/// # Errors
/// qemu does not print its version, or the numbers cannot be written as TOML.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::measurement::{GuestIdentity, MeasurementExtent};
    use crate::spread::snapshot::SpreadSnapshot;
    use crate::spread::tally::SpreadTally;
    use consort_core::PuId;
    use std::num::NonZeroU64;
    use std::time::Duration;

    fn measurement() -> Measurement {
        let look = |after_ms, pus: [u32; 2]| SpreadSnapshot {
            arrival: SpinnerArrival::Processes,
            after_ms,
            elapsed_us: after_ms * 1000 + 1500,
            migrations: after_ms / 100,
            pus: pus.map(PuId).to_vec(),
        };
        let mut tally = SpreadTally::default();
        let topology = Measurement::topology().topology().unwrap();
        tally.add(&topology, &[look(0, [0, 1]), look(200, [0, 2])]);
        let guest = GuestIdentity {
            kernel: "6.1".into(),
            date: "2026-01-01".into(),
        };
        let extent = MeasurementExtent {
            guests: NonZeroU64::MIN,
            repetitions: 1,
            threads: vec![2],
            after_ms: vec![0, 200],
            limit: Duration::ZERO,
        };
        Measurement {
            extent,
            guest,
            tally,
        }
    }

    #[test]
    fn everything_measured_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let host = GuestTools {
            // Prints something and succeeds, whatever its arguments.
            qemu: "/bin/echo".into(),
            busybox: folder.path().join("busybox"),
            kernel: folder.path().join("vmlinuz"),
        };
        std::fs::write(folder.path().join("config"), "# x\nCONFIG_HZ=1000\n").unwrap();
        let text = document(&measurement(), &host).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let expected: toml::Table = "
            tick_hz = 1000
            [[placements]]
            threads = 2
            arrival = 'processes'
            after_ms = 0
            repetitions = 1
            mean_elapsed_ms = 1.5
            counts = { '1|1 0|0 0|0 0|0' = 1 }
            [[placements]]
            threads = 2
            arrival = 'processes'
            after_ms = 200
            repetitions = 1
            mean_elapsed_ms = 201.5
            counts = { '1|0 1|0 0|0 0|0' = 1 }
            [[migrations]]
            threads = 2
            arrival = 'processes'
            per_thread_second = 5.0
        "
        .parse()
        .unwrap();
        assert_eq!(table["tick_hz"], expected["tick_hz"]);
        assert_eq!(table["placements"], expected["placements"]);
        assert_eq!(table["migrations"], expected["migrations"]);
    }
}
