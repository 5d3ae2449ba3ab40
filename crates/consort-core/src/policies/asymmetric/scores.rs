//! The rule that gives the large cores to the threads with the best scores.

use super::logical_core_map::{ActiveThread, LogicalCore, LogicalCoreGroup};
use super::round_robin::RoundRobin;
use super::swapper::{Swap, SwapRule, Tick};
use crate::ids::ThreadId;
use crate::policy::{OptionInfo, PolicyError, PolicyOptions, PolicyRng};
use rand::seq::SliceRandom;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Score of threads: the higher, the sooner a thread gets a large core.
pub(super) trait Score {
    /// Reason why the best gets a large core, as a clause.
    fn reason(&self) -> &'static str;

    /// Records what a thread did in an interval, on a large or a small core.
    fn record_interval(&mut self, ran: &ActiveThread<'_>, on_large: bool);

    /// Updates the scores at the end of a quantum.
    fn end_quantum(&mut self) {}

    /// Forgets exited threads.
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        let _ = is_gone;
    }

    /// A thread's score; `None` before it is known.
    fn thread_score(&self, thread: ThreadId) -> Option<f64>;
}

/// The option that policies with scores have.
pub(super) const MARGIN: OptionInfo = OptionInfo {
    name: "margin",
    default: "0",
    meaning: "share from 0 to 1 by which a score must be better before threads are exchanged",
};

pub(super) fn margin(options: &PolicyOptions<'_>) -> Result<f64, PolicyError> {
    options.share(MARGIN.name)
}

/// Choice among threads with equal scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ties {
    /// The one that has been on small cores longest.
    RoundRobin,
    Random,
}

/// Exchanges, at the end of each quantum, the best logical core on the small cores of a group with
/// the worst on its large ones, if it is better by more than a margin. One exchange is enough,
/// because no group has both several large and several small cores. The score of a logical core is
/// the mean over its active threads. An idle one is worse than any and does not leave a small core.
/// One without a known score stays where it is. Large cores in kernel mode are waited for.
#[derive(Debug)]
pub(super) struct BestScoreRule<S> {
    score: S,
    margin: f64,
    ties: Ties,
    turns: BTreeMap<usize, RoundRobin>,
    /// Groups whose exchanges are still to be decided.
    due: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum LogicalCoreScore {
    Idle,
    Score(f64),
}

impl LogicalCoreScore {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Idle, Self::Idle) => Ordering::Equal,
            (Self::Idle, Self::Score(_)) => Ordering::Less,
            (Self::Score(_), Self::Idle) => Ordering::Greater,
            (Self::Score(a), Self::Score(b)) => a.total_cmp(b),
        }
    }
}

