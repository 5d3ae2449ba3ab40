//! The mask that a thread had before Consort touched it.

use super::affinity::Mask;
use consort_core::PuSet;

/// A mask to which a thread is put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginalMask {
    /// The PUs that the thread could run on.
    pub pus: PuSet,
    /// True if these were all that its cpuset allowed: nobody had pinned it, so it follows the
    /// cpuset when that grows.
    pub open: bool,
}

impl OriginalMask {
    /// Takes a mask as original, and compares it with the PUs that the cpuset allows at the time.
    pub(crate) fn new(pus: PuSet, allowed: &PuSet) -> Self {
        let open = allowed.is_subset(&pus);
        Self { pus, open }
    }

    /// The mask to write in order to come back to it.
    pub(crate) fn mask(&self) -> Mask {
        if self.open {
            Mask::Open
        } else {
            Mask::Only(self.pus.clone())
        }
    }

    /// The mask that is read back once it is written, under the cpuset of the moment.
    pub(crate) fn effective_pus(&self, allowed: &PuSet) -> PuSet {
        if self.open {
            allowed.clone()
        } else {
            effective_mask(&self.pus, allowed)
        }
    }

    /// The part of a wish that lies within the original mask.
    pub(crate) fn clip_pus(&self, wanted: &PuSet) -> PuSet {
        if self.open {
            wanted.clone()
        } else {
            wanted.intersection(&self.pus)
        }
    }
}

/// Effect of a mask under a cpuset, as the kernel has it: the common PUs, or the whole cpuset where
/// there are none.
pub(crate) fn effective_mask(mask: &PuSet, allowed: &PuSet) -> PuSet {
    let common = mask.intersection(allowed);
    if common.is_empty() {
        allowed.clone()
    } else {
        common
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::PuId;
    use proptest::prelude::*;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    #[test]
    fn an_unpinned_thread_follows_its_cpuset() {
        let original = OriginalMask::new(set("0-3"), &set("0-3"));
        assert_eq!(original.mask(), Mask::Open);
        assert_eq!(original.effective_pus(&set("0-7")), set("0-7"));
        assert_eq!(original.clip_pus(&set("6")), set("6"));
    }

    #[test]
    fn a_pinned_thread_stays_within_its_mask() {
        let original = OriginalMask::new(set("0-1"), &set("0-3"));
        assert_eq!(original.mask(), Mask::Only(set("0-1")));
        assert_eq!(original.effective_pus(&set("0-7")), set("0-1"));
        assert_eq!(original.effective_pus(&set("5-7")), set("5-7"));
        assert_eq!(original.clip_pus(&set("1-2")), set("1"));
    }

    proptest! {
        #[test]
        fn nothing_is_effective_outside_the_cpuset(
            mask in prop::collection::vec(0u32..12, 1..6),
            allowed in prop::collection::vec(0u32..12, 1..6),
        ) {
            let pus = |v: Vec<u32>| v.into_iter().map(PuId).collect::<PuSet>();
            let (mask, allowed) = (pus(mask), pus(allowed));
            let result = effective_mask(&mask, &allowed);
            prop_assert!(!result.is_empty() && result.is_subset(&allowed));
        }
    }
}
