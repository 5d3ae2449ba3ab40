//! `llc`: a chase through a part of the last-level cache.
//!
//! All threads together use half of it, at most 16 MiB (a VM rarely holds all
//! of the cache that it reports, and beyond that page walks dominate), but each
//! at least twice the level-2 cache. Where level 2 is the last level the chase
//! misses it, as `dram` does.

use super::chase::{Chase, share_bytes};
use crate::kernel::{ExpectedClass, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "llc",
    summary: "dependent loads that miss level 2 and hit the last-level cache",
    stresses: "the last-level cache",
    class: ExpectedClass::Memory,
    seats: |setup| {
        let caches = setup.caches;
        let total = (caches.llc_bytes / 2).min(16 << 20);
        Chase::builders(
            setup,
            share_bytes(total, setup.threads, 2 * caches.l2_bytes),
        )
    },
};
