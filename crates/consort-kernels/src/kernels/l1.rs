//! `l1`: a chase through half of the level-1 data cache.

use super::chase::Chase;
use crate::kernel::{ExpectedClass, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "l1",
    summary: "dependent loads that hit the level-1 data cache",
    stresses: "load latency of level 1",
    class: ExpectedClass::Memory,
    seats: |setup| Chase::builders(setup, setup.caches.l1d_bytes / 2),
};
