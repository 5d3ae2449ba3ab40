//! Policies set against one of them, by groups of cases: table and figure.
//!
//! Speeds are ratios of system throughput (spec chapter "Metrics and method"), for one program the
//! ratio of its times. PDP, power-delay product, is the average power of the machine times the
//! mean time in which programs do their work: the energy, where there is one program.

use super::case::{Outcome, Value};
use super::grid::Grid;
use super::splash::{joint, joint_mean};
use crate::report::{Axis, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
use crate::studies::symbiosis::cells::bar;
use crate::study::StudyError;

/// System throughput.
pub(in crate::studies) const STP: Value = |o| o.stp;
/// Power-delay product, J.
pub(in crate::studies) const PDP: Value = |o| o.energy_j / o.makespan_s * o.turnaround_s;

/// Cases that share a row.
pub(in crate::studies) struct Group {
    /// First part of the keys of its rows.
    pub key: String,
    /// Its cases.
    pub cases: Vec<usize>,
    /// What intervals are over.
    pub over: Over,
}

/// What intervals are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum Over {
    /// Runs, each the mean of its cases.
    Runs,
    /// Cases, each the mean of its runs.
    Cases,
}

/// Runs of policies beside those of one of them.
pub(in crate::studies) struct Compared<'a> {
    /// The runs.
    pub grid: &'a Grid,
    /// Position of the policy that the others are set against.
    pub base: usize,
    /// Positions of the others.
    pub others: Vec<usize>,
    /// The rows.
    pub groups: Vec<Group>,
}

impl Grid {
    /// Positions of the cases that a condition on their keys holds for.
    pub fn cases(&self, holds: impl Fn(&str) -> bool) -> Vec<usize> {
        let all = self.keys.iter().enumerate();
        all.filter(|(_, key)| holds(key)).map(|(n, _)| n).collect()
    }
}

impl Group {
    /// Cases whose interval is over runs.
    pub fn of_runs(key: &str, cases: Vec<usize>) -> Self {
        let (key, over) = (key.to_owned(), Over::Runs);
        Self { key, cases, over }
    }

    /// Cases whose interval is over them.
    pub fn of_cases(key: &str, cases: Vec<usize>) -> Self {
        let (key, over) = (key.to_owned(), Over::Cases);
        Self { key, cases, over }
    }
}

impl<'a> Compared<'a> {
    /// Every policy of the grid against the named one, or against the first where it is not there.
    pub fn with(grid: &'a Grid, base: &str, groups: Vec<Group>) -> Self {
        let base = grid.policy(base).unwrap_or(0);
        Self {
            grid,
            base,
            others: (0..grid.policies.len()).filter(|&p| p != base).collect(),
            groups,
        }
    }

    /// The same with some policies only.
    pub fn only(mut self, names: &[&str]) -> Self {
        let named = |p: &usize| names.contains(&self.grid.policies[*p].as_str());
        self.others.retain(named);
        self
    }

    /// Geometric mean of a policy's value over the base's.
    pub fn over(&self, group: &Group, policy: usize, value: Value) -> Cell {
        match group.over {
            Over::Runs => joint(self.grid, &group.cases, policy, self.base, value),
            Over::Cases => self.grid.ratio_of(&group.cases, policy, self.base, value),
        }
    }

    /// Mean of a policy's value.
    pub fn mean(&self, group: &Group, policy: usize, value: Value) -> Cell {
        match group.over {
            Over::Runs => joint_mean(self.grid, &group.cases, policy, value),
            Over::Cases => self.grid.mean_of(&group.cases, policy, value),
        }
    }

    /// Table of speed, energy and causes: rows `GROUP/POLICY`; columns `stp_over_base`,
    /// `pdp_over_base`, `large_percent` (of the instructions, on large cores), `waits_percent` (of
    /// the threads' time, spinning, asleep or without a PU), `switch_percent` (of that time, in
    /// the kernel on a PU and in refills after moves), `moves_hz` (threads that come to another
    /// PU, on the whole machine).
    pub fn table(&self, key: &str, title: &str) -> Result<Table, StudyError> {
        let base = &self.grid.policies[self.base];
        let columns = vec![
            Column::plain("stp_over_base", &format!("Speed over {base}")),
            Column::plain("pdp_over_base", &format!("PDP over {base}")),
            Column::with_unit("large_percent", "Instructions on large cores", "%"),
            Column::with_unit("waits_percent", "Threads' time waiting", "%"),
            Column::with_unit("switch_percent", "Threads' time switching", "%"),
            Column::with_unit("moves_hz", "Moves", "1/s"),
        ];
        let mut table = Table::new(key, title, columns)?;
        for group in &self.groups {
            for policy in std::iter::once(self.base).chain(self.others.iter().copied()) {
                let name = &self.grid.policies[policy];
                table.push(&format!("{}/{name}", group.key), self.row(group, policy))?;
            }
        }
        Ok(table)
    }

