//! Views of a frame: cells of groups of cases.

use super::{CaseGroup, Frame, IntervalBasis};
use consort_core::stats::{
    ConfidenceInterval, RatioInterval, mean, quantile, sample_standard_deviation,
};
use consort_data::Cell;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;

/// Way in which the values of a group become a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellView {
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
    /// As `mean`; over a policy, the ratio of the sums over cases, run by run, in which a case weighs
    /// as much as its value.
    Total,
    /// The names of the programs of the group's first case.
    Programs,
}

/// Choice of the values of a cell: measure, policy, baseline and view.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellQuery<'a> {
    /// Key of the measure.
    pub measure: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// The policy whose value is divided by, run by run.
    pub over: Option<&'a str>,
    /// The measure of the policy that is divided by, if it is another one.
    pub over_measure: Option<&'a str>,
    /// True if the ratio is the other way round.
    pub inverted: bool,
    /// The measure whose sum over cases is divided by, run by run.
    pub of: Option<&'a str>,
    /// Way in which values become a cell.
    pub view: CellView,
}

/// The mean and its interval.
pub(crate) fn interval_cell(values: &[f64]) -> Cell {
    ConfidenceInterval::from_values(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// The geometric mean of ratios and its interval.
pub(crate) fn mean_ratio_cell(values: &[f64]) -> Cell {
    RatioInterval::from_ratios(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// The geometric mean of the ratios of values, one by one, and its interval.
pub(crate) fn paired_ratio_cell(ours: &[f64], theirs: &[f64]) -> Cell {
    let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    mean_ratio_cell(&pairs.collect::<Vec<_>>())
}

pub(crate) fn number_or_missing(value: Option<f64>, why_not: &str) -> Cell {
    value.map_or_else(|| Cell::missing(why_not), Cell::from)
}

/// Cell of a view of how runs differ.
fn run_spread_cell(view: CellView, values: &[f64]) -> Cell {
    let deviation = || sample_standard_deviation(values);
    let value = match view {
        CellView::Smallest => quantile(values, 0.0),
        CellView::Largest => quantile(values, 1.0),
        CellView::Deviation => deviation(),
        _ => { deviation().zip(mean(values)) }.map(|(deviation, mean)| 100.0 * deviation / mean),
    };
    number_or_missing(value, "too few runs")
}

impl Frame {
    /// Cell of a group; missing if a policy was not run.
    pub fn cell(&self, what: &CellQuery<'_>, group: &CaseGroup) -> Cell {
        let Some(policy) = self.policy_index(what.policy) else {
            return Cell::missing("not run");
        };
        let over = what.over.map(|over| self.policy_index(over));
        match (over, what.of) {
            (Some(None), _) => Cell::missing("what it is set against was not run"),
            (Some(Some(over)), _) if what.inverted => self.ratio_cell(what, [over, policy], group),
            (Some(Some(over)), _) => self.ratio_cell(what, [policy, over], group),
            (None, Some(whole)) => self.share_cell(policy, [what.measure, whole], group),
            (None, None) => self.plain_cell(what, policy, group),
        }
    }

    fn plain_cell(&self, what: &CellQuery<'_>, policy: usize, group: &CaseGroup) -> Cell {
        let means = || self.case_means(what.measure, policy, group);
        let pooled = || self.pooled_values(what.measure, policy, group);
        match what.view {
            CellView::Mean | CellView::Total => self.mean_cell(what.measure, policy, group),
            CellView::Geometric if group.cases.len() > 1 => mean_ratio_cell(&means()),
            CellView::Geometric if self.runs == 1 => self.value_cell(what.measure, policy, group),
            CellView::Geometric => self.mean_cell(what.measure, policy, group),
            CellView::Value => self.value_cell(what.measure, policy, group),
            CellView::Least => means().into_iter().fold(f64::INFINITY, f64::min).into(),
            CellView::Most => means().into_iter().fold(f64::NEG_INFINITY, f64::max).into(),
            CellView::Pooled => interval_cell(&pooled()),
            CellView::PooledMean => number_or_missing(mean(&pooled()), "not drawn"),
            CellView::Smallest | CellView::Largest | CellView::Deviation | CellView::Spread => {
                run_spread_cell(
                    what.view,
                    &self.first_case_values(what.measure, policy, group),
                )
            }
            CellView::Programs => {
                let first = group.cases.first();
                let programs = first.map(|&case| self.cases[case].programs.join(" "));
                programs.unwrap_or_default().as_str().into()
            }
        }
    }

    fn value_cell(&self, measure: &str, policy: usize, group: &CaseGroup) -> Cell {
        match group.cases[..] {
            [_] => {
                let first = self
                    .first_case_values(measure, policy, group)
                    .first()
                    .copied();
                number_or_missing(first, "not measured")
            }
            _ => self.mean_cell(measure, policy, group),
        }
    }

    /// A measure of the runs of a case: of the group's program, if measures are of programs.
    fn group_values(
        &self,
        case: usize,
        policy: usize,
        measure: &str,
        group: &CaseGroup,
    ) -> Cow<'_, [f64]> {
        let programs = &self.cases[case].programs;
        let place = { group.program.as_ref() }.and_then(|p| programs.iter().position(|q| q == p));
        match place.filter(|_| self.of_programs.contains_key(measure)) {
            Some(place) => {
                let runs = self.program_values(case, policy, measure).iter();
                runs.filter_map(|run| run.get(place).copied()).collect()
            }
            None => Cow::Borrowed(self.run_values(case, policy, measure)),
        }
    }

    /// A measure of the runs of the first case of a group.
    fn first_case_values(&self, measure: &str, policy: usize, group: &CaseGroup) -> Cow<'_, [f64]> {
        let first = group.cases.first();
        first.map_or(Cow::Borrowed(&[]), |&case| {
            self.group_values(case, policy, measure, group)
        })
    }

    /// Mean of each case over its runs.
    fn case_means(&self, measure: &str, policy: usize, group: &CaseGroup) -> Vec<f64> {
        let of_case = |&case: &usize| {
            let values = self.group_values(case, policy, measure, group);
            values.iter().sum::<f64>() / values.len() as f64
        };
        group.cases.iter().map(of_case).collect()
    }

    fn mean_cell(&self, measure: &str, policy: usize, group: &CaseGroup) -> Cell {
        match (group.over, &group.cases[..]) {
            (IntervalBasis::Cases, &[case]) => {
                interval_cell(&self.group_values(case, policy, measure, group))
            }
            (IntervalBasis::Cases, _) => interval_cell(&self.case_means(measure, policy, group)),
            (IntervalBasis::Runs, cases) => {
                let of_run = |run: usize| {
                    let values = cases
                        .iter()
                        .map(|&c| self.group_values(c, policy, measure, group)[run]);
                    values.sum::<f64>() / cases.len() as f64
                };
                interval_cell(&(0..self.runs).map(of_run).collect::<Vec<_>>())
            }
        }
    }

    /// One policy's values over another's, run by run.
    fn ratio_cell(
        &self,
        what: &CellQuery<'_>,
        [ours, theirs]: [usize; 2],
        group: &CaseGroup,
    ) -> Cell {
        let of_case = |&case: &usize| -> Vec<f64> {
            let base = what.over_measure.unwrap_or(what.measure);
            let ours = self.group_values(case, ours, what.measure, group);
            let theirs = self.group_values(case, theirs, base, group);
            let pairs = ours.iter().zip(theirs.iter());
            pairs.map(|(ours, theirs)| ours / theirs).collect()
        };
        if what.view == CellView::Total {
            let sum = |policy, measure, run: usize| -> f64 {
                let cases = group.cases.iter();
                cases
                    .map(|&case| self.group_values(case, policy, measure, group)[run])
                    .sum()
            };
            let base = what.over_measure.unwrap_or(what.measure);
            let of_run = |run| sum(ours, what.measure, run) / sum(theirs, base, run);
            return mean_ratio_cell(&(0..self.runs).map(of_run).collect::<Vec<_>>());
        }
        match (group.over, &group.cases[..]) {
            (IntervalBasis::Cases, [case]) => mean_ratio_cell(&of_case(case)),
            (IntervalBasis::Cases, cases) => {
                let mean = |case: &usize| {
                    RatioInterval::from_ratios(&of_case(case)).map_or(f64::NAN, |ratio| ratio.mean)
                };
                mean_ratio_cell(&cases.iter().map(mean).collect::<Vec<_>>())
            }
            (IntervalBasis::Runs, cases) => {
                let all: Vec<Vec<f64>> = cases.iter().map(of_case).collect();
                let of_run = |run: usize| {
                    // Not the host's logarithm, whose last bit differs between hosts.
                    let logs = all.iter().map(|of_case| libm::log(of_case[run]));
                    libm::exp(logs.sum::<f64>() / cases.len() as f64)
                };
                mean_ratio_cell(&(0..self.runs).map(of_run).collect::<Vec<_>>())
            }
        }
    }

    /// A part of a whole in all cases together, run by run; runs without the whole are left out.
    fn share_cell(&self, policy: usize, [part, whole]: [&str; 2], group: &CaseGroup) -> Cell {
        let sum = |measure: &str, run: usize| -> f64 {
            let cases = group.cases.iter();
            cases
                .map(|&c| self.run_values(c, policy, measure)[run])
                .sum()
        };
        let of_run = |run: usize| {
            let all = sum(whole, run);
            (all > 0.0).then(|| sum(part, run) / all)
        };
        let known: Vec<f64> = (0..self.runs).filter_map(of_run).collect();
        match known.is_empty() {
            true => Cell::missing("no thread returned from the kernel"),
            false => interval_cell(&known),
        }
    }

    /// The values of all runs of all cases; of the group's program, if measures are of programs.
    fn pooled_values(&self, measure: &str, policy: usize, group: &CaseGroup) -> Vec<f64> {
        let mut all = Vec::new();
        for &case in &group.cases {
            all.extend(self.run_values(case, policy, measure));
            let programs = self.cases[case].programs.iter().enumerate();
            let is_it = |name: &String| group.program.as_ref().is_none_or(|p| p == name);
            for (place, _) in programs.filter(|(_, name)| is_it(name)) {
                let runs = self.program_values(case, policy, measure).iter();
                all.extend(runs.filter_map(|run| run.get(place)));
            }
        }
        all
    }

    /// Number of cases of a group in which all runs of two policies have the same value, to the
    /// last bit.
    pub fn count_same_cases(&self, measure: &str, both: [&str; 2], group: &CaseGroup) -> usize {
        let [Some(ours), Some(theirs)] = both.map(|name| self.policy_index(name)) else {
            return 0;
        };
        let of = |case, policy| self.run_values(case, policy, measure);
        let is_same = |&&case: &&usize| of(case, ours) == of(case, theirs);
        group.cases.iter().filter(is_same).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;

    fn what<'a>(policy: &'a str, over: Option<&'a str>) -> CellQuery<'a> {
        CellQuery {
            measure: "stp",
            policy,
            over,
            ..CellQuery::default()
        }
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        let frame = frame();
        let all = |over| frame.group_all("all", over, |_| true);
        let over = what("other", Some("base"));
        let expect = (3.0f64 / 1.0 * 4.0 / 2.0 * 7.0 / 5.0 * 8.0 / 6.0)
            .sqrt()
            .sqrt();
        for kind in [IntervalBasis::Cases, IntervalBasis::Runs] {
            let cell = frame.cell(&over, &all(kind));
            assert!((cell.value().unwrap() - expect).abs() < 1e-12);
            assert_eq!(cell.n(), Some(2));
        }
        let same = frame.cell(&what("base", Some("base")), &all(IntervalBasis::Cases));
        assert_eq!(same.value(), Some(1.0));
    }

    #[test]
    fn total_is_the_ratio_of_sums_run_by_run() {
        let frame = frame();
        let all = frame.group_all("all", IntervalBasis::Cases, |_| true);
        let total = CellQuery {
            view: CellView::Total,
            ..what("other", Some("base"))
        };
        // 3 + 7 over 1 + 5, and 4 + 8 over 2 + 6.
        let expect = mean_ratio_cell(&[10.0 / 6.0, 12.0 / 8.0]);
        assert_eq!(frame.cell(&total, &all), expect);
    }

    #[test]
    fn means_are_of_cases_or_of_runs() {
        let frame = frame();
        let mut all = frame.group_all("all", IntervalBasis::Cases, |_| true);
        let by_cases = frame.cell(&what("base", None), &all);
        assert_eq!(by_cases, interval_cell(&[1.5, 5.5]));
        all.over = IntervalBasis::Runs;
        assert_eq!(
            frame.cell(&what("base", None), &all),
            interval_cell(&[3.0, 4.0])
        );
        let most = CellQuery {
            view: CellView::Most,
            ..what("base", None)
        };
        assert_eq!(frame.cell(&most, &all).value(), Some(5.5));
    }

    #[test]
    fn spread_of_runs_is_ends_and_deviation() {
        let values = [9.0, 11.0, 10.0];
        let of = |view| run_spread_cell(view, &values).value();
        let all = [
            CellView::Smallest,
            CellView::Largest,
            CellView::Deviation,
            CellView::Spread,
        ]
        .map(of);
        assert_eq!(all, [Some(9.0), Some(11.0), Some(1.0), Some(10.0)]);
        let single = run_spread_cell(CellView::Deviation, &[1.0]);
        assert_eq!(single, Cell::missing("too few runs"));
    }

    #[test]
    fn ratio_may_be_inverted_or_of_two_measures() {
        let mut frame = frame();
        frame.set_run_values("antt", vec![2.0; 8]);
        let first = CaseGroup {
            cases: vec![0],
            ..CaseGroup::default()
        };
        let inverted = CellQuery {
            inverted: true,
            ..what("other", Some("base"))
        };
        assert_eq!(
            frame.cell(&inverted, &first),
            mean_ratio_cell(&[1.0 / 3.0, 0.5])
        );
        let other = CellQuery {
            over_measure: Some("antt"),
            ..what("other", Some("base"))
        };
        assert_eq!(frame.cell(&other, &first), mean_ratio_cell(&[1.5, 2.0]));
    }

    #[test]
    fn program_means_and_ratios_use_its_values() {
        let frame = frame();
        let one = CaseGroup {
            cases: vec![1],
            program: Some("one".to_owned()),
            ..CaseGroup::default()
        };
        let slowdown = |over| CellQuery {
            measure: "slowdown",
            ..what("other", over)
        };
        assert_eq!(
            frame.cell(&slowdown(None), &one),
            interval_cell(&[7.0, 8.0])
        );
        let over = frame.cell(&slowdown(Some("base")), &one);
        assert_eq!(over, mean_ratio_cell(&[7.0 / 5.0, 8.0 / 6.0]));
    }

    #[test]
    fn share_is_of_all_cases_together() {
        let mut frame = frame();
        frame.set_run_values("returns", vec![2.0, 0.0, 4.0, 4.0, 6.0, 0.0, 4.0, 4.0]);
        let share = CellQuery {
            of: Some("returns"),
            ..what("base", None)
        };
        let all = frame.group_all("all", IntervalBasis::Cases, |_| true);
        // The second run has no whole: 1 + 5 of 2 + 6.
        assert_eq!(frame.cell(&share, &all), interval_cell(&[0.75]));
    }

    #[test]
    fn policy_without_runs_has_no_value() {
        let frame = frame();
        let all = frame.group_all("all", IntervalBasis::Cases, |_| true);
        assert_eq!(frame.cell(&what("x", None), &all), Cell::missing("not run"));
        let against = frame.cell(&what("base", Some("x")), &all);
        assert_eq!(against.value(), None);
    }

    #[test]
    fn program_values_are_pooled_over_all_runs() {
        let frame = frame();
        let programs = frame.group_by_program(|_| true);
        let pooled = CellQuery {
            measure: "slowdown",
            view: CellView::Pooled,
            ..what("base", None)
        };
        let one = programs.iter().find(|g| g.key == "one").unwrap();
        assert_eq!(
            frame.cell(&pooled, one),
            interval_cell(&[1.0, 2.0, 5.0, 6.0])
        );
    }
}
