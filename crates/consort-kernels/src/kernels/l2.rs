//! `l2`: a chase through half of the level-2 cache, or twice the level-1 data
//! cache where that is more.

use super::chase::Chase;
use crate::kernel::{ExpectedClass, KernelEntry};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "l2",
    summary: "dependent loads that miss level 1 and hit the level-2 cache",
    stresses: "the level-2 cache",
    class: ExpectedClass::Memory,
    seats: |setup| {
        let caches = setup.caches;
        Chase::builders(setup, (caches.l2_bytes / 2).max(2 * caches.l1d_bytes))
    },
};
