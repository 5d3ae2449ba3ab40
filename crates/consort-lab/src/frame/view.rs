//! Views of a frame: cells of groups of cases.

use super::{Frame, Group, Over};
use consort_core::stats::{Interval, RatioInterval, mean, quantile, sample_standard_deviation};
use consort_report::Cell;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;

/// Way in which the values of a group become a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The arithmetic mean with its interval; over a policy, the geometric mean of ratios.
    #[default]
    Mean,
    /// The geometric mean over cases of means over runs, with its interval over cases; of one
    /// case as `mean`, without an interval where there is one run.
    Geometric,
    /// The number of one case's first run, for what is the same in all of them; of several cases
    /// the mean with its interval.
    Value,
    /// The smallest of the cases' means.
    Least,
    /// The largest of the cases' means.
    Most,
    /// The mean over all runs of all cases, of one program's values where the group is one's, with
    /// its interval.
    Pooled,
    /// The mean over all runs of all cases, as [`Self::Pooled`], without an interval.
    PooledMean,
    /// The smallest of one case's runs.
    Smallest,
    /// The largest of one case's runs.
    Largest,
    /// The standard deviation of one case's runs.
    Deviation,
    /// The standard deviation of one case's runs over their mean, percent.
    Spread,
    /// The names of the programs of the group's first case.
    Programs,
}

/// Choice of the values of a cell: measure, policy, baseline and view.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct What<'a> {
    /// Key of the measure.
    pub measure: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// The policy whose value is divided by, run by run.
    pub over: Option<&'a str>,
    /// The measure of the policy that is divided by, where it is another one.
    pub over_measure: Option<&'a str>,
    /// True if the ratio is the other way round.
    pub inverted: bool,
    /// The measure whose sum over cases is divided by, run by run.
    pub of: Option<&'a str>,
    /// Way in which values become a cell.
    pub view: View,
}

