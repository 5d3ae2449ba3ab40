//! Spinning threads on four cores of two ways, placed by the kernel alone.

use crate::support::LIMIT;
use consort_vmtest::GuestTools;
use consort_vmtest::spread::{
    Measurement, MeasurementExtent, SpinnerArrival, SpreadCounts, ThreadSpread, document,
};
use std::num::NonZeroU64;
use std::path::Path;

const REPETITIONS: u64 = 5;
const EARLY_MS: u64 = 0;
const LATE_MS: u64 = 300;
/// The least part of repetitions that end as the kernel means them to. Hundreds of repetitions
/// all did (`consort-sim`'s `data/linux-placements.toml`); a host that starves the guest may spoil
/// a few.
const SETTLED_SHARE: f64 = 0.6;

#[test]
fn idle_cores_are_taken_first_and_then_idle_pus() {
    let Some(host) = GuestTools::find_or_skip() else {
        return;
    };
    let extent = MeasurementExtent {
        guests: NonZeroU64::MIN,
        repetitions: REPETITIONS,
        threads: vec![2, 4, 6, 8],
        after_ms: vec![EARLY_MS, LATE_MS],
        limit: LIMIT,
    };
    let program = Path::new(env!("CARGO_BIN_EXE_linux-placements"));
    let measurement = Measurement::take(&host, program, extent).unwrap();
    check_all_counted(&measurement);
    check_settled(&measurement);
    check_document(&measurement, &host);
}

/// Asserts that every repetition is there once for each moment, with all of its threads on CPUs of
/// the guest.
fn check_all_counted(measurement: &Measurement) {
    let tally = &measurement.tally.counts;
    let kinds = measurement.extent.threads.len() * SpinnerArrival::ALL.len();
    assert_eq!(tally.len(), kinds * measurement.extent.after_ms.len());
    for ((threads, ..), counts) in tally {
        assert_eq!(counts.repetitions(), REPETITIONS);
        let mut spreads = counts.spreads.keys();
        assert!(spreads.all(|spread| spread.threads() == *threads));
    }
}

/// Asserts that in the end no thread shares a CPU, nor a core while there are enough.
fn check_settled(measurement: &Measurement) {
    let late = |(key, _): &(&(usize, SpinnerArrival, u64), &SpreadCounts)| key.2 == LATE_MS;
    for ((threads, arrival, _), counts) in measurement.tally.counts.iter().filter(late) {
        let alone = if *threads <= 4 {
            counts.share(|spread| !spread.shares_core())
        } else {
            counts.share(|spread| !spread.shares_pu())
        };
        assert!(alone >= SETTLED_SHARE, "{threads} {arrival}: {counts:?}");
    }
}

/// The document holds the same counts.
fn check_document(measurement: &Measurement, host: &GuestTools) {
    let text = document(measurement, host).unwrap();
    let document: toml::Table = text.parse().unwrap();
    let placements = document["placements"].as_array().unwrap();
    let tally = measurement.tally.counts.values();
    for (table, counts) in placements.iter().zip(tally) {
        let written = table["counts"].as_table().unwrap();
        assert_eq!(written.len(), counts.spreads.len());
        let same = |(spread, &count): (&ThreadSpread, &u64)| {
            written[&spread.to_string()].as_integer() == i64::try_from(count).ok()
        };
        assert!(counts.spreads.iter().all(same), "{table:?}");
    }
    assert_eq!(document["migrations"].as_array().unwrap().len(), 8);
}