impl<S: Score> BestScoreRule<S> {
    pub(super) fn new(score: S, margin: f64, ties: Ties) -> Self {
        Self {
            score,
            margin,
            ties,
            turns: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    fn core_score(&self, core: &LogicalCore<'_>) -> Option<LogicalCoreScore> {
        if core.active.is_empty() {
            return Some(LogicalCoreScore::Idle);
        }
        let known = core.active.iter();
        let known = known.filter_map(|&t| self.score.thread_score(t));
        let known: Vec<f64> = known.filter(|score| !score.is_nan()).collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        (!known.is_empty()).then_some(LogicalCoreScore::Score(mean))
    }

    /// The ready logical core on a small core with the best score, and that score.
    fn best_small_core(
        &self,
        group: &LogicalCoreGroup<'_>,
        rng: &mut PolicyRng,
    ) -> Option<(usize, f64)> {
        let by_turn = self.turns.get(&group.index)?.small_cores_by_turn(group);
        let mut scored: Vec<(usize, f64)> = Vec::new();
        for core in by_turn.filter(|core| core.is_ready()) {
            if let Some(LogicalCoreScore::Score(score)) = self.core_score(core) {
                scored.push((core.logical, score));
            }
        }
        if self.ties == Ties::Random {
            scored.shuffle(rng);
        }
        // Reversed, because `max_by` takes the last of equals, and the first has the next turn.
        let reversed = scored.into_iter().rev();
        reversed.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn worst_large_core(&self, group: &LogicalCoreGroup<'_>) -> Option<(usize, LogicalCoreScore)> {
        let large = group.large.iter();
        let known = large.filter_map(|core| Some((core.logical, self.core_score(core)?)));
        known.min_by(|a, b| a.1.compare(&b.1))
    }

    fn is_better(&self, score: f64, holder: LogicalCoreScore) -> bool {
        match holder {
            LogicalCoreScore::Idle => true,
            // The absolute value, because scores may be below 0.
            LogicalCoreScore::Score(own) => score > own + self.margin * own.abs(),
        }
    }
}

impl<S: Score> SwapRule for BestScoreRule<S> {
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        self.score.forget(is_gone);
    }

    fn record_interval(&mut self, groups: &[LogicalCoreGroup<'_>], tick: Tick) {
        for group in groups {
            for (cores, on_large) in [(&group.large, true), (&group.small, false)] {
                for ran in cores.iter().flat_map(|core| &core.ran) {
                    self.score.record_interval(ran, on_large);
                }
            }
            if tick.is_quantum {
                self.due.insert(group.index);
            }
        }
        if tick.is_quantum {
            self.score.end_quantum();
        }
    }

    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        _: Tick,
        rng: &mut PolicyRng,
    ) -> Vec<Swap> {
        let turns = self.turns.entry(group.index).or_default();
        turns.update_queues(group);
        // A group whose large core is in the kernel stays due until it has left.
        let waits = group.large.iter().any(LogicalCore::is_in_kernel);
        if waits || !self.due.remove(&group.index) {
            return Vec::new();
        }
        let small = self.best_small_core(group, rng);
        let Some(((small, score), (large, worst))) = small.zip(self.worst_large_core(group)) else {
            return Vec::new();
        };
        if !self.is_better(score, worst) {
            return Vec::new();
        }
        let turns = self.turns.entry(group.index).or_default();
        turns.record_swap(small, large);
        vec![Swap {
            small,
            large,
            why: self.score.reason(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUSY, Bench, Did, IDLE, chip};
    use super::*;

    /// The score is the millions of instructions of the last interval.
    #[derive(Debug, Default)]
    struct Millions(BTreeMap<ThreadId, f64>);

    impl Score for Millions {
        fn reason(&self) -> &'static str {
            "it has done most"
        }

        fn record_interval(&mut self, ran: &ActiveThread<'_>, _: bool) {
            self.0.insert(ran.thread, ran.progress / 1e6);
        }

        fn thread_score(&self, thread: ThreadId) -> Option<f64> {
            self.0.get(&thread).copied()
        }
    }

    fn bench(large: u32, small: u32, llcs: u32, margin: f64) -> Bench<BestScoreRule<Millions>> {
        let rule = BestScoreRule::new(Millions::default(), margin, Ties::RoundRobin);
        Bench::new(chip(large, small, llcs), rule)
    }

    fn did(millions: f64) -> Did {
        Did {
            instructions: millions * 1e6,
            ..BUSY
        }
    }

    /// Two quanta, since what a thread did counts from the first that it began.
    fn after(bench: &mut Bench<BestScoreRule<Millions>>, did: &[Did]) -> Vec<u32> {
        bench.quantum(did);
        bench.quantum(did)
    }

    #[test]
    fn best_small_core_is_exchanged_with_the_large() {
        let of = [1.0, 2.0, 4.0, 3.0].map(did);
        assert_eq!(after(&mut bench(1, 3, 1, 0.0), &of), [2, 1, 0, 3]);
    }

    #[test]
    fn large_core_with_best_score_keeps_its_thread() {
        let of = [4.0, 4.0, 2.0, 3.0].map(did);
        assert_eq!(after(&mut bench(1, 3, 1, 0.0), &of), [0, 1, 2, 3]);
    }

    #[test]
    fn a_score_must_be_better_by_the_margin() {
        // 10 percent of 1 is 0.1: 1.1 is not more than that above 1, 1.2 is.
        let stays = [1.0, 1.1, 0.5, 0.5].map(did);
        assert_eq!(after(&mut bench(1, 3, 1, 0.1), &stays), [0, 1, 2, 3]);
        let goes = [1.0, 1.2, 0.5, 0.5].map(did);
        assert_eq!(after(&mut bench(1, 3, 1, 0.1), &goes), [1, 0, 2, 3]);
    }

    #[test]
    fn of_several_large_cores_the_worst_gives_way() {
        let of = [3.0, 1.0, 2.0].map(did);
        assert_eq!(after(&mut bench(2, 1, 1, 0.0), &of), [0, 2, 1]);
    }

    #[test]
    fn groups_exchange_among_themselves_only() {
        // Cores 0 to 3 are one group and 4 to 7 the other; the best of all are in the first.
        let of = [1.0, 8.0, 9.0, 1.0, 2.0, 1.0, 3.0, 1.0].map(did);
        let after = after(&mut bench(2, 6, 2, 0.0), &of);
        assert_eq!(after, [2, 1, 0, 3, 6, 5, 4, 7]);
    }

    #[test]
    fn scores_are_compared_at_quantum_ends() {
        let of = [1.0, 2.0, 4.0, 3.0].map(did);
        let mut bench = bench(1, 3, 1, 0.0);
        for _ in 0..3 {
            assert_eq!(bench.activity(&of), [0, 1, 2, 3]);
        }
        assert_eq!(bench.quantum(&of), [2, 1, 0, 3]);
    }

    #[test]
    fn idle_large_core_goes_to_the_best() {
        let of = [IDLE, did(1.0), IDLE, did(3.0)];
        assert_eq!(after(&mut bench(1, 3, 1, 0.0), &of), [3, 1, 2, 0]);
    }

    #[test]
    fn cores_in_kernel_are_not_exchanged() {
        let kernel = |millions| Did {
            kernel: true,
            ..did(millions)
        };
        let mut bench = bench(1, 3, 1, 0.0);
        let waits = [kernel(1.0), did(2.0), did(4.0), did(3.0)];
        assert_eq!(after(&mut bench, &waits), [0, 1, 2, 3]);
        // It returns to user mode within the next quantum; the best is in the kernel then.
        let returned = [did(1.0), did(2.0), kernel(4.0), did(3.0)];
        assert_eq!(bench.activity(&returned), [3, 1, 2, 0]);
    }
}
