//! `dram`: a chase through memory well beyond the last-level cache.
//!
//! All threads together use four times that cache, at most 256 MiB, but each
//! at least 4 MiB.

use super::chase::{Chase, share_bytes};
use crate::kernel::{Class, Entry};

pub(crate) const ENTRY: Entry = Entry {
    name: "dram",
    summary: "dependent loads that miss all caches (256 MiB at most for all threads together)",
    stresses: "memory latency",
    class: Class::Memory,
    seats: |setup| {
        let total = setup.caches.llc_bytes.saturating_mul(4);
        Chase::seats(setup, share_bytes(total, setup.threads, 4 << 20))
    },
};
