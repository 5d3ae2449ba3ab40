//! `dram`: a chase through memory well beyond the last-level cache.
//!
//! All threads together use four times that cache, at most 256 MiB, but each
//! at least 4 MiB.

use super::chase::{Chase, share_bytes};
use crate::kernel::{ExpectedClass, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "dram",
    summary: "dependent loads that miss all caches (256 MiB at most for all threads together)",
    stresses: "memory latency",
    class: ExpectedClass::Memory,
    seats: |setup| {
        let total = setup.caches.llc_bytes.saturating_mul(4);
        Chase::builders(setup, share_bytes(total, setup.threads, 4 << 20))
    },
};
