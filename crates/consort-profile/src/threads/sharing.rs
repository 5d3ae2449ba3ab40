//! Lines that several threads use.

use std::collections::HashMap;

use consort_ops::{Op, OpKind};

/// Bits of an address within a line.
const LINE_SHIFT: u32 = 6;
/// Lines of a thread that are known to be recorded already.
const RECENT: usize = 512;
/// Threads that are distinguished; a thread beyond them counts as one of them.
const TOLD_APART: usize = 64;

/// Lines of 64 bytes by how many threads used them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SharedLines {
    /// Lines that at least one thread used.
    pub lines: u64,
    /// Lines that at least two threads used.
    pub by_several: u64,
    /// Lines of `by_several` that at least one thread wrote to.
    pub written: u64,
    /// Share of a thread's lines that all threads would have to use for as many lines in all: of
    /// threads that use `f` lines in sum and `u` together, (f − u) / (f − m), with `m` the mean
    /// lines of a thread, weighted by them.
    pub by_all: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct LineUsers {
    any: u64,
    writers: u64,
}

#[derive(Debug, Clone, Default)]
struct LineUseTable {
    users: HashMap<u64, LineUsers>,
    /// Recorded lines per thread, with a bit for written ones. It saves most look-ups in `users`.
    recent: Vec<Vec<u64>>,
}

impl LineUseTable {
    fn record_use(&mut self, thread: usize, line: u64, writes: bool) {
        while self.recent.len() <= thread {
            self.recent.push(vec![u64::MAX; RECENT]);
        }
        let reported = line << 1 | u64::from(writes);
        let recent = &mut self.recent[thread][line as usize % RECENT];
        if *recent == reported || *recent == reported | 1 {
            return;
        }
        *recent = reported;
        let users = self.users.entry(line).or_default();
        let bit = 1 << (thread % TOLD_APART);
        users.any |= bit;
        users.writers |= u64::from(writes) * bit;
    }

    fn shared_lines(&self) -> SharedLines {
        let lines = self.users.len() as u64;
        let is_shared = |users: &&LineUsers| users.any.count_ones() > 1;
        let by_several = || self.users.values().filter(is_shared);
        SharedLines {
            lines,
            by_several: by_several().count() as u64,
            written: by_several().filter(|users| users.writers != 0).count() as u64,
            by_all: self.shared_by_all(),
        }
    }

    fn shared_by_all(&self) -> f64 {
        let used = |thread: usize| {
            let by = |users: &&LineUsers| users.any >> thread & 1 == 1;
            self.users.values().filter(by).count() as f64
        };
        let used: Vec<f64> = (0..TOLD_APART).map(used).collect();
        let all: f64 = used.iter().sum();
        let mean = used.iter().map(|used| used * used).sum::<f64>() / all.max(1.0);
        if all - mean < 1.0 {
            return 0.0;
        }
        ((all - self.users.len() as f64) / (all - mean)).clamp(0.0, 1.0)
    }
}

/// Counts lines while there are several threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharingMeter {
    data: LineUseTable,
    code: LineUseTable,
}

impl SharingMeter {
    pub(crate) fn add_op(&mut self, thread: usize, op: &Op) {
        if op.first {
            self.code
                .record_use(thread, op.address >> LINE_SHIFT, false);
        }
        if let Some(data) = &op.data {
            let last = data.address + u64::from(data.bytes.max(1)) - 1;
            for line in data.address >> LINE_SHIFT..=last >> LINE_SHIFT {
                self.data.record_use(thread, line, op.kind == OpKind::Store);
            }
        }
    }

    pub(crate) fn data(&self) -> SharedLines {
        self.data.shared_lines()
    }

    pub(crate) fn code(&self) -> SharedLines {
        self.code.shared_lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Access;

    fn touch(sharing: &mut SharingMeter, thread: usize, line: u64, kind: OpKind) {
        let mut op = Op::new(kind, 0x1000 + thread as u64 * 64);
        op.data = Some(Access {
            address: line << LINE_SHIFT,
            bytes: 8,
            is_vector: false,
        });
        sharing.add_op(thread, &op);
    }

    /// Threads with as many lines of their own and in common.
    fn shared(threads: usize, own: u64, common: u64) -> SharingMeter {
        let mut sharing = SharingMeter::default();
        for thread in 0..threads {
            let base = (1 + thread as u64) << 20;
            (0..own).for_each(|line| touch(&mut sharing, thread, base + line, OpKind::Store));
            (0..common).for_each(|line| touch(&mut sharing, thread, line, OpKind::Load));
        }
        sharing
    }

    #[test]
    fn common_share_is_right() {
        for threads in [2, 4] {
            let data = shared(threads, 3000, 1000).data();
            assert!((data.by_all - 0.25).abs() < 1e-9, "{data:?}");
            assert_eq!((data.by_several, data.written), (1000, 0));
            assert_eq!(data.lines, 3000 * threads as u64 + 1000);
        }
    }

    #[test]
    fn one_write_marks_a_shared_line_written() {
        let mut sharing = shared(2, 10, 10);
        touch(&mut sharing, 1, 5, OpKind::Load);
        assert_eq!(sharing.data().written, 0);
        touch(&mut sharing, 1, 5, OpKind::Store);
        touch(&mut sharing, 1, 5, OpKind::Load);
        assert_eq!(sharing.data().written, 1);
        assert_eq!(sharing.code().by_several, 0);
        assert_eq!(sharing.code().lines, 2);
    }

    #[test]
    fn one_thread_shares_nothing() {
        assert_eq!(shared(1, 10, 10).data().by_all, 0.0);
        assert_eq!(SharingMeter::default().data(), SharedLines::default());
    }
}
