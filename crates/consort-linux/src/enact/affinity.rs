//! `sched_getaffinity(2)` and `sched_setaffinity(2)` for masks of any size.
//!
//! Pitfall: the kernel remembers the mask that was asked for and applies it
//! again when a cpuset grows (`user_cpus_ptr`, since Linux 6.2). A thread that
//! nobody had pinned therefore gets [`Mask::Open`] back, never a list of the
//! PUs that happened to be allowed.

use consort_core::{MAX_PU, PuId, PuSet};
use nix::errno::Errno;
use nix::libc;

type MaskWord = libc::c_ulong;
const WORD_BITS: usize = MaskWord::BITS as usize;
/// 1,024 PUs: enough for a first try on nearly every kernel.
const FIRST_WORDS: usize = 1024 / WORD_BITS;
const MOST_WORDS: usize = (MAX_PU as usize + 1) / WORD_BITS;

/// A mask to write for a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// Every PU that the cpuset allows, now and later.
    Open,
    /// These PUs; the kernel leaves out those that the cpuset forbids.
    Only(PuSet),
}

/// The PUs that a thread may run on: its mask without offline PUs.
pub(crate) fn get(tid: u32) -> Result<PuSet, Errno> {
    let pid = kernel_tid(tid)?;
    let mut words = FIRST_WORDS;
    loop {
        match get_words(pid, words) {
            Err(Errno::EINVAL) if words < MOST_WORDS => words *= 4,
            other => return other.map(|words| from_words(&words)),
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

/// Binds the calling thread to one PU, whatever its number.
///
/// # Errors
/// `EINVAL` if the PU is offline or the cpuset forbids it.
pub fn bind_calling_thread(pu: PuId) -> Result<(), Errno> {
    let tid = nix::unistd::gettid().as_raw().cast_unsigned();
    set(tid, &Mask::Only(pu.into()))
}

/// Returns a tid as the kernel takes it; refuses 0, which is no thread's tid and would mean the
/// caller.
fn kernel_tid(tid: u32) -> Result<libc::pid_t, Errno> {
    match libc::pid_t::try_from(tid) {
        Ok(tid) if tid > 0 => Ok(tid),
        _ => Err(Errno::ESRCH),
    }
}

fn get_words(pid: libc::pid_t, count: usize) -> Result<Vec<MaskWord>, Errno> {
    let mut words: Vec<MaskWord> = vec![0; count];
    // SAFETY: pointer and size describe a live buffer that is borrowed exclusively.
    let result =
        unsafe { libc::sched_getaffinity(pid, size_of_val(&words[..]), words.as_mut_ptr().cast()) };
    Errno::result(result).map(|_| words)
}

/// Reads the PUs out of the words of a mask. It looks only at bits that are set: this is done for
/// every thread in every quantum, and most words are 0.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nobody_has_tid_zero() {
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
