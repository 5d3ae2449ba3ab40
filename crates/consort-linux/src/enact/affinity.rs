//! `sched_getaffinity(2)` and `sched_setaffinity(2)` for masks of any size.
//!
//! Pitfall: the kernel remembers the mask that was requested and applies it again when a cpuset grows
//! (`user_cpus_ptr`, since Linux 6.2). So a thread that was not pinned gets [`Mask::Open`] back, never
//! a list of the CPUs that happened to be allowed.

use consort_core::{MAX_PU, PuId, PuSet};
use nix::errno::Errno;
use nix::libc;

type MaskWord = libc::c_ulong;
const WORD_BITS: usize = MaskWord::BITS as usize;
/// Words for 1,024 CPUs, which suffice on nearly every kernel.
const FIRST_WORDS: usize = 1024 / WORD_BITS;
const MOST_WORDS: usize = (MAX_PU as usize + 1) / WORD_BITS;

/// A mask to write for a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Every CPU that the cpuset allows, now and later.
    Open,
    /// These CPUs; the kernel leaves out the ones that the cpuset forbids.
    Only(PuSet),
}

/// The CPUs that a thread may run on: its mask without offline CPUs.
pub(crate) fn get(tid: u32) -> Result<PuSet, Errno> {
    let pid = kernel_tid(tid)?;
    let mut words = FIRST_WORDS;
    loop {
        let mut mask: Vec<MaskWord> = vec![0; words];
        // SAFETY: pointer and size describe a live buffer that is borrowed exclusively.
        let result = unsafe {
            libc::sched_getaffinity(pid, size_of_val(&mask[..]), mask.as_mut_ptr().cast())
        };
        match Errno::result(result) {
            // The kernel refuses a buffer that is shorter than its own masks.
            Err(Errno::EINVAL) if words < MOST_WORDS => words *= 4,
            read => return read.map(|_| from_words(&mask)),
        }
    }
}

/// A mask in the kernel's form, so that nothing has to be done between two writes.
#[derive(Debug)]
pub(crate) struct MaskWords(Vec<MaskWord>);

impl MaskWords {
    pub(crate) fn from_mask(mask: &Mask) -> Self {
        Self(match mask {
            Mask::Open => vec![MaskWord::MAX; MOST_WORDS],
            Mask::Only(pus) => to_words(pus),
        })
    }
}

/// Writes a thread's mask.
pub(crate) fn set(tid: u32, mask: &Mask) -> Result<(), Errno> {
    set_words(tid, &MaskWords::from_mask(mask))
}

/// Writes a thread's mask, which was prepared.
pub(crate) fn set_words(tid: u32, MaskWords(words): &MaskWords) -> Result<(), Errno> {
    let pid = kernel_tid(tid)?;
    // SAFETY: pointer and size describe a live, initialised buffer that the kernel only reads.
    let result =
        unsafe { libc::sched_setaffinity(pid, size_of_val(&words[..]), words.as_ptr().cast()) };
    Errno::result(result).map(drop)
}

/// Binds the calling thread to one CPU, whatever its number.
///
/// # Errors
/// `EINVAL` if the CPU is offline or the cpuset forbids it.
pub fn bind_calling_thread(pu: PuId) -> Result<(), Errno> {
    let tid = nix::unistd::gettid().as_raw().cast_unsigned();
    set(tid, &Mask::Only(pu.into()))
}

/// Converts a tid for the kernel; refuses 0, which is no thread's tid and would mean the caller.
fn kernel_tid(tid: u32) -> Result<libc::pid_t, Errno> {
    match libc::pid_t::try_from(tid) {
        Ok(tid) if tid > 0 => Ok(tid),
        _ => Err(Errno::ESRCH),
    }
}

/// Reads the CPUs out of the words of a mask. It visits only set bits, because it runs for every
/// thread in every quantum and most words are 0.
fn from_words(words: &[MaskWord]) -> PuSet {
    let mut pus = PuSet::new();
    for (index, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            let bit = index * WORD_BITS + left.trailing_zeros() as usize;
            if let Ok(pu) = u32::try_from(bit) {
                pus.insert(PuId(pu));
            }
            left &= left - 1;
        }
    }
    pus
}

fn to_words(pus: &PuSet) -> Vec<MaskWord> {
    let mut words: Vec<MaskWord> = vec![0; FIRST_WORDS];
    for PuId(pu) in pus.iter() {
        let bit = pu as usize;
        if words.len() <= bit / WORD_BITS {
            words.resize(bit / WORD_BITS + 1, 0);
        }
        words[bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
    }
    words
}

/// A mask to which a thread is put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginalMask {
    /// The CPUs that the thread could run on.
    pub pus: PuSet,
    /// True if these were all CPUs that its cpuset allowed: the thread was not pinned, so it
    /// follows the cpuset when that grows.
    pub open: bool,
}

impl OriginalMask {
    /// Takes a mask as original, and compares it with the CPUs that the cpuset allows at the time.
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

/// Effect of a mask under a cpuset in the kernel: the common CPUs, or the whole cpuset if there are
/// none.
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
    use proptest::prelude::*;

    #[test]
    fn tid_zero_is_refused() {
        assert_eq!(get(0), Err(Errno::ESRCH));
        assert_eq!(set(0, &Mask::Open), Err(Errno::ESRCH));
        assert_eq!(get(u32::MAX), Err(Errno::ESRCH));
    }

    #[test]
    fn a_thread_can_be_narrowed_and_opened_again() {
        let checked = std::thread::spawn(|| {
            let tid = nix::unistd::gettid().as_raw() as u32;
            let before = get(tid).unwrap();
            let one = PuSet::from(before.first().unwrap());
            set(tid, &Mask::Only(one.clone())).unwrap();
            assert_eq!(get(tid).unwrap(), one);
            set(tid, &Mask::Open).unwrap();
            assert!(before.is_subset(&get(tid).unwrap()));
        });
        checked.join().unwrap();
    }

    proptest! {
        #[test]
        fn words_hold_exactly_the_members(pus in prop::collection::btree_set(0u32..5000, 0..40)) {
            let set: PuSet = pus.into_iter().map(PuId).collect();
            prop_assert_eq!(from_words(&to_words(&set)), set);
        }
    }
}

#[cfg(test)]
mod original_mask_tests {
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
