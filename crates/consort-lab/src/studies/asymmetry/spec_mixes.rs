//! Drawn mixes of SPEC programs under policies for asymmetric chips, on which A12 and A13 stand.

use super::case::{Case, Outcome};
use super::chips::{Kind, chip, single};
use super::compared::{Compared, Group, STP};
use super::failed;
use super::grid::Grid;
use super::mixes::mixes;
use super::programs::{SPEC, find};
use crate::context::Context;
use crate::experiment::measure_alone;
use crate::report::{Axis, Cell, Column, Figure, Lines, Plot, Point, PointSeries, Table};
use crate::studies::symbiosis::cells::{interval, known};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_sim::workload::Instance;
use std::collections::BTreeSet;

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
const ALONE_S: [f64; 2] = [0.1, 0.5];

impl Plan {
    /// The runs; keys of the cases are the programs joined by `+`.
    pub fn grid(&self, context: &Context<'_>) -> Result<Grid, StudyError> {
        let chip = chip(self.machine)?;
        let count = context.by_scale(self.mixes[0], self.mixes[1]);
        let workloads = mixes(context.seed(), SPEC, self.size, 1, count)?;
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let cases = context.map(&workloads, |workload| {
            let key = workload.text.clone();
            Case::new(&key, &chip, workload.clone(), alone_s, context.seed())
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
    Compared::with(grid, "pinned", groups)
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

/// A program: how much the large core does for it, and how near to it each policy lets it come.
struct Profile {
    name: String,
    /// Instructions per second on the large core.
    large: f64,
    /// That over those on a small core.
    ratio: f64,
    /// By policy, its slowdowns over all runs of all mixes.
    slowdowns: Vec<Vec<f64>>,
}

/// Table `programs`: rows are the programs; columns `large_over_small` (speed alone), `ips_large`,
/// `slowdown_PLACE` for the policy at each place of the table `policies`, from 0, against the
/// large core alone. Notes say whom each policy favours.
pub(in crate::studies) fn programs(
    context: &Context<'_>,
    plan: &Plan,
    grid: &Grid,
) -> Result<(Table, Vec<String>), StudyError> {
    let profiles = profiles(context, plan, grid)?;
    let mut columns = vec![
        Column::plain("large_over_small", "Large over small core"),
        Column::with_unit("ips_large", "Instructions on the large core", "10⁹/s"),
    ];
    for (place, name) in grid.policies.iter().enumerate() {
        let title = format!("Slowdown, {name}");
        columns.push(Column::plain(&format!("slowdown_{place}"), &title));
    }
    let title = "Programs: what the large core does for each, and slowdowns against it";
    let mut table = Table::new("programs", title, columns)?;
    for profile in &profiles {
        let mut cells: Vec<Cell> = vec![profile.ratio.into(), (profile.large / 1e9).into()];
        cells.extend(profile.slowdowns.iter().map(|s| interval(s)));
        table.push(&profile.name, cells)?;
    }
    let notes = { grid.policies.iter().enumerate() }
        .map(|(policy, name)| favoured(name, policy, &profiles))
        .collect();
    Ok((table, notes))
}

fn profiles(context: &Context<'_>, plan: &Plan, grid: &Grid) -> Result<Vec<Profile>, StudyError> {
    let whole = chip(plan.machine)?;
    let cores = [single(&whole, Kind::Large)?, single(&whole, Kind::Small)?];
    let names: BTreeSet<&str> = grid.keys.iter().flat_map(|key| key.split('+')).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let speeds = context.map(&names, |name| {
        let instance = Instance {
            name: (*name).to_owned(),
            program: find(name)?,
            threads: 1,
            start_ms: 0.0,
        };
        let on = |core| measure_alone(core, &instance, alone_s, context.seed());
        let [large, small] = [on(&cores[0]), on(&cores[1])];
        let ips = |work: crate::experiment::Work| work.instructions / work.alone_s;
        let failed = failed(name);
        Ok::<_, StudyError>((
            large.map(ips).map_err(&failed)?,
            small.map(ips).map_err(&failed)?,
        ))
    })?;
    let profile = |(name, speeds): (&&str, Result<(f64, f64), StudyError>)| {
        let (large, small) = speeds?;
        Ok(Profile {
            name: (*name).to_owned(),
            large,
            ratio: large / small,
            slowdowns: (0..grid.policies.len())
                .map(|p| slowdowns(grid, name, p))
                .collect(),
        })
    };
    names.iter().zip(speeds).map(profile).collect()
}

/// Slowdowns of a program over all runs of a policy.
fn slowdowns(grid: &Grid, name: &str, policy: usize) -> Vec<f64> {
    let mut all = Vec::new();
    for (case, key) in grid.keys.iter().enumerate() {
        if let Some(place) = key.split('+').position(|program| program == name) {
            all.extend(
                grid.outcomes(case, policy)
                    .iter()
                    .map(|o| o.slowdowns[place]),
            );
        }
    }
    all
}

/// Whom a policy favours: how the slowdown goes with the benefit and with the speed.
fn favoured(name: &str, policy: usize, profiles: &[Profile]) -> String {
    let slowdown = |p: &Profile| mean(&p.slowdowns[policy]).unwrap_or(f64::NAN);
    let with = |of: fn(&Profile) -> f64| {
        let pairs = profiles.iter().map(|p| (of(p), slowdown(p)));
        known(correlation(&pairs.collect::<Vec<_>>()), "one program").text()
    };
    format!(
        "{name}: a program's slowdown goes with what the large core does for it by r = {}, with its \
         speed by r = {} (negative: those with more of it are slowed down less).",
        with(|p| p.ratio),
        with(|p| p.large),
    )
}

/// Pearson's correlation; none without variation.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|(x, y)| of(x - mx, y - my)).sum()
    };
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (spread > 0.0).then(|| sum(&|x, y| x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_pearson_s() {
        let line = [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)];
        assert!((correlation(&line).unwrap() - 1.0).abs() < 1e-12);
        let falling = line.map(|(x, y)| (x, -y));
        assert!((correlation(&falling).unwrap() + 1.0).abs() < 1e-12);
        // By hand: covariance 1, spreads 2 and 2.
        let some = [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (1.0, 1.0)];
        assert_eq!(correlation(&some), Some(0.0));
        assert_eq!(correlation(&[(1.0, 1.0)]), None);
    }
}
