//! Tables and figures of a grid: groups of cases under several policies.

use super::case::Value;
use super::grid::Grid;
use crate::report::{Axis, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
use crate::studies::symbiosis::cells::bar;
use crate::study::StudyError;

/// What a policy is called in rows and legends: `hrrs-1ms` is the hardware form of `hrrs`, which
/// decides every millisecond, and `hrrs-4ms` its software form, every 4 ms.
pub(in crate::studies) fn label(policy: &str) -> String {
    let form = |text: &str| format!(":form={text}");
    policy
        .replace(&form("hardware"), "-1ms")
        .replace(&form("software"), "-4ms")
}

/// Cases that are taken together, and the key of their rows.
pub(in crate::studies) type Group = (String, Vec<usize>);

/// What a column or a figure shows of a group.
#[derive(Clone, Copy)]
pub(in crate::studies) struct Measure {
    /// Key of the column.
    pub key: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit; none for plain ratios.
    pub unit: Option<&'static str>,
    /// The value of a run.
    pub value: Value,
    /// The policy whose value is divided by; none where the value itself is shown.
    pub over: Option<&'static str>,
}

impl Measure {
    /// The value itself.
    pub const fn mean(
        key: &'static str,
        title: &'static str,
        unit: Option<&'static str>,
        value: Value,
    ) -> Self {
        Self {
            key,
            title,
            unit,
            value,
            over: None,
        }
    }

    /// The value over that of another policy, run by run.
    pub const fn over(
        base: &'static str,
        key: &'static str,
        title: &'static str,
        value: Value,
    ) -> Self {
        Self {
            key,
            title,
            unit: None,
            value,
            over: Some(base),
        }
    }

    /// The measure of a group under a policy.
    pub fn cell(&self, grid: &Grid, group: &[usize], policy: &str) -> Cell {
        let Some(policy) = grid.policy(policy) else {
            return Cell::missing("not run");
        };
        let over = self.over.map(|base| grid.policy(base));
        match (group, over) {
            (_, Some(None)) => Cell::missing("what it is set against was not run"),
            (&[case], Some(Some(base))) => grid.ratio(case, policy, base, self.value),
            (_, Some(Some(base))) => grid.ratio_of(group, policy, base, self.value),
            (&[case], None) => grid.mean(case, policy, self.value),
            (_, None) => grid.mean_of(group, policy, self.value),
        }
    }

    fn column(&self) -> Column {
        match self.unit {
            Some(unit) => Column::with_unit(self.key, self.title, unit),
            None => Column::plain(self.key, self.title),
        }
    }

    /// Where bars begin: gains and losses are seen from 1.
    fn baseline(&self) -> f64 {
        if self.over.is_some() { 1.0 } else { 0.0 }
    }
}

/// Cases by what stands before the stroke in their keys, in the order in which they come.
pub(in crate::studies) fn by_program(grid: &Grid) -> Vec<Group> {
    grouped(grid, |key| key.split('/').next())
}

/// Cases by what stands behind the stroke in their keys, and `all` at the end.
pub(in crate::studies) fn by_threads(grid: &Grid) -> Vec<Group> {
    let mut groups = grouped(grid, |key| key.split('/').nth(1));
    groups.push(("all".to_owned(), (0..grid.keys.len()).collect()));
    groups
}

fn grouped(grid: &Grid, part: impl Fn(&str) -> Option<&str>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (case, key) in grid.keys.iter().enumerate() {
        let name = part(key).unwrap_or(key);
        match groups.iter_mut().find(|(known, _)| known == name) {
            Some((_, cases)) => cases.push(case),
            None => groups.push((name.to_owned(), vec![case])),
        }
    }
    groups
}

/// A table with rows `GROUP/POLICY`.
pub(in crate::studies) fn table(
    grid: &Grid,
    heading: (&str, &str),
    groups: &[Group],
    policies: &[&str],
    measures: &[Measure],
) -> Result<Table, StudyError> {
    let columns = measures.iter().map(Measure::column).collect();
    let mut table = Table::new(heading.0, heading.1, columns)?;
    for (key, group) in groups {
        for policy in policies {
            let cells = measures.iter().map(|m| m.cell(grid, group, policy));
            table.push(&format!("{key}/{}", label(policy)), cells.collect())?;
        }
    }
    Ok(table)
}

/// What is drawn of a grid.
pub(in crate::studies) struct Drawing<'a> {
    /// Key of the figure.
    pub key: &'a str,
    /// Title for people.
    pub title: &'a str,
    /// What to see in it.
    pub text: &'a str,
    /// Title of the axis of groups.
    pub category: &'a str,
}