    fn row(&self, group: &Group, policy: usize) -> Vec<Cell> {
        let mean = |value: Value| self.mean(group, policy, value);
        vec![
            self.over(group, policy, STP),
            self.over(group, policy, PDP),
            mean(|o| 100.0 * o.large_instructions),
            mean(waits_percent),
            mean(|o| o.tally.percent(o.tally.switch_ps())),
            mean(|o| o.migration_hz),
        ]
    }

    /// Figure of a value over the base's: a group of bars for each group.
    pub fn figure(&self, draft: Draft<'_>, value: Value) -> Result<Figure, StudyError> {
        let one = |&policy: &usize| BarSeries {
            name: self.grid.policies[policy].clone(),
            bars: { self.groups.iter() }
                .map(|group| bar(&self.over(group, policy, value)))
                .collect(),
        };
        let bars = Bars {
            category: draft.category.to_owned(),
            value: Axis::linear(draft.value, None),
            baseline: 1.0,
            groups: self.groups.iter().map(|group| group.key.clone()).collect(),
            series: self.others.iter().map(one).collect(),
        };
        let plot = Plot::Bars(bars);
        Ok(Figure::new(
            draft.key,
            draft.title,
            draft.text,
            self.grid.runs,
            plot,
        )?)
    }

    /// `hrrs 1.234 ± 0.012, kuths ...`: a value over the base's in a group.
    pub fn sentence(&self, group: &Group, value: Value) -> String {
        let of = |&policy: &usize| {
            let cell = self.over(group, policy, value);
            format!("{} {}", self.grid.policies[policy], cell.text())
        };
        self.others.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    /// The groups, of one program each, in which a policy does best and worst, with what it does
    /// otherwise than the base there.
    pub fn extremes(&self, policy: &str) -> String {
        let Some(policy) = self.grid.policy(policy) else {
            return String::new();
        };
        let speed = |group: &&Group| self.over(group, policy, STP).value().unwrap_or(1.0);
        let by_speed = |a: &&Group, b: &&Group| speed(a).total_cmp(&speed(b));
        let single = || self.groups.iter().filter(|group| group.over == Over::Runs);
        let ends = [single().max_by(by_speed), single().min_by(by_speed)];
        let told = ends
            .into_iter()
            .flatten()
            .map(|group| self.change(group, policy));
        told.collect::<Vec<_>>().join(" ")
    }

    /// What changes in a group from the base to a policy.
    fn change(&self, group: &Group, policy: usize) -> String {
        let names = [self.base, policy].map(|p| self.grid.policies[p].as_str());
        let text = |policy: usize, value: Value| {
            let mean = self.mean(group, policy, value).value();
            mean.map_or_else(|| "?".to_owned(), |mean| format!("{mean:.1}"))
        };
        let both = |value: Value| [self.base, policy].map(|p| text(p, value)).join(" to ");
        format!(
            "{}: {} over {} {}; threads' time waiting from {} %, switching from {} %, instructions \
             on large cores from {} %.",
            group.key,
            names[1],
            names[0],
            self.over(group, policy, STP).text(),
            both(waits_percent),
            both(|o| o.tally.percent(o.tally.switch_ps())),
            both(|o| 100.0 * o.large_instructions),
        )
    }

    /// In how many groups of single workloads a policy is faster and slower than the base beyond
    /// the interval.
    pub fn beyond(&self, policy: usize) -> [usize; 2] {
        [1.0, -1.0].map(|sign: f64| {
            let is = |group: &&Group| {
                let cell = self.over(group, policy, STP);
                let (value, half) = (cell.value().unwrap_or(1.0), cell.ci95().unwrap_or(0.0));
                sign * (value - 1.0) > half
            };
            let single = self.groups.iter().filter(|group| group.over == Over::Runs);
            single.filter(is).count()
        })
    }
}

/// What a figure says around its bars.
#[derive(Clone, Copy)]
pub(in crate::studies) struct Draft<'a> {
    pub key: &'a str,
    pub title: &'a str,
    pub text: &'a str,
    /// Title of the axis of groups.
    pub category: &'a str,
    /// Title of the axis of values.
    pub value: &'a str,
}

/// Share of the threads' time that they spin, sleep, or wait for a PU, percent.
pub(in crate::studies) fn waits_percent(outcome: &Outcome) -> f64 {
    outcome.tally.percent(outcome.tally.spin_ps) + outcome.tally.off_percent()
}
