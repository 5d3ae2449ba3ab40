//! Results and their mechanism in words, from what was measured.

use crate::frame::Frame;
use crate::studies::output::join;
use crate::study::Frames;
use consort_core::stats::{RatioInterval, mean};
use consort_data::Cell;
use consort_sim::contention::CpiStack;

/// Share of the pipes in use from which operations wait for each other longer than half of their
/// service (M/D/1 on one pipe), percent.
const CROWDED: f64 = 50.0;
/// Causes that are named for a change.
const NAMED: usize = 3;
/// Position of the policy that the notes are about.
const WORKOVER: usize = 1;

/// A case of a frame, whose policies are linux, workover and, of pairs, aggregate.
#[derive(Clone, Copy)]
struct OccupancyFrameCase<'a> {
    frame: &'a Frame,
    case: usize,
}

/// Notes on the experiments `once` and `equal`.
pub(in crate::studies) fn notes(frames: &Frames) -> Vec<String> {
    let cases = |name: &str| {
        let frame = frames.get(name);
        let numbers = 0..frame.map_or(0, |frame| frame.cases.len());
        numbers.filter_map(move |case| frame.map(|frame| OccupancyFrameCase { frame, case }))
    };
    let mut notes: Vec<String> = cases("once").map(OccupancyFrameCase::time).collect();
    for case in cases("equal") {
        notes.extend([case.throughput(), case.pipes()]);
        let classes = case.classes();
        notes.extend(classes.filter_map(|(class, name)| case.cycles(class, name)));
    }
    notes
}

/// A measure of some runs over that of others, run by run.
fn ratio_text(ours: &[f64], theirs: &[f64]) -> String {
    let ratio = RatioInterval::from_pairs(ours, theirs);
    ratio.map_or_else(|| "-".to_owned(), |ratio| Cell::from(ratio).text())
}

impl<'a> OccupancyFrameCase<'a> {
    fn key(self) -> &'a str {
        &self.frame.cases[self.case].key
    }

    /// Name of a policy, without its options.
    fn name(self, policy: usize) -> &'a str {
        let name = &self.frame.policies[policy];
        name.split_once(':').map_or(name, |(name, _)| name)
    }

    fn others(self) -> impl Iterator<Item = usize> {
        (0..self.frame.policies.len()).filter(|policy| *policy != WORKOVER)
    }

    fn values(self, policy: usize, measure: &str) -> &'a [f64] {
        self.frame.run_values(self.case, policy, measure)
    }

    /// Mean over runs of a measure of a class.
    fn class_mean(self, policy: usize, measure: &str, class: usize) -> Option<f64> {
        let runs = self.frame.program_values(self.case, policy, measure);
        mean(
            &runs
                .iter()
                .map(|classes| classes[class])
                .collect::<Vec<_>>(),
        )
    }

    fn classes(self) -> impl Iterator<Item = (usize, &'a String)> {
        self.frame.cases[self.case].programs.iter().enumerate()
    }

    /// Sentence on each program run once: the class that is done first, and the time until all are
    /// done.
    fn time(self) -> String {
        let others = join(self.others(), |policy| {
            let [theirs, ours] = [policy, WORKOVER].map(|p| self.values(p, "makespan_s"));
            let longer = ratio_text(theirs, ours);
            format!("{} needs {longer} times workover's", self.name(policy))
        });
        let ends = join(self.classes(), |(class, name)| {
            let end = self
                .class_mean(WORKOVER, "end_s", class)
                .unwrap_or(f64::NAN);
            format!("the last of class '{name}' ends after {end:.0} s")
        });
        format!(
            "{}, each program once: of the time until all have finished {others}. Under workover \
             {ends}.",
            self.key(),
        )
    }

    /// The policy that crowds FPUs most: like with like, if it is run.
    fn worst(self) -> usize {
        if self.frame.policies.len() > 2 { 2 } else { 0 }
    }

    fn throughput(self) -> String {
        let ratios = join(self.others(), |over| {
            let [ours, theirs] = [WORKOVER, over].map(|p| self.values(p, "stp"));
            format!("{} times {}'s", ratio_text(ours, theirs), self.name(over))
        });
        format!(
            "{}, equal work: workover's system throughput is {ratios}.",
            self.key()
        )
    }

    fn pipes(self) -> String {
        let share = |policy, measure| mean(self.values(policy, measure)).unwrap_or(f64::NAN);
        let policies = join(0..self.frame.policies.len(), |policy| {
            format!(
                "{:.0} % (idlest {:.0} %) under {}",
                share(policy, "fpu_busiest_percent"),
                share(policy, "fpu_idlest_percent"),
                self.name(policy),
            )
        });
        let name = self.name(self.worst());
        let meaning = if share(self.worst(), "fpu_busiest_percent") > CROWDED {
            format!("under {name} threads compete for more than half of them")
        } else {
            format!(
                "even under {name} the pipes have room, so that spreading FPU-heavy threads frees \
                 no unit that they wait for"
            )
        };
        format!(
            "{}, equal work: on the busiest core at each moment the FPU's pipes are in use to \
             {policies}: {meaning}.",
            self.key(),
        )
    }

    /// Change of a class's cycles from one extreme of placement to the other.
    fn cycles(self, class: usize, name: &str) -> Option<String> {
        let from = self.worst();
        let cpi = |policy, measure: &str| self.class_mean(policy, measure, class);
        let changes = CpiStack::NAMES.into_iter().map(|cause| {
            let measure = format!("cpi_{cause}");
            Some((cause, cpi(WORKOVER, &measure)? - cpi(from, &measure)?))
        });
        let mut changes: Vec<(&str, f64)> = changes.collect::<Option<_>>()?;
        changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let named = changes.iter().take(NAMED);
        Some(format!(
            "{}, equal work: from {} to workover the cycles per instruction of class '{name}' go \
             from {:.4} to {:.4}, by cause mostly {}.",
            self.key(),
            self.name(from),
            cpi(from, "cpi")?,
            cpi(WORKOVER, "cpi")?,
            join(named, |(cause, by)| format!("{cause} {by:+.4}")),
        ))
    }
}
