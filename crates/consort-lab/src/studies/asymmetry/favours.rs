//! Whom policies favour on drawn mixes: each program's slowdown beside what the large core does for
//! it.

use super::chips::{Kind, chip, single};
use super::failed;
use super::grid::Grid;
use super::programs::find;
use super::spec_mixes::{ALONE_S, Plan};
use crate::context::Context;
use crate::experiment::{Work, measure_alone};
use crate::report::{Cell, Column, Table};
use crate::studies::symbiosis::cells::{interval, known};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_sim::workload::Instance;
use std::collections::BTreeSet;

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
        let ips = |work: Work| work.instructions / work.alone_s;
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
