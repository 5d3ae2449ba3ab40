//! M11: how L2MP, L2 misses times memory latency, goes with executed cycles.
//!
//! Keys. Table `headline`: rows programs. Table `correlation`: rows programs; columns `correlation` (Pearson's over all co-runners
//! and mappings, interval over seeds), `points`. Figures `little-sharing` and `much-sharing`.

use super::mapping::plan::{LITTLE_SHARING, PROGRAMS};
use super::mapping::sweep::{self, PairRuns};
use crate::frame::interval_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{self, memory_correlation};
use consort_core::stats::mean;
use consort_data::{
    Axis, Cell, Figure, FigurePoint, HeadlineTable, Plot, PointSeries, ReportTable, ScatterChart,
};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let seeds = runs.by_seed();
    let found = correlations(&seeds);
    Ok(runs.output(
        vec![headline(&found)?, table(file, &found, &runs)?],
        figures(&runs.table(), runs.seeds)?,
        vec![sentence(&found)],
    ))
}

/// Each program's correlation, seed by seed.
type ProgramCorrelations = Vec<(&'static str, Vec<f64>)>;

fn correlations(seeds: &[analysis::MappingTable]) -> ProgramCorrelations {
    let by_seed: Vec<_> = seeds.iter().map(memory_correlation).collect();
    let of = |program: &'static str| {
        let values = by_seed
            .iter()
            .filter_map(|found| found.get(program).copied());
        (program, values.collect())
    };
    PROGRAMS.into_iter().map(of).collect()
}

fn headline(found: &ProgramCorrelations) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (program, values) in found {
        headline.add(program, "correlation", cell(values))?;
    }
    Ok(headline.into_table())
}

fn cell(values: &[f64]) -> Cell {
    match values.is_empty() {
        true => Cell::missing("it has no L2 misses, or too few points"),
        false => interval_cell(values),
    }
}

fn table(
    file: &StudyFile,
    found: &ProgramCorrelations,
    runs: &PairRuns,
) -> Result<ReportTable, StudyError> {
    let row = |(program, values): &(&'static str, Vec<f64>)| {
        let points = runs.with(program).count() * super::mapping::plan::MAPPINGS.len();
        (*program, vec![cell(values), Cell::Count(points as u64)])
    };
    file.fill_table("correlation", found.iter().map(row))
}

/// Both axes relative to the program's means, so that programs of unlike sizes compare.
fn series(table: &analysis::MappingTable, program: &str) -> PointSeries {
    let rows = table.rows.iter().filter(|row| row.program == program);
    let point = |row: &analysis::MappingRow| {
        let usage = &row.usage;
        Some((usage.memory?.l2mp_cycles()?, usage.cycles?))
    };
    let points: Vec<(f64, f64)> = rows.filter_map(point).collect();
    let mean_of = |of: fn(&(f64, f64)) -> f64| {
        mean(&points.iter().map(of).collect::<Vec<_>>()).filter(|mean| *mean > 0.0)
    };
    let means = mean_of(|p| p.0).zip(mean_of(|p| p.1));
    let relative = |(x, y): (f64, f64)| {
        points
            .iter()
            .map(move |p| FigurePoint::exact(p.0 / x, p.1 / y))
    };
    PointSeries {
        name: program.to_owned(),
        points: means
            .map(|means| relative(means).collect())
            .unwrap_or_default(),
    }
}

fn figures(table: &analysis::MappingTable, runs: usize) -> Result<Vec<Figure>, StudyError> {
    let (little, much) = PROGRAMS.split_at(LITTLE_SHARING);
    let drawn = [
        ("little-sharing", "Programs that share little data", little),
        ("much-sharing", "Programs that share much data", much),
    ];
    let figure = |(key, title, programs): (&str, &str, &[&str])| {
        let all = programs.iter().map(|program| series(table, program));
        let plot = Plot::Scatter(ScatterChart {
            x: Axis::linear("L2MP relative to the program's mean", None),
            y: Axis::linear("Executed cycles relative to the program's mean", None),
            series: all.filter(|series| !series.points.is_empty()).collect(),
            diagonal: false,
        });
        let text = "One point for each co-runner and mapping.";
        Ok(Figure::new(key, title, text, runs, plot)?)
    };
    drawn.into_iter().map(figure).collect()
}

fn sentence(found: &ProgramCorrelations) -> String {
    let of = |(program, values): &(&str, Vec<f64>)| Some(format!("{program} {:.3}", mean(values)?));
    let all: Vec<String> = found.iter().filter_map(of).collect();
    format!(
        "Correlation of L2MP with executed cycles: {}.",
        all.join(", ")
    )
}
