//! Ranking of the threads that take part, by FPU usage.

use super::PlaceHistory;
use crate::ids::ThreadId;
use crate::plan::Fact;
use crate::policy::View;
use crate::sample::ThreadObservation;
use crate::signal::Signal;
use std::borrow::Cow;

/// Factor by which a thread that already has a place leads one of equal activity that has none, so
/// that equal threads do not take turns if CPUs are short.
const INCUMBENT_ACTIVITY: f64 = 1.1;

/// An active thread with the values that it is ranked by.
#[derive(Clone, Debug)]
pub(super) struct RankedThread<'a> {
    pub(super) thread: &'a ThreadObservation,
    /// FPU usage, 0 to 1.
    pub(super) fp_usage: f64,
    /// Share of one CPU in the last interval.
    cpu_share: f64,
    /// Place in the ranking, from 1; 0 while it has none.
    rank: usize,
    /// Number of ranked threads.
    ranked: usize,
}

impl RankedThread<'_> {
    pub(super) fn id(&self) -> ThreadId {
        self.thread.id
    }

    pub(super) fn rank_text(&self) -> String {
        match self.rank {
            0 => "not ranked".to_owned(),
            rank => format!("rank {rank} of {} by FPU usage", self.ranked),
        }
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        let fact = |name: &'static str, value| Fact {
            name: name.into(),
            value,
            unit: "".into(),
        };
        vec![
            fact("fp usage", self.fp_usage),
            fact("share of a CPU", self.cpu_share),
        ]
    }
}

/// The threads that take part, most FPU-heavy first, and all others, with the reason.
pub(super) struct Ranking<'a> {
    pub(super) ranked: Vec<RankedThread<'a>>,
    pub(super) left: Vec<(RankedThread<'a>, Cow<'static, str>)>,
}

impl<'a> Ranking<'a> {
    /// Ranks the most active threads, as many as there are CPUs.
    pub(super) fn new(view: View<'a>, active: f64, margin: f64, history: &PlaceHistory) -> Self {
        let (mut ranked, mut left) = (Vec::new(), Vec::new());
        for thread in view.observation.managed_threads() {
            let usage = thread.sample.get(Signal::FpUsage);
            let candidate = RankedThread {
                thread,
                fp_usage: usage.unwrap_or(0.0),
                cpu_share: view.observation.cpu_share(thread),
                rank: 0,
                ranked: 0,
            };
            if let Some(why) = view.observation.reason_to_leave(thread, active) {
                left.push((candidate, why));
            } else if usage.is_none() {
                left.push((candidate, "its FPU usage is not known yet".into()));
            } else {
                ranked.push(candidate);
            }
        }
        let mut ranking = Self { ranked, left };
        ranking.keep_most_active(view.topology.pus().len(), history);
        ranking.sort_by_usage(margin, history);
        ranking
    }

    fn keep_most_active(&mut self, pus: usize, history: &PlaceHistory) {
        let activity = |c: &RankedThread<'_>| {
            let placed = history.group(c.id()).is_some();
            c.thread.sample.activity() * if placed { INCUMBENT_ACTIVITY } else { 1.0 }
        };
        self.ranked.sort_by(|a, b| {
            let by_activity = activity(b).total_cmp(&activity(a));
            by_activity.then(a.id().cmp(&b.id()))
        });
        for candidate in self.ranked.split_off(self.ranked.len().min(pus)) {
            let why = "busier threads occupy all CPUs";
            self.left.push((candidate, why.into()));
        }
    }

    /// Sorts by FPU usage. A thread keeps the lead that its group gave it in the last quantum
    /// against one that is ahead by less than `margin` per group.
    fn sort_by_usage(&mut self, margin: f64, history: &PlaceHistory) {
        let groups = self.ranked.iter().filter_map(|c| history.group(c.id()));
        let last = groups.map(|g| g.index).max().unwrap_or(0);
        let usage = |c: &RankedThread<'_>| {
            let group = history.group(c.id());
            c.fp_usage + group.map_or(0.0, |g| margin * (last - g.index) as f64)
        };
        self.ranked
            .sort_by(|a, b| usage(b).total_cmp(&usage(a)).then(a.id().cmp(&b.id())));
        let ranked = self.ranked.len();
        for (i, candidate) in self.ranked.iter_mut().enumerate() {
            candidate.rank = i + 1;
            candidate.ranked = ranked;
        }
    }
}
