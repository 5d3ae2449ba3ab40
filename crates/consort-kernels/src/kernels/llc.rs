//! `llc`: a chase through a part of the last-level cache.
//!
//! All threads together use half of it, at most 64 MiB (a VM rarely holds all
//! of the cache that it reports), but each at least twice the level-2 cache.
//! Where level 2 is the last level this is a second `dram`-like chase of twice
//! that size.

use super::chase::{Chase, share_bytes};
use crate::kernel::{Class, Entry};

pub(crate) const ENTRY: Entry = Entry {
    name: "llc",
    summary: "dependent loads that miss level 2 and hit the last-level cache",
    stresses: "the last-level cache",
    class: Class::Memory,
    seats: |setup| {
        let caches = setup.caches;
        let total = (caches.llc_bytes / 2).min(64 << 20);
        Chase::seats(
            setup,
            share_bytes(total, setup.threads, 2 * caches.l2_bytes),
        )
    },
};
