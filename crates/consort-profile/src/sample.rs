//! The windows of a recording that make its profile.

use std::collections::BTreeMap;

use consort_ops::trace::TraceSampling;

use crate::interval::ThreadInterval;
use crate::recorder::{RecordedPart, WindowPlan};

/// Windows that were recorded, as far as they stay when the program continues: with a growing
/// distance, windows that do not fit the new one are dropped.
#[derive(Debug)]
pub(crate) struct WindowSample {
    plan: WindowPlan,
    /// Number of the last window that was entered.
    last: Option<u64>,
    /// Windows that may still be dropped, by number: what each thread did in them.
    open: BTreeMap<u64, Vec<(usize, ThreadInterval)>>,
}

impl WindowSample {
    /// `None` if everything is recorded.
    pub(crate) fn new(extent: RecordedPart) -> Option<Self> {
        let plan = WindowPlan::new(extent)?;
        Some(Self {
            last: plan.begins_with_window().then_some(0),
            plan,
            open: BTreeMap::new(),
        })
    }

    /// True if the first instructions are in a window.
    pub(crate) fn begins_with_window(&self) -> bool {
        self.plan.begins_with_window()
    }

    /// Records that a thread entered a window; threads report windows in any order.
    pub(crate) fn enter_window(&mut self, number: u64) {
        self.last = self.last.max(Some(number));
    }

    /// Adds what a thread did in a window. Returns the windows that certainly stay, in order.
    pub(crate) fn add_window(
        &mut self,
        number: u64,
        thread: usize,
        ended: ThreadInterval,
    ) -> Vec<(u64, usize, ThreadInterval)> {
        self.open.entry(number).or_default().push((thread, ended));
        let reached = self.plan.locate_window(self.last.unwrap_or(number));
        self.open
            .retain(|number, _| self.plan.keeps(self.plan.locate_window(*number), reached));
        match self.plan.is_final(reached) {
            true => self.take_kept(),
            false => Vec::new(),
        }
    }

    /// Takes the windows that stay if the program ends here, in order.
    pub(crate) fn take_kept(&mut self) -> Vec<(u64, usize, ThreadInterval)> {
        let open = std::mem::take(&mut self.open).into_iter();
        let threads = open.flat_map(|(number, threads)| {
            let numbered = move |(thread, ended)| (number, thread, ended);
            threads.into_iter().map(numbered)
        });
        threads.collect()
    }

    /// Number of windows that stay.
    pub(crate) fn windows(&self) -> u64 {
        self.last.map_or(0, |last| self.plan.kept_windows(last))
    }

    /// Distance and length of the windows; `None` if they are all that was executed.
    pub(crate) fn sampling(&self) -> Option<TraceSampling> {
        let last = self.plan.locate_window(self.last.unwrap_or(0));
        self.plan.sampling(last)
    }
}
