//! Masks of threads, as a guest has shown them.

use crate::error::VmError;
use consort_core::PuSet;

/// One thread of the workload and its affinity mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMask {
    /// Process id.
    pub program: u32,
    /// Thread id.
    pub tid: u32,
    /// The thread's name; `fp-0` is thread 0 of the `fp` kernel.
    pub comm: String,
    /// PUs that it may run on (`Cpus_allowed_list`).
    pub mask: PuSet,
}

impl ThreadMask {
    /// Says whether the thread runs the floating-point kernel.
    #[must_use]
    pub fn is_fp(&self) -> bool {
        self.comm.starts_with("fp-")
    }
}

/// Reads the lines `thread PID TID MASK COMM` of a section and passes over all others.
///
/// # Errors
/// [`VmError::ThreadLine`] for a line that begins with `thread` and then goes wrong.
pub fn thread_masks(section: &str) -> Result<Vec<ThreadMask>, VmError> {
    let lines = section.lines().filter(|line| line.starts_with("thread "));
    lines
        .map(|line| parse(line).ok_or_else(|| VmError::ThreadLine(line.to_owned())))
        .collect()
}

/// Reads one line; the name comes last because it may hold spaces.
fn parse(line: &str) -> Option<ThreadMask> {
    let mut fields = line.splitn(5, ' ').skip(1);
    Some(ThreadMask {
        program: fields.next()?.parse().ok()?,
        tid: fields.next()?.parse().ok()?,
        mask: fields.next()?.parse().ok()?,
        comm: fields.next()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::PuId;
    use proptest::prelude::*;

    #[test]
    fn lines_of_threads_are_read_and_others_passed_over() {
        let masks =
            thread_masks("polls 3\nthread 12 13 0-1,4 fp-0\nthread 20 20 7 my name\n").unwrap();
        assert_eq!(masks.len(), 2);
        assert_eq!((masks[0].program, masks[0].tid), (12, 13));
        assert_eq!(masks[0].mask.to_string(), "0-1,4");
        assert!(masks[0].is_fp());
        assert_eq!(masks[1].comm, "my name");
        assert!(!masks[1].is_fp());
    }

    #[test]
    fn a_broken_line_is_an_error_that_shows_it() {
        let error = thread_masks("thread 12 x 0-1 fp-0").unwrap_err();
        assert_eq!(
            error.to_string(),
            "'thread 12 x 0-1 fp-0' is not 'thread PID TID MASK COMM'"
        );
        assert!(thread_masks("thread 1 1 3-1 fp-0").is_err());
        assert!(thread_masks("thread 1 1 3").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(program: u32, tid: u32, comm in "[a-z0-9 -]{1,15}", pus in prop::collection::btree_set(0u32..300, 1..20)) {
            let mask: PuSet = pus.into_iter().map(PuId).collect();
            let line = format!("thread {program} {tid} {mask} {comm}");
            prop_assert_eq!(thread_masks(&line).unwrap(), vec![ThreadMask { program, tid, comm, mask }]);
        }
    }
}