/// A group of bars for each group of cases, one bar for each policy.
pub(in crate::studies) fn figure(
    grid: &Grid,
    drawing: &Drawing<'_>,
    groups: &[Group],
    policies: &[&str],
    measure: &Measure,
) -> Result<Figure, StudyError> {
    let series = |policy: &&str| {
        let cells = groups
            .iter()
            .map(|(_, group)| measure.cell(grid, group, policy));
        (label(policy), cells.collect())
    };
    let names: Vec<String> = groups.iter().map(|(key, _)| key.clone()).collect();
    let axis = Axis::linear(measure.title, measure.unit);
    let series: Vec<(String, Vec<Cell>)> = policies.iter().map(series).collect();
    bars(
        drawing,
        grid.runs,
        (axis, measure.baseline()),
        names,
        &series,
    )
}

/// Bars as high as cells' values; a series without any value is left out.
pub(in crate::studies) fn bars(
    drawing: &Drawing<'_>,
    runs: usize,
    (value, baseline): (Axis, f64),
    groups: Vec<String>,
    series: &[(String, Vec<Cell>)],
) -> Result<Figure, StudyError> {
    let some = series
        .iter()
        .filter(|(_, cells)| cells.iter().any(|c| c.value().is_some()));
    let plot = Plot::Bars(Bars {
        category: drawing.category.to_owned(),
        value,
        baseline,
        groups,
        series: some
            .map(|(name, cells)| BarSeries {
                name: name.clone(),
                bars: cells.iter().map(bar).collect(),
            })
            .collect(),
    });
    Ok(Figure::new(
        drawing.key,
        drawing.title,
        drawing.text,
        runs,
        plot,
    )?)
}

/// Groups from the highest to the lowest value of a measure under a policy; those without a value
/// are left out.
pub(in crate::studies) fn ranked(
    grid: &Grid,
    groups: &[Group],
    policy: &str,
    measure: &Measure,
) -> Vec<(String, f64)> {
    let value = |(key, group): &Group| {
        let cell = measure.cell(grid, group, policy);
        cell.value().map(|value| (key.clone(), value))
    };
    let mut all: Vec<(String, f64)> = groups.iter().filter_map(value).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// The first and the last few of a ranking, in words.
pub(in crate::studies) fn ends(ranking: &[(String, f64)], few: usize) -> String {
    let words = |some: &[(String, f64)]| {
        let one = |(name, value): &(String, f64)| format!("{name} {value:.3}");
        some.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let few = few.min(ranking.len());
    format!(
        "most: {}; least: {}",
        words(&ranking[..few]),
        words(&ranking[ranking.len() - few..])
    )
}

/// In how many of the groups a policy is better and in how many worse than what it is set
/// against, where the interval leaves out 1; larger is better.
pub(in crate::studies) fn beyond(
    grid: &Grid,
    groups: &[Group],
    policy: &str,
    measure: &Measure,
) -> (usize, usize) {
    let cells: Vec<Cell> = { groups.iter() }
        .map(|(_, group)| measure.cell(grid, group, policy))
        .collect();
    let count = |sign: f64| {
        let is = |cell: &&Cell| {
            let (value, half) = (cell.value().unwrap_or(1.0), cell.ci95().unwrap_or(0.0));
            sign * (value - 1.0) > half
        };
        cells.iter().filter(is).count()
    };
    (count(1.0), count(-1.0))
}
