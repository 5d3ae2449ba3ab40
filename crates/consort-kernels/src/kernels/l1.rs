//! `l1`: a chase through half of the level-1 data cache.

use super::chase::Chase;
use crate::kernel::{Class, Entry};

pub(crate) const ENTRY: Entry = Entry {
    name: "l1",
    summary: "dependent loads that hit the level-1 data cache",
    stresses: "load latency of level 1",
    class: Class::Memory,
    seats: |setup| Chase::seats(setup, setup.caches.l1d_bytes / 2),
};
