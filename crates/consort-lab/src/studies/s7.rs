//! S7: frequency with which programs share a core under symbiotic scheduling.
//!
//! Keys. Table `headline`: rows `STABLE-OR-CHANGING workload, time beside the most frequent
//! co-runner`. AloneMeasures `workloads`: rows `5/NUMBER`; columns `ipc_variation_percent`, `chosen_as`,
//! `programs`. Table `summary`: rows `stable`, `changing`; columns `top_share_percent` (share of
//! its time that a program spends beside its most frequent co-runner, mean over programs),
//! `partners` (effective number of co-runners, the inverse of the sum of squared shares),
//! `expected_top_share_percent` (were all equally frequent). Tables `stable` and `changing`: rows
//! the programs, columns `beside-NUMBER` in the order of the rows. Figures `stable`, `changing`.

use super::symbiosis::mixes::DrawnMix;
use super::symbiosis::{NEAR_FIRST_HALF, PreparedMix, chip_with_memory, phases};
use crate::frame::interval_cell;
use crate::simulate::run_every_case;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_data::{Axis, Figure, HeadlineTable, HeatMap, Plot, ReportColumn, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::watch::CoRunnerWatch;

const CORES: usize = 5;
const POLICY: &str = "symbiotic";

/// Extent of the study at a scale.
struct CriticalityExtent {
    mixes: usize,
    runs: usize,
    alone_s: f64,
}

const QUICK: CriticalityExtent = CriticalityExtent {
    mixes: 4,
    runs: 2,
    alone_s: 10.0,
};
const FULL: CriticalityExtent = CriticalityExtent {
    mixes: 15,
    runs: 15,
    alone_s: 120.0,
};

/// A workload with the matrices of its runs.
struct MixMatrices {
    name: &'static str,
    mix: DrawnMix,
    runs: Vec<Vec<Vec<f64>>>,
}

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let extent = context.by_scale(QUICK, FULL);
    let mixes = DrawnMix::draw_all(context.seed(), CORES, extent.mixes);
    let of_programs = phases::variations(CORES, extent.alone_s, context)?;
    let of_mix = |mix| phases::of_mix(mix, &of_programs);
    let variations: Vec<f64> = mixes.iter().map(of_mix).collect();
    let chosen = choose(&variations);
    let mut tables = vec![workloads(file, &mixes, &variations, chosen)?];
    let watched = NAMES
        .into_iter()
        .zip(chosen)
        .map(|(name, mix)| watch(name, &mixes[mix], &extent, context));
    let watched: Vec<MixMatrices> = watched.collect::<Result<_, _>>()?;
    tables.insert(0, headline(&watched)?);
    tables.push(summary(file, &watched)?);
    for one in &watched {
        tables.push(matrix(one)?);
    }
    Ok(StudyOutput {
        tables,
        figures: watched.iter().map(figure).collect::<Result<_, _>>()?,
        notes: notes(&watched, chosen.map(|mix| variations[mix])),
        runs: extent.runs,
    })
}

const NAMES: [&str; 2] = ["stable", "changing"];

/// The workloads whose programs vary least and most; the first where several do.
fn choose(variations: &[f64]) -> [usize; 2] {
    let by = |sign: f64| {
        let better = |best: usize, i: usize| {
            if sign * variations[i] < sign * variations[best] {
                i
            } else {
                best
            }
        };
        (0..variations.len()).fold(0, better)
    };
    [by(1.0), by(-1.0)]
}

fn watch(
    name: &'static str,
    mix: &DrawnMix,
    extent: &CriticalityExtent,
    context: &ExperimentContext<'_>,
) -> Result<MixMatrices, StudyError> {
    let near = PreparedMix::new(mix, extent.alone_s, context)?;
    let prepared = near.on(&chip_with_memory(CORES, NEAR_FIRST_HALF)?);
    let run = |prepared: &PreparedMix, policy: &&str, seed| {
        let watch = CoRunnerWatch::new(&prepared.experiment.chip);
        prepared.run(policy, seed, Box::new(watch.clone()))?;
        Ok(watch.shares())
    };
    Ok(MixMatrices {
        name,
        mix: mix.clone(),
        runs: run_every_case(context, (&[prepared], &[POLICY], extent.runs), run)?,
    })
}

fn workloads(
    file: &StudyFile,
    mixes: &[DrawnMix],
    variations: &[f64],
    chosen: [usize; 2],
) -> Result<ReportTable, StudyError> {
    let rows = mixes.iter().zip(variations).enumerate();
    let rows = rows.map(|(index, (mix, variation))| {
        let name = chosen.iter().position(|&c| c == index);
        let cells = vec![
            (100.0 * variation).into(),
            name.map_or("", |c| NAMES[c]).into(),
            mix.names().join(" ").as_str().into(),
        ];
        (mix.key(), cells)
    });
    file.fill_table("workloads", rows)
}

