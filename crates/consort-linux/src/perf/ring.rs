//! The ring buffer that the kernel writes an event's records into.
//!
//! The kernel advances `data_head`, the reader `data_tail`. A load-acquire of
//! the head orders the reads of the records behind it; a store-release of the
//! tail orders them before the space is given back (`perf_event_open(2)`,
//! "data_head", and `tools/include/linux/ring_buffer.h`, which says the same).

use super::open::PerfError;
use super::record::{HEADER_BYTES, record_size};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring buffer; unmapped when dropped.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<c_void>,
    page_bytes: usize,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is reachable from any thread of the process.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `data_bytes`, a power of two and a multiple of the page
    /// size, before the event that `fd` names.
    ///
    /// # Errors
    /// [`PerfError::NoMemory`] when `kernel.perf_event_mlock_kb` is used up,
    /// else the kernel's answer.
    pub fn map(fd: impl AsFd, data_bytes: usize) -> Result<Self, PerfError> {
        let page_bytes = page_bytes();
        let len = NonZeroUsize::new(page_bytes + data_bytes).ok_or(PerfError::NoMemory)?;
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choosing touches nothing of ours.
        let mapped = unsafe { mmap(None, len, prot, MapFlags::MAP_SHARED, fd, 0) };
        let base = mapped.map_err(|errno| match errno {
            // Beyond the allowance the kernel answers EPERM, not ENOMEM.
            Errno::EPERM => PerfError::NoMemory,
            other => other.into(),
        })?;
        Ok(Self {
            base,
            page_bytes,
            data_bytes,
        })
    }

    /// Maps the largest ring that the host allows, from `data_bytes` down to one page.
    ///
    /// # Errors
    /// As [`Ring::map`] for the smallest size.
    pub fn map_up_to(fd: impl AsFd, data_bytes: usize) -> Result<Self, PerfError> {
        let mut wanted = data_bytes.next_power_of_two().max(page_bytes());
        loop {
            match Self::map(fd.as_fd(), wanted) {
                Err(PerfError::NoMemory) if wanted > page_bytes() => wanted /= 2,
                mapped_or_not => return mapped_or_not,
            }
        }
    }

    /// Size of the data area, bytes.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Hands out each waiting record and gives its space back.
    pub fn drain(&mut self, each: impl FnMut(&[u8])) -> WalkSummary {
        let head = self.written();
        let (first, second) = self.waiting_bytes(head);
        let walked = walk(first, second, each);
        self.tail().store(head, Ordering::Release);
        walked
    }

    /// Shows each waiting record up to `head`, and leaves all of them where they are.
    pub fn peek(&self, head: u64, each: impl FnMut(&[u8])) {
        let (first, second) = self.waiting_bytes(head);
        walk(first, second, each);
    }

    /// Hands out the records up to `head` until `take` refuses one; those from it on stay.
    pub fn drain_while(&mut self, head: u64, mut take: impl FnMut(&[u8]) -> bool) -> WalkSummary {
        let tail = self.tail().load(Ordering::Relaxed);
        let (first, second) = self.waiting_bytes(head);
        let (mut taken, mut is_open) = (0, true);
        let walked = walk(first, second, |bytes| {
            is_open = is_open && take(bytes);
            if is_open {
                taken += bytes.len() as u64;
            }
        });
        // What could not be walked is dropped, or the next reader would stumble over it again.
        let tail = if is_open { head } else { tail + taken };
        self.tail().store(tail, Ordering::Release);
        walked
    }

    /// The place up to which the kernel has written.
    pub fn written(&self) -> u64 {
        self.head().load(Ordering::Acquire)
    }

    /// The bytes that wait up to `head`, in two pieces when they wrap around.
    fn waiting_bytes(&self, head: u64) -> (&[u8], &[u8]) {
        // Only this reader writes the tail.
        let tail = self.tail().load(Ordering::Relaxed);
        let waiting = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX);
        self.pieces(tail, waiting.min(self.data_bytes))
    }

    /// The `len` bytes from `tail` on, in two pieces when they wrap around.
    fn pieces(&self, tail: u64, len: usize) -> (&[u8], &[u8]) {
        let start = (tail as usize) & (self.data_bytes - 1);
        let first_len = len.min(self.data_bytes - start);
        let data = self.base.as_ptr().cast::<u8>();
        // SAFETY: both pieces lie inside the mapped data area behind the control page, and the
        // kernel does not write between tail and head until the tail is advanced.
        unsafe {
            let data = data.add(self.page_bytes);
            (
                std::slice::from_raw_parts(data.add(start), first_len),
                std::slice::from_raw_parts(data, len - first_len),
            )
        }
    }

    fn control(&self) -> *mut perf_event_mmap_page {
        self.base.as_ptr().cast()
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` and the field is aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` and the field is aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_tail) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `base` and the length are those of the mapping made in `map`; no borrow is left.
        let unmapped = unsafe { munmap(self.base, self.page_bytes + self.data_bytes) };
        debug_assert!(unmapped.is_ok(), "the mapping was ours");
    }
}

