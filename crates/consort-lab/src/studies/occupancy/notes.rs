//! Results and their mechanism in words, from what was measured.

use crate::frame::Frame;
use crate::study::Frames;
use consort_core::stats::{RatioInterval, mean};
use consort_data::Cell;
use consort_sim::contention::CpiStack;

/// Share of the pipes in use from which operations wait for each other longer than half of their
/// service (M/D/1 on one pipe), percent.
const CROWDED: f64 = 50.0;
/// Causes that are named for a change.
const NAMED: usize = 3;
/// The policy that is told of.
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
        let each = 0..frame.map_or(0, |frame| frame.cases.len());
        each.filter_map(move |case| {
            Some(OccupancyFrameCase {
                frame: frame?,
                case,
            })
        })
    };
    let once = cases("once").map(OccupancyFrameCase::time);
    once.chain(cases("equal").flat_map(OccupancyFrameCase::of_case))
        .collect()
}

fn ratio_text(ratio: Option<RatioInterval>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |r| Cell::from(r).text())
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

    fn over(self, policy: usize, measure: &str) -> &'a [f64] {
        self.frame.run_values(self.case, policy, measure)
    }

    /// Values of a class.
    fn of_class(self, policy: usize, measure: &str, class: usize) -> Vec<f64> {
        let runs = self.frame.program_values(self.case, policy, measure);
        runs.iter().map(|classes| classes[class]).collect()
    }

    fn classes(self) -> impl Iterator<Item = (usize, &'a String)> {
        self.frame.cases[self.case].programs.iter().enumerate()
    }

    /// Sentence on each program run once: the class that is done first, and the time until all are
    /// done.
    fn time(self) -> String {
        let longer = |policy| {
            let [theirs, ours] = [policy, WORKOVER].map(|p| self.over(p, "makespan_s"));
            let longer = ratio_text(RatioInterval::from_pairs(theirs, ours));
            format!("{} needs {longer} times workover's", self.name(policy))
        };
        let others: Vec<String> = self.others().map(longer).collect();
        let end = |(class, name): (usize, &String)| {
            let end = mean(&self.of_class(WORKOVER, "end_s", class)).unwrap_or(f64::NAN);
            format!("the last of class '{name}' ends after {end:.0} s")
        };
        let ends: Vec<String> = self.classes().map(end).collect();
        format!(
            "{}, each program once: of the time until all have finished {}. Under workover {}.",
            self.key(),
            others.join(", "),
            ends.join(", "),
        )
    }

    fn of_case(self) -> Vec<String> {
        let cycles = self
            .classes()
            .filter_map(|(class, name)| self.cycles(class, name));
        [self.throughput(), self.pipes()]
            .into_iter()
            .chain(cycles)
            .collect()
    }

    /// The policy that crowds FPUs most: like with like, where it is run.
    fn worst(self) -> usize {
        if self.frame.policies.len() > 2 { 2 } else { 0 }
    }

    fn throughput(self) -> String {
        let against = |over: usize| {
            let [ours, theirs] = [WORKOVER, over].map(|p| self.over(p, "stp"));
            let ratio = ratio_text(RatioInterval::from_pairs(ours, theirs));
            format!("{ratio} times {}'s", self.name(over))
        };
        format!(
            "{}, equal work: workover's system throughput is {}.",
            self.key(),
            self.others().map(against).collect::<Vec<_>>().join(", "),
        )
    }

    fn pipes(self) -> String {
        let share = |policy, measure| mean(self.over(policy, measure)).unwrap_or(f64::NAN);
        let used = |policy: usize| {
            format!(
                "{:.0} % (idlest {:.0} %) under {}",
                share(policy, "fpu_busiest_percent"),
                share(policy, "fpu_idlest_percent"),
                self.name(policy),
            )
        };
        let policies: Vec<String> = (0..self.frame.policies.len()).map(used).collect();
        let crowded = share(self.worst(), "fpu_busiest_percent") > CROWDED;
        let name = self.name(self.worst());
        let meaning = if crowded {
            format!("under {name} threads compete for more than half of them")
        } else {
            format!(
                "even under {name} the pipes have room, so that spreading FPU-heavy threads frees no \
                 unit that they wait for"
            )
        };
        format!(
            "{}, equal work: on the busiest core at each moment the FPU's pipes are in use to {}: \
             {meaning}.",
            self.key(),
            policies.join(", "),
        )
    }

    /// Change of a class's cycles from one extreme of placement to the other.
    fn cycles(self, class: usize, name: &str) -> Option<String> {
        let from = self.worst();
        let cpi = |policy, measure: &str| mean(&self.of_class(policy, measure, class));
        let changes = CpiStack::NAMES.into_iter().map(|cause| {
            let measure = format!("cpi_{cause}");
            Some((cause, cpi(WORKOVER, &measure)? - cpi(from, &measure)?))
        });
        let mut changes: Vec<(&str, f64)> = changes.collect::<Option<_>>()?;
        changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let named = changes.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|(cause, by)| format!("{cause} {by:+.4}"))
            .collect();
        Some(format!(
            "{}, equal work: from {} to workover the cycles per instruction of class '{name}' go from \
             {:.4} to {:.4}, by cause mostly {}.",
            self.key(),
            self.name(from),
            cpi(from, "cpi")?,
            cpi(WORKOVER, "cpi")?,
            named.join(", "),
        ))
    }
}
