//! Drawn mixes of SPEC programs under policies for asymmetric chips, on which A12 and A13 stand.

use super::case::{Case, Outcome, PINNED};
use super::chips::chip;
use super::compared::{Compared, Group, STP};
use super::grid::Grid;
use super::headlines::over;
use super::mixes::mixes;
use super::programs::SPEC;
use crate::context::Context;
use crate::report::{Axis, Column, Figure, Headline, Lines, Plot, Point, PointSeries, Table};
use crate::study::StudyError;

/// What is run.
pub(in crate::studies) struct Plan {
    /// The machine.
    pub machine: &'static str,
    /// Programs of a mix: as many as cores.
    pub size: usize,
    /// Mixes at the two scales.
    pub mixes: [usize; 2],
    /// Runs at the two scales.
    pub runs: [usize; 2],
    /// The policies; the first is the one that the others are set against.
    pub policies: &'static [&'static str],
}

/// Time of a program's work alone on the large core, s.
pub(super) const ALONE_S: [f64; 2] = [0.1, 0.5];

impl Plan {
    /// The runs; keys of the cases are the programs joined by `+`.
    pub fn grid(&self, context: &Context<'_>) -> Result<Grid, StudyError> {
        let chip = chip(self.machine)?;
        let count = context.by_scale(self.mixes[0], self.mixes[1]);
        let workloads = mixes(context.seed(), SPEC, self.size, 1, count)?;
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let cases = context.map(&workloads, |workload| {
            let key = workload.text.clone();
            let case = Case::new(&key, &chip, workload.clone(), alone_s, context.seed());
            case.map(|case| case.like_source().with_all_assignments())
        })?;
        let cases: Vec<Case> = cases.into_iter().collect::<Result<_, _>>()?;
        let runs = context.by_scale(self.runs[0], self.runs[1]);
        Grid::run(context, &cases, self.policies, runs)
    }
}

/// Every mix, and all of them at the end.
pub(in crate::studies) fn compared(grid: &Grid) -> Compared<'_> {
    let one = |(case, key): (usize, &String)| Group::of_runs(key, vec![case]);
    let mut groups: Vec<Group> = grid.keys.iter().enumerate().map(one).collect();
    groups.push(Group::of_cases("all", grid.cases(|_| true)));
    Compared::with(grid, PINNED, groups)
}

/// Weighted speedup of every policy over pinned, over all mixes; `names` are the source's words for
/// some of them.
pub(in crate::studies) fn headline(
    all: &Compared<'_>,
    what: &str,
    names: &[(&str, &str)],
) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    let cases = all.grid.cases(|_| true);
    for (policy, name) in names {
        let over = over(all.grid, &cases, (policy, PINNED), STP);
        headline.add_gain(&format!("{name} over pinned, {what}"), over)?;
    }
    Ok(headline.into_table())
}

/// What holds over all mixes: speeds over pinned, and in how many mixes they are above and below.
pub(in crate::studies) fn notes(all: &Compared<'_>) -> Vec<String> {
    let mixes = all.grid.keys.len();
    let mut notes = Vec::new();
    if let Some(whole) = all.groups.last() {
        let speeds = all.sentence(whole, STP);
        notes.push(format!(
            "Weighted speedup over pinned, over {mixes} mixes: {speeds}."
        ));
    }
    let counts = |&policy: &usize| {
        let [faster, slower] = all.beyond(policy);
        let name = &all.grid.policies[policy];
        format!("{name} {faster} and {slower}")
    };
    let counts: Vec<String> = all.others.iter().map(counts).collect();
    notes.push(format!(
        "Mixes of {mixes} in which the weighted speedup is above and below pinned's beyond the 95 \
         percent interval: {}.",
        counts.join(", "),
    ));
    notes
}

/// Table `policies`: rows are the policies; columns `stp`, `stp_over_pinned`, `antt`,
/// `unfairness`, `large_percent` (of the instructions, on the large core), `moves_hz`.
pub(in crate::studies) fn policies_table(all: &Compared<'_>) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("stp", "Weighted speedup"),
        Column::plain("stp_over_pinned", "Weighted speedup over pinned"),
        Column::plain("antt", "ANTT"),
        Column::plain("unfairness", "Unfairness"),
        Column::with_unit("large_percent", "Instructions on the large core", "%"),
        Column::with_unit("moves_hz", "Moves", "1/s"),
    ];
    let title = "Over all mixes: mean and intervals over mixes";
    let mut table = Table::new("policies", title, columns)?;
    let cases = all.grid.cases(|_| true);
    for (policy, name) in all.grid.policies.iter().enumerate() {
        let mean = |value: fn(&Outcome) -> f64| all.grid.mean_of(&cases, policy, value);
        let cells = vec![
            mean(STP),
            all.grid.ratio_of(&cases, policy, all.base, STP),
            mean(|o| o.antt),
            mean(|o| o.unfairness),
            mean(|o| 100.0 * o.large_instructions),
            mean(|o| o.migration_hz),
        ];
        table.push(name, cells)?;
    }
    Ok(table)
}

/// Table `mixes`: rows are the mixes; a column for each policy but pinned, weighted speedup over
/// pinned's. Keys of the columns are the policies, other signs than letters and digits as `-`.
pub(in crate::studies) fn mixes_table(all: &Compared<'_>) -> Result<Table, StudyError> {
    let column = |&policy: &usize| {
        let name = &all.grid.policies[policy];
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        Column::plain(&name.chars().map(plain).collect::<String>(), name)
    };
    let columns = all.others.iter().map(column).collect();
    let title = "Weighted speedup over pinned, by mix: intervals over runs";
    let mut table = Table::new("mixes", title, columns)?;
    for group in &all.groups {
        let cell = |&policy: &usize| all.over(group, policy, STP);
        table.push(&group.key, all.others.iter().map(cell).collect())?;
    }
    Ok(table)
}

/// Figure `sorted`: weighted speedup over pinned of every mix, each policy's sorted.
pub(in crate::studies) fn sorted(all: &Compared<'_>, names: &[&str]) -> Result<Figure, StudyError> {
    let shown = |p: &&usize| names.contains(&all.grid.policies[**p].as_str());
    let lines = Lines {
        x: Axis::linear("Mix, each policy's sorted", None),
        y: Axis::linear("Weighted speedup over pinned", None),
        series: { all.others.iter() }
            .filter(shown)
            .map(|&policy| PointSeries {
                name: all.grid.policies[policy].clone(),
                points: sorted_points(all, policy),
            })
            .collect(),
    };
    let title = "Weighted speedup over pinned, mix by mix";
    let text = "Means over runs; the number of a mix differs from line to line.";
    Ok(Figure::new(
        "sorted",
        title,
        text,
        all.grid.runs,
        Plot::Lines(lines),
    )?)
}

fn sorted_points(all: &Compared<'_>, policy: usize) -> Vec<Point> {
    let cases = 0..all.grid.keys.len();
    let over = |case| all.grid.ratio(case, policy, all.base, STP).value();
    let mut values: Vec<f64> = cases.filter_map(over).collect();
    values.sort_by(f64::total_cmp);
    let numbered = values.into_iter().enumerate();
    numbered
        .map(|(n, y)| Point::exact((n + 1) as f64, y))
        .collect()
}