/// The host's page size, bytes.
pub(crate) fn page_bytes() -> usize {
    let requested = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let bytes = requested
        .ok()
        .flatten()
        .and_then(|n| usize::try_from(n).ok());
    bytes.unwrap_or(4096)
}

/// Outcome of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkSummary {
    /// Number of records handed out.
    pub records: u64,
    /// Number of bytes dropped from an impossible size on; 0 for a sound buffer.
    pub dropped_bytes: usize,
}

/// Hands out each record of `first` followed by `second`, whole, in order.
pub fn walk(first: &[u8], second: &[u8], mut each: impl FnMut(&[u8])) -> WalkSummary {
    let total = first.len() + second.len();
    let mut walked = WalkSummary::default();
    let mut scratch = Vec::new();
    let mut at = 0;
    while at < total {
        let size = size_at(first, second, at, &mut scratch);
        if size == 0 || at + size > total {
            walked.dropped_bytes = total - at;
            break;
        }
        each(span(first, second, at, size, &mut scratch));
        walked.records += 1;
        at += size;
    }
    walked
}

/// Size of the record at `at`, bytes, or 0 when it is impossible.
fn size_at(first: &[u8], second: &[u8], at: usize, scratch: &mut Vec<u8>) -> usize {
    if at + HEADER_BYTES > first.len() + second.len() {
        return 0;
    }
    record_size(span(first, second, at, HEADER_BYTES, scratch)).unwrap_or(0)
}

/// `len` bytes from `at` on; the caller has checked that they are there.
fn span<'a>(
    first: &'a [u8],
    second: &'a [u8],
    at: usize,
    len: usize,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    let seam = first.len();
    if at + len <= seam {
        return &first[at..at + len];
    }
    if at >= seam {
        return &second[at - seam..at - seam + len];
    }
    scratch.clear();
    scratch.extend_from_slice(&first[at..]);
    scratch.extend_from_slice(&second[..at + len - seam]);
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(HEADER_BYTES + body.len()).unwrap();
        let mut bytes = vec![9, 0, 0, 0, 0, 0];
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    proptest! {
        #[test]
        fn records_come_back_whole_wherever_the_seam_is(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            seam: prop::sample::Index,
        ) {
            let records: Vec<Vec<u8>> = bodies.iter().map(|b| record(b)).collect();
            let all = records.concat();
            let (first, second) = all.split_at(seam.index(all.len() + 1));
            let mut seen = Vec::new();
            let walked = walk(first, second, |r| seen.push(r.to_vec()));
            prop_assert_eq!(walked, WalkSummary { records: records.len() as u64, dropped_bytes: 0 });
            prop_assert_eq!(seen, records);
        }

        #[test]
        fn any_bytes_end_the_walk(
            first in prop::collection::vec(any::<u8>(), 0..200),
            second in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = 0;
            let walked = walk(&first, &second, |r| bytes += r.len());
            prop_assert_eq!(bytes + walked.dropped_bytes, first.len() + second.len());
        }
    }

    #[test]
    fn a_size_of_zero_ends_the_walk() {
        let walked = walk(&[0; 64], &[], |_| panic!("no record here"));
        assert_eq!((walked.records, walked.dropped_bytes), (0, 64));
    }
}
