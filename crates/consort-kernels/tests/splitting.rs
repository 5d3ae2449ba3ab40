//! The promise of `Kernel::work`: how units are divided among calls does not
//! matter, and an undisturbed kernel has its expected checksum.

#![expect(clippy::panic, reason = "tests may fail loudly, their helpers too")]

mod skip;

use consort_kernels::caches::CacheSizes;
use consort_kernels::{Kernel, KernelEntry, KernelError, KernelSetup, kernels};
use proptest::prelude::*;
use skip::skipped;

/// Small caches make small regions, so that tests are quick.
fn setup() -> KernelSetup {
    KernelSetup {
        caches: CacheSizes {
            l1d_bytes: 1 << 14,
            l2_bytes: 1 << 16,
            llc_bytes: 1 << 18,
        },
        ..KernelSetup::default()
    }
}

/// The kernel, or the reason why this host cannot have it.
fn build(entry: &KernelEntry) -> Option<Box<dyn Kernel>> {
    match entry.build_one(&setup()) {
        Ok(kernel) => Some(kernel),
        Err(error @ (KernelError::Unsupported { .. } | KernelError::Mapping { .. })) => {
            skipped(error);
            None
        }
        Err(error) => panic!("{}: {error}", entry.name),
    }
}

/// All kernels but `phases`, whose checksum follows the clock (its own unit test gives it one).
fn entries() -> impl Iterator<Item = &'static KernelEntry> {
    kernels::REGISTRY.iter().filter(|e| e.name != "phases")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn splitting_units_changes_nothing(parts in prop::collection::vec(0_u64..6, 0..5)) {
        for entry in entries() {
            let (Some(mut split), Some(mut whole)) = (build(entry), build(entry)) else {
                continue;
            };
            for units in &parts {
                split.work(*units);
            }
            let checksum = whole.work(parts.iter().sum());
            prop_assert_eq!(split.work(0), checksum, "{}", entry.name);
            prop_assert_eq!(whole.expected(), checksum, "{}", entry.name);
        }
    }
}

#[test]
fn expected_holds_beyond_one_period() {
    let units = consort_kernels::PERIOD + 3;
    for entry in entries().filter(|e| !matches!(e.name, "sleeper" | "barrier")) {
        if let Some(mut kernel) = build(entry) {
            assert_eq!(kernel.work(units), kernel.expected(), "{}", entry.name);
        }
    }
}

#[test]
fn every_unit_changes_the_checksum() {
    for entry in kernels::REGISTRY {
        if let Some(mut kernel) = build(entry) {
            let before = kernel.work(1);
            assert_ne!(before, kernel.work(1), "{}", entry.name);
        }
    }
}

#[test]
fn names_are_unique_and_fit_a_thread_name() {
    for (i, entry) in kernels::REGISTRY.iter().enumerate() {
        assert_eq!(kernels::find(entry.name).unwrap().summary, entry.summary);
        assert!(kernels::REGISTRY[..i].iter().all(|e| e.name != entry.name));
        assert!(entry.name.len() <= 10, "room for `-9999` in 15 bytes");
    }
}

#[test]
fn there_is_a_seat_for_every_thread() {
    for threads in [0, 1, 3] {
        let setup = KernelSetup { threads, ..setup() };
        for entry in kernels::REGISTRY {
            assert_eq!(
                entry.builders(&setup).len(),
                threads.max(1),
                "{}",
                entry.name
            );
        }
    }
}