/// Mean over the programs of a function of their row of shares.
fn over_programs(matrix: &[Vec<f64>], of: fn(&[f64]) -> f64) -> f64 {
    mean(&matrix.iter().map(|row| of(row)).collect::<Vec<_>>()).unwrap_or(0.0)
}

fn top(row: &[f64]) -> f64 {
    row.iter().copied().fold(0.0, f64::max)
}

fn partners(row: &[f64]) -> f64 {
    1.0 / row.iter().map(|share| share * share).sum::<f64>()
}

fn top_share_percents(one: &MixMatrices) -> Vec<f64> {
    { one.runs.iter() }
        .map(|matrix| 100.0 * over_programs(matrix, top))
        .collect()
}

fn headline(watched: &[MixMatrices]) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for one in watched {
        let row = format!(
            "{} workload, time beside the most frequent co-runner",
            one.name
        );
        headline.add(&row, "percent", interval_cell(&top_share_percents(one)))?;
    }
    Ok(headline.into_table())
}

fn summary(file: &StudyFile, watched: &[MixMatrices]) -> Result<ReportTable, StudyError> {
    let row = |one: &MixMatrices| {
        let counts = one.runs.iter();
        let counts = counts.map(|matrix| over_programs(matrix, partners));
        let others = (one.mix.programs.len() - 1) as f64;
        let cells = vec![
            interval_cell(&top_share_percents(one)),
            interval_cell(&counts.collect::<Vec<_>>()),
            (100.0 / others).into(),
        ];
        (one.name, cells)
    };
    file.fill_table("summary", watched.iter().map(row))
}

fn matrix(one: &MixMatrices) -> Result<ReportTable, StudyError> {
    let names = one.mix.names();
    let column = |(i, name): (usize, &String)| {
        ReportColumn::with_unit(&format!("beside-{}", i + 1), name, "% of time")
    };
    let columns = names.iter().enumerate().map(column).collect();
    let title = format!(
        "Share of its time beside each program, {} workload, first run",
        one.name
    );
    let mut table = ReportTable::new(one.name, &title, columns)?;
    for (name, row) in names.iter().zip(&one.runs[0]) {
        table.push(
            name,
            row.iter().map(|share| (100.0 * share).into()).collect(),
        )?;
    }
    Ok(table)
}

fn figure(one: &MixMatrices) -> Result<Figure, StudyError> {
    let cell = |row: usize, column: usize, share: f64| (row != column).then_some(100.0 * share);
    let row = |(r, row): (usize, &Vec<f64>)| {
        row.iter()
            .enumerate()
            .map(|(c, &share)| cell(r, c, share))
            .collect()
    };
    let map = HeatMap {
        x: "Co-runner".to_owned(),
        y: "Program".to_owned(),
        value: Axis::linear("Share of time on one core", Some("%")),
        columns: one.mix.names(),
        rows: one.mix.names(),
        cells: one.runs[0].iter().enumerate().map(row).collect(),
    };
    let title = format!(
        "Who shares a core with whom, {} workload ({})",
        one.name,
        one.mix.key()
    );
    Ok(Figure::new(one.name, &title, "", 1, Plot::HeatMap(map))?)
}

fn notes(watched: &[MixMatrices], variations: [f64; 2]) -> Vec<String> {
    let note = |(one, variation): (&MixMatrices, f64)| {
        let tops = interval_cell(&top_share_percents(one)).text();
        format!(
            "{} ({}): alone its programs' instructions per cycle vary by {:.1} % on average; under \
             {POLICY} a program spends {tops} % of its time beside its most frequent co-runner. {}",
            one.name,
            one.mix.key(),
            100.0 * variation,
            closest(one),
        )
    };
    watched.iter().zip(variations).map(note).collect()
}

/// The pair that shares a core most in the first run.
fn closest(one: &MixMatrices) -> String {
    let names = one.mix.names();
    let matrix = &one.runs[0];
    let pairs = (0..names.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
    let most = pairs.max_by(|x, y| matrix[x.0][x.1].total_cmp(&matrix[y.0][y.1]));
    most.map_or_else(String::new, |(a, b)| {
        let share = 100.0 * matrix[a][b];
        format!(
            "The pair most often together is {} and {}: {share:.0} %.",
            names[a], names[b]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_and_the_most_varying_are_chosen() {
        assert_eq!(choose(&[0.3, 0.1, 0.5, 0.1, 0.5]), [1, 2]);
    }

    #[test]
    fn equal_shares_count_as_that_many_partners() {
        assert_eq!(partners(&[0.0, 0.25, 0.25, 0.25, 0.25]), 4.0);
        assert_eq!(top(&[0.0, 0.75, 0.25]), 0.75);
        assert_eq!(over_programs(&[vec![0.0, 1.0], vec![1.0, 0.0]], top), 1.0);
    }
}
