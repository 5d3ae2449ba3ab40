//! Walking the records that wait in a ring buffer, as pure code over bytes.
//!
//! The waiting bytes lie in one piece, or in two when they wrap around the end of the buffer; a
//! record may lie across the seam. Whatever the bytes are, the walk ends: an impossible size ends
//! it and drops the rest.

use super::record::{HEADER_BYTES, record_size};

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