/// The mean and its interval.
pub(crate) fn interval(values: &[f64]) -> Cell {
    Interval::of(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// The geometric mean of ratios and its interval.
pub(crate) fn ratios(values: &[f64]) -> Cell {
    RatioInterval::of(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// The geometric mean of the ratios of values, one by one, and its interval.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Cell {
    let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    ratios(&pairs.collect::<Vec<_>>())
}

/// A number where there is one.
pub(crate) fn known(value: Option<f64>, why_not: &str) -> Cell {
    value.map_or_else(|| Cell::missing(why_not), Cell::from)
}

/// Cell of a view of how runs differ.
fn extent(view: View, values: &[f64]) -> Cell {
    let deviation = || sample_standard_deviation(values);
    let value = match view {
        View::Smallest => quantile(values, 0.0),
        View::Largest => quantile(values, 1.0),
        View::Deviation => deviation(),
        _ => { deviation().zip(mean(values)) }.map(|(deviation, mean)| 100.0 * deviation / mean),
    };
    known(value, "too few runs")
}

impl Frame {
    /// Cell of a group; missing where a policy was not run.
    pub fn cell(&self, what: &What<'_>, group: &Group) -> Cell {
        let Some(policy) = self.policy(what.policy) else {
            return Cell::missing("not run");
        };
        let over = what.over.map(|over| self.policy(over));
        match (over, what.of) {
            (Some(None), _) => Cell::missing("what it is set against was not run"),
            (Some(Some(over)), _) if what.inverted => self.ratio(what, [over, policy], group),
            (Some(Some(over)), _) => self.ratio(what, [policy, over], group),
            (None, Some(whole)) => self.share(policy, [what.measure, whole], group),
            (None, None) => self.plain(what, policy, group),
        }
    }

    fn plain(&self, what: &What<'_>, policy: usize, group: &Group) -> Cell {
        let means = || self.means(what.measure, policy, group);
        let pooled = || self.pooled(what.measure, policy, group);
        match what.view {
            View::Mean => self.mean(what.measure, policy, group),
            View::Geometric if group.cases.len() > 1 => ratios(&means()),
            View::Geometric if self.runs == 1 => self.value(what.measure, policy, group),
            View::Geometric => self.mean(what.measure, policy, group),
            View::Value => self.value(what.measure, policy, group),
            View::Least => means().into_iter().fold(f64::INFINITY, f64::min).into(),
            View::Most => means().into_iter().fold(f64::NEG_INFINITY, f64::max).into(),
            View::Pooled => interval(&pooled()),
            View::PooledMean => known(mean(&pooled()), "not drawn"),
            View::Smallest | View::Largest | View::Deviation | View::Spread => {
                extent(what.view, &self.first(what.measure, policy, group))
            }
            View::Programs => self.programs(group).as_str().into(),
        }
    }

    fn value(&self, measure: &str, policy: usize, group: &Group) -> Cell {
        match group.cases[..] {
            [_] => {
                let first = self.first(measure, policy, group).first().copied();
                known(first, "not measured")
            }
            _ => self.mean(measure, policy, group),
        }
    }

    /// A measure of the runs of a case: of the group's program, where measures are of programs.
    fn values(&self, case: usize, policy: usize, measure: &str, group: &Group) -> Cow<'_, [f64]> {
        let programs = &self.cases[case].programs;
        let place = { group.program.as_ref() }.and_then(|p| programs.iter().position(|q| q == p));
        match place.filter(|_| self.of_programs.contains_key(measure)) {
            Some(place) => {
                let runs = self.programs_of(case, policy, measure).iter();
                runs.filter_map(|run| run.get(place).copied()).collect()
            }
            None => Cow::Borrowed(self.runs_of(case, policy, measure)),
        }
    }

    /// A measure of the runs of the first case of a group.
    fn first(&self, measure: &str, policy: usize, group: &Group) -> Cow<'_, [f64]> {
        let first = group.cases.first();
        first.map_or(Cow::Borrowed(&[]), |&case| {
            self.values(case, policy, measure, group)
        })
    }

    /// Mean of each case over its runs.
    fn means(&self, measure: &str, policy: usize, group: &Group) -> Vec<f64> {
        let of_case = |&case: &usize| {
            let values = self.values(case, policy, measure, group);
            values.iter().sum::<f64>() / values.len() as f64
        };
        group.cases.iter().map(of_case).collect()
    }

    fn mean(&self, measure: &str, policy: usize, group: &Group) -> Cell {
        match (group.over, &group.cases[..]) {
            (Over::Cases, &[case]) => interval(&self.values(case, policy, measure, group)),
            (Over::Cases, _) => interval(&self.means(measure, policy, group)),
            (Over::Runs, cases) => {
                let of_run = |run: usize| {
                    let values = cases
                        .iter()
                        .map(|&c| self.values(c, policy, measure, group)[run]);
                    values.sum::<f64>() / cases.len() as f64
                };
                interval(&(0..self.runs).map(of_run).collect::<Vec<_>>())
            }
        }
    }

    /// One policy's values over another's, run by run.
    fn ratios_of(
        &self,
        case: usize,
        what: &What<'_>,
        [ours, theirs]: [usize; 2],
        group: &Group,
    ) -> Vec<f64> {
        let base = what.over_measure.unwrap_or(what.measure);
        let ours = self.values(case, ours, what.measure, group);
        let theirs = self.values(case, theirs, base, group);
        let pairs = ours.iter().zip(theirs.iter());
        pairs.map(|(ours, theirs)| ours / theirs).collect()
    }

    fn ratio(&self, what: &What<'_>, both: [usize; 2], group: &Group) -> Cell {
        let of_case = |&case: &usize| self.ratios_of(case, what, both, group);
        match (group.over, &group.cases[..]) {
            (Over::Cases, [case]) => ratios(&of_case(case)),
            (Over::Cases, cases) => {
                let mean = |case: &usize| {
                    RatioInterval::of(&of_case(case)).map_or(f64::NAN, |ratio| ratio.mean)
                };
                ratios(&cases.iter().map(mean).collect::<Vec<_>>())
            }
            (Over::Runs, cases) => {
                let all: Vec<Vec<f64>> = cases.iter().map(of_case).collect();
                let of_run = |run: usize| {
                    let logs = all.iter().map(|of_case| libm::log(of_case[run]));
                    libm::exp(logs.sum::<f64>() / cases.len() as f64)
                };
                ratios(&(0..self.runs).map(of_run).collect::<Vec<_>>())
            }
        }
    }

    /// A part of a whole in all cases together, run by run; runs without the whole are left out.
    fn share(&self, policy: usize, [part, whole]: [&str; 2], group: &Group) -> Cell {
        let sum = |measure: &str, run: usize| -> f64 {
            let cases = group.cases.iter();
            cases.map(|&c| self.runs_of(c, policy, measure)[run]).sum()
        };
        let of_run = |run: usize| {
            let all = sum(whole, run);
            (all > 0.0).then(|| sum(part, run) / all)
        };
        let known: Vec<f64> = (0..self.runs).filter_map(of_run).collect();
        match known.is_empty() {
            true => Cell::missing("no thread returned from the kernel"),
            false => interval(&known),
        }
    }

    fn programs(&self, group: &Group) -> String {
        let first = group.cases.first();
        first.map_or_else(String::new, |&case| self.cases[case].programs.join(" "))
    }

    /// The values of all runs of all cases; of the group's program, where measures are of programs.
    fn pooled(&self, measure: &str, policy: usize, group: &Group) -> Vec<f64> {
        let mut all = Vec::new();
        for &case in &group.cases {
            all.extend(self.runs_of(case, policy, measure));
            let programs = self.cases[case].programs.iter().enumerate();
            let is_it = |name: &String| group.program.as_ref().is_none_or(|p| p == name);
            for (place, _) in programs.filter(|(_, name)| is_it(name)) {
                let runs = self.programs_of(case, policy, measure).iter();
                all.extend(runs.filter_map(|run| run.get(place)));
            }
        }
        all
    }

    /// Number of cases of a group in which all runs of two policies have the same value, to the
    /// last bit.
    pub fn same(&self, measure: &str, both: [&str; 2], group: &Group) -> usize {
        let [Some(ours), Some(theirs)] = both.map(|name| self.policy(name)) else {
            return 0;
        };
        let of = |case, policy| self.runs_of(case, policy, measure);
        let is_same = |&&case: &&usize| of(case, ours) == of(case, theirs);
        group.cases.iter().filter(is_same).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;

    fn what<'a>(policy: &'a str, over: Option<&'a str>) -> What<'a> {
        What {
            measure: "stp",
            policy,
            over,
            ..What::default()
        }
    }

    #[test]
    fn ratios_are_taken_run_by_run_with_intervals_over_cases_or_runs() {
        let frame = frame();
        let all = |over| frame.all("all", over, |_| true);
        let over = what("other", Some("base"));
        let expect = (3.0f64 / 1.0 * 4.0 / 2.0 * 7.0 / 5.0 * 8.0 / 6.0)
            .sqrt()
            .sqrt();
        for kind in [Over::Cases, Over::Runs] {
            let cell = frame.cell(&over, &all(kind));
            assert!((cell.value().unwrap() - expect).abs() < 1e-12);
            assert_eq!(cell.n(), Some(2));
        }
        let same = frame.cell(&what("base", Some("base")), &all(Over::Cases));
        assert_eq!(same.value(), Some(1.0));
    }

    #[test]
    fn means_are_of_cases_or_of_runs() {
        let frame = frame();
        let mut all = frame.all("all", Over::Cases, |_| true);
        let by_cases = frame.cell(&what("base", None), &all);
        assert_eq!(by_cases, interval(&[1.5, 5.5]));
        all.over = Over::Runs;
        assert_eq!(frame.cell(&what("base", None), &all), interval(&[3.0, 4.0]));
        let most = What {
            view: View::Most,
            ..what("base", None)
        };
        assert_eq!(frame.cell(&most, &all).value(), Some(5.5));
    }

    #[test]
    fn how_runs_differ_is_ends_and_deviation() {
        let values = [9.0, 11.0, 10.0];
        let of = |view| extent(view, &values).value();
        let all = [View::Smallest, View::Largest, View::Deviation, View::Spread].map(of);
        assert_eq!(all, [Some(9.0), Some(11.0), Some(1.0), Some(10.0)]);
        let single = extent(View::Deviation, &[1.0]);
        assert_eq!(single, Cell::missing("too few runs"));
    }

    #[test]
    fn a_ratio_may_be_the_other_way_round_or_over_another_measure() {
        let mut frame = frame();
        frame.set("antt", vec![2.0; 8]);
        let first = Group {
            cases: vec![0],
            ..Group::default()
        };
        let inverted = What {
            inverted: true,
            ..what("other", Some("base"))
        };
        assert_eq!(frame.cell(&inverted, &first), ratios(&[1.0 / 3.0, 0.5]));
        let other = What {
            over_measure: Some("antt"),
            ..what("other", Some("base"))
        };
        assert_eq!(frame.cell(&other, &first), ratios(&[1.5, 2.0]));
    }

    #[test]
    fn means_and_ratios_of_a_program_are_of_its_values() {
        let frame = frame();
        let one = Group {
            cases: vec![1],
            program: Some("one".to_owned()),
            ..Group::default()
        };
        let slowdown = |over| What {
            measure: "slowdown",
            ..what("other", over)
        };
        assert_eq!(frame.cell(&slowdown(None), &one), interval(&[7.0, 8.0]));
        let over = frame.cell(&slowdown(Some("base")), &one);
        assert_eq!(over, ratios(&[7.0 / 5.0, 8.0 / 6.0]));
    }

    #[test]
    fn a_share_is_of_all_cases_together_and_needs_a_whole() {
        let mut frame = frame();
        frame.set("returns", vec![2.0, 0.0, 4.0, 4.0, 6.0, 0.0, 4.0, 4.0]);
        let share = What {
            of: Some("returns"),
            ..what("base", None)
        };
        let all = frame.all("all", Over::Cases, |_| true);
        // The second run has no whole: 1 + 5 of 2 + 6.
        assert_eq!(frame.cell(&share, &all), interval(&[0.75]));
    }

    #[test]
    fn a_policy_that_was_not_run_has_no_value() {
        let frame = frame();
        let all = frame.all("all", Over::Cases, |_| true);
        assert_eq!(frame.cell(&what("x", None), &all), Cell::missing("not run"));
        let against = frame.cell(&what("base", Some("x")), &all);
        assert_eq!(against.value(), None);
    }

    #[test]
    fn values_of_a_program_are_pooled_over_cases_and_runs() {
        let frame = frame();
        let programs = frame.by_program(|_| true);
        let pooled = What {
            measure: "slowdown",
            view: View::Pooled,
            ..what("base", None)
        };
        let one = programs.iter().find(|g| g.key == "one").unwrap();
        assert_eq!(frame.cell(&pooled, one), interval(&[1.0, 2.0, 5.0, 6.0]));
    }
}
