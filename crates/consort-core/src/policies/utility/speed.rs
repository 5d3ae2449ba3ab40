//! Speed of a thread on a large core over that on a small one.

use super::super::asymmetric::{LogicalCore, LogicalCoreGroup};
use crate::ids::ThreadId;
use std::collections::BTreeMap;

/// The ratio of a thread that has not been on both kinds of cores of late. It is high, so that
/// such a thread comes to be measured.
const UNKNOWN_RATIO: f64 = 2.0;

/// Work done on one kind of core, recent work counting most.
#[derive(Clone, Copy, Debug, Default)]
struct CoreKindWork {
    instructions: f64,
    ns: f64,
}

impl CoreKindWork {
    fn rate(self) -> Option<f64> {
        (self.instructions > 0.0 && self.ns > 0.0).then(|| self.instructions / self.ns)
    }

    fn halve_counts(&mut self) {
        self.instructions *= 0.5;
        self.ns *= 0.5;
    }
}

/// Work of each thread on large and on small cores.
#[derive(Debug, Default)]
pub(super) struct ThreadSpeeds {
    stays: BTreeMap<ThreadId, [CoreKindWork; 2]>,
    /// Large/small ratio when the last quantum ended, of threads that were on both. It holds for a
    /// quantum: renewed at every interval, the refill after an exchange lowered it at once, and
    /// threads were exchanged back and forth (seen in runs of ocean.cont, not foreseen).
    ratios: BTreeMap<ThreadId, f64>,
}

impl ThreadSpeeds {
    /// Adds an interval.
    pub(super) fn add_interval(&mut self, groups: &[LogicalCoreGroup<'_>]) {
        for group in groups {
            group.large.iter().for_each(|seat| self.add_core(seat, 0));
            group.small.iter().for_each(|seat| self.add_core(seat, 1));
        }
    }

    fn add_core(&mut self, seat: &LogicalCore<'_>, kind: usize) {
        for ran in &seat.ran {
            let stay = &mut self.stays.entry(ran.thread).or_default()[kind];
            stay.instructions += ran.progress;
            stay.ns += ran.cpu_ns;
        }
    }

    /// Ends a quantum: finds the ratios for the next, in which all earlier work weighs half as
    /// much.
    pub(super) fn end_quantum(&mut self) {
        let ratio = |[large, small]: [CoreKindWork; 2]| Some(large.rate()? / small.rate()?);
        let stays = self.stays.iter();
        self.ratios = stays
            .filter_map(|(thread, stays)| Some((*thread, ratio(*stays)?)))
            .collect();
        let all = self.stays.values_mut().flatten();
        all.for_each(CoreKindWork::halve_counts);
    }

    /// The part of a thread's time on a small core that a large one takes away, 0 to 1.
    pub(super) fn gain(&self, thread: ThreadId) -> f64 {
        let known = self.ratios.get(&thread).copied();
        (1.0 - 1.0 / known.unwrap_or(UNKNOWN_RATIO)).max(0.0)
    }
}

#[cfg(test)]
impl ThreadSpeeds {
    /// Rates on large and small cores, instructions per ns.
    pub(super) fn set(&mut self, thread: ThreadId, large: f64, small: f64) {
        let stay = |instructions| CoreKindWork {
            instructions,
            ns: 1.0,
        };
        self.stays.insert(thread, [stay(large), stay(small)]);
        self.end_quantum();
    }
}
