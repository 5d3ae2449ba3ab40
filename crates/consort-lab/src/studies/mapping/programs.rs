//! Every program under every mapping, over all of its co-runners: M1, M4, M7 and M11.
//!
//! Keys. M1, M4: table `programs`: rows `PROGRAM/MAPPING` and `PROGRAM/alone`; the measure is a mean
//! over co-runners, `least` and `most` are those of the co-runner with the least and the most. Table
//! `variation`: `percent` is the excess of the largest mean over the smallest under any mapping. M7:
//! table `ranges`: columns `MEASURE-min` and `MEASURE-max`; table `alone` is the source's Table III.
//! M11: table `correlation`: Pearson's over all co-runners and mappings.

use super::measures::{LATENCY, MappingMeasure, PREFETCHED, TRANSACTIONS};
use super::{MAPPINGS, PROGRAMS, PairRuns};
use crate::frame::{interval_cell, number_or_missing};
use crate::studies::output::{OutputBuilder, join};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{AloneCharacteristics, MappingTable, memory_correlation};
use consort_core::stats::mean;
use consort_data::{Axis, Cell, Figure, FigurePoint, Plot, PointSeries, ScatterChart};
use consort_experiment::ExperimentContext;

/// M1 and M4: a measure of each program under each mapping, that of the first column of the file's
/// table `programs`.
pub(in crate::studies) fn measure_of_programs(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = PairRuns::get_or_run(context)?;
    let mut output = OutputBuilder::new(file, runs.seeds)?;
    let column = output.table_spec("programs")?.columns.first();
    let measure = MappingMeasure::find(column.map_or("", |column| &column.measure))?;
    let over_seeds = |program, mapping| runs.over_co_runners(program, mapping, measure.value);
    for program in PROGRAMS {
        for mapping in MAPPINGS {
            let cell = interval_cell(&over_seeds(program, mapping));
            output.headline(format!("{program}, {mapping}"), measure.unit, cell)?;
        }
    }

    let variation = |program| {
        let means = MAPPINGS.map(|mapping| mean(&over_seeds(program, mapping)));
        let means: Vec<f64> = means.into_iter().flatten().collect();
        let least = means.iter().copied().reduce(f64::min)?;
        let most = means.iter().copied().reduce(f64::max)?;
        Some(100.0 * (most / least - 1.0))
    };
    let variations: Vec<f64> = PROGRAMS.into_iter().filter_map(variation).collect();
    let cell = number_or_missing(mean(&variations), "no program was run");
    output.headline("variation over mappings, mean of programs", "percent", cell)?;

    let mut rows = Vec::new();
    for program in PROGRAMS {
        let alone = runs.value_alone(program, measure.value);
        let none = || Cell::missing("the program is alone");
        rows.push((
            format!("{program}/alone"),
            vec![alone, none(), none(), 0.into()],
        ));
        for mapping in MAPPINGS {
            let means = runs.with(program).filter_map(|(pair, place)| {
                mean(&runs.values(pair, place, mapping, measure.value))
            });
            let means: Vec<f64> = means.collect();
            let cells = vec![
                interval_cell(&over_seeds(program, mapping)),
                means.iter().copied().fold(f64::INFINITY, f64::min).into(),
                means
                    .iter()
                    .copied()
                    .fold(f64::NEG_INFINITY, f64::max)
                    .into(),
                Cell::Count(means.len() as u64),
            ];
            rows.push((format!("{program}/{mapping}"), cells));
        }
    }
    output.table("programs", rows)?;

    // The excess of each program's largest mean over its smallest, percent, with the mappings.
    let mut ranges: Vec<(&str, f64, [&str; 2])> = Vec::new();
    for program in PROGRAMS {
        let means = MAPPINGS
            .into_iter()
            .filter_map(|m| Some((m, mean(&over_seeds(program, m))?)));
        let mut means: Vec<(&str, f64)> = means.collect();
        means.sort_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(low), Some(high)) = (means.first(), means.last()) {
            let ratio = if high.1 > 0.0 {
                high.1 / low.1 - 1.0
            } else {
                0.0
            };
            ranges.push((program, 100.0 * ratio, [low.0, high.0]));
        }
    }
    let rows = { ranges.iter() }.map(|(program, percent, [low, high])| {
        (
            *program,
            vec![(*percent).into(), (*low).into(), (*high).into()],
        )
    });
    output.table("variation", rows)?;
    let series = MAPPINGS.map(|mapping| {
        let cells = PROGRAMS.map(|program| interval_cell(&over_seeds(program, mapping)));
        (mapping, cells.to_vec())
    });
    output.bars("programs", PROGRAMS, series)?;
    ranges.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ranges = join(ranges, |(program, percent, [low, high])| {
        format!("{program} {percent:.1} % ({low} to {high})")
    });
    output.note(format!(
        "{}: largest over smallest mean under any mapping, and these mappings: {ranges}.",
        measure.title
    ));
    Ok(runs.finish(output))
}

/// Values by seed of a program with a co-runner under a mapping.
struct CharacteristicCase {
    co_runner: &'static str,
    mapping: &'static str,
    values: Vec<f64>,
}

/// Cases with the smallest and the largest mean; `None` for a program without values.
fn extremes(
    runs: &PairRuns,
    program: &str,
    measure: MappingMeasure,
) -> Option<[CharacteristicCase; 2]> {
    let cases = || {
        let cases = { runs.with(program) }.flat_map(|(pair, place)| {
            MAPPINGS.map(|mapping| CharacteristicCase {
                co_runner: pair[1 - place],
                mapping,
                values: runs.values(pair, place, mapping, measure.value),
            })
        });
        // A case counts only if every seed has a value, otherwise its mean is of other seeds.
        cases.filter(|case| case.values.iter().all(|value| value.is_finite()))
    };
    let size = |case: &CharacteristicCase| mean(&case.values).unwrap_or(0.0);
    let least = cases().min_by(|a, b| size(a).total_cmp(&size(b)))?;
    let most = cases().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    Some([least, most])
}

/// A characteristic of a program alone: title and unit in the headline, and value.
type HeadlineCharacteristic = (
    &'static str,
    &'static str,
    fn(&AloneCharacteristics) -> Option<f64>,
);

/// The characteristics, in the order of columns.
const CHARACTERISTICS: [HeadlineCharacteristic; 8] = [
    ("Bandwidth", "MB/s", |c| c.bandwidth_mb_s),
    ("Prefetchers remove", "% of L2 misses", |c| {
        percent(c.prefetch_effectiveness)
    }),
    ("Prefetchers add", "% of lines", |c| {
        percent(c.prefetch_excess)
    }),
    ("Prefetched", "% of transactions", |c| {
        percent(c.prefetch_fraction)
    }),
    ("Misses saved by sharing", "%", |c| percent(c.data_sharing)),
    ("Input and output", "% of time", |c| percent(c.io_share)),
    ("Waits for siblings", "% of time", |c| {
        percent(c.sibling_share)
    }),
    ("Switched in", "1/s", |c| c.switches_per_s),
];

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// M7: prefetched lines, memory transactions and memory latency, the least and the most of each
/// program over mappings and co-runners.
pub(crate) fn m7(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    const SHOWN: [MappingMeasure; 3] = [PREFETCHED, TRANSACTIONS, LATENCY];
    let no_data = || Cell::missing("no data comes from memory");
    let ends = |program, measure| match extremes(runs, program, measure) {
        Some(ends) => ends.map(|case| interval_cell(&case.values)),
        None => [no_data(), no_data()],
    };
    for measure in SHOWN {
        for program in PROGRAMS {
            let [least, most] = ends(program, measure);
            for (end, cell) in [("least", least), ("most", most)] {
                let row = format!("{program}, {}, {end}", measure.title);
                output.headline(row, measure.unit, cell)?;
            }
        }
    }
    let mut alone_rows = Vec::new();
    for (program, alone) in PROGRAMS.into_iter().zip(&runs.alone) {
        let mut cells = Vec::new();
        for (title, unit, value) in CHARACTERISTICS {
            let cell = number_or_missing(value(&alone.characteristics), "it misses nothing");
            output.headline(format!("{program} alone, {title}"), unit, cell.clone())?;
            cells.push(cell);
        }
        alone_rows.push((program, cells));
    }
    let rows = PROGRAMS.map(|program| {
        let mut cells = Vec::from(SHOWN.map(|measure| ends(program, measure))).concat();
        cells.push(match extremes(runs, program, LATENCY) {
            Some([_, most]) => Cell::Text(format!("{} under {}", most.co_runner, most.mapping)),
            None => no_data(),
        });
        (program, cells)
    });
    output.table("ranges", rows)?;
    output.table("alone", alone_rows)?;
    for measure in SHOWN {
        let (least, most) = { PROGRAMS.into_iter() }
            .map(|program| <(Cell, Cell)>::from(ends(program, measure)))
            .unzip();
        // The figure's key is that of the column without its unit.
        let key = measure.key.trim_end_matches("_cycles");
        output.bars(key, PROGRAMS, [("least", least), ("most", most)])?;
    }
    let ratio = |program| {
        let [least, most] = extremes(runs, program, LATENCY)?.map(|case| mean(&case.values));
        Some((program, most? / least?))
    };
    let mut ratios: Vec<(&str, f64)> = PROGRAMS.into_iter().filter_map(ratio).collect();
    ratios.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ratios = join(ratios, |(name, by)| format!("{name} {by:.2}"));
    output.note(format!("Most by least memory latency: {ratios}."));
    Ok(())
}

/// M11: correlation of L2MP, L2 misses times memory latency, with executed cycles.
pub(crate) fn m11(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let by_seed: Vec<_> = runs.by_seed().iter().map(memory_correlation).collect();
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    for program in PROGRAMS {
        let values = by_seed
            .iter()
            .filter_map(|found| found.get(program).copied());
        let values: Vec<f64> = values.collect();
        let cell = match values.is_empty() {
            true => Cell::missing("it has no L2 misses, or too few points"),
            false => interval_cell(&values),
        };
        output.headline(program, "correlation", cell.clone())?;
        let points = runs.with(program).count() * MAPPINGS.len();
        rows.push((program, vec![cell, Cell::Count(points as u64)]));
        texts.extend(mean(&values).map(|mean| format!("{program} {mean:.3}")));
    }
    output.table("correlation", rows)?;
    let table = runs.table();
    // The first five programs of the source's Table III share little data.
    let (little, much) = PROGRAMS.split_at(5);
    for (key, title, programs) in [
        ("little-sharing", "Programs that share little data", little),
        ("much-sharing", "Programs that share much data", much),
    ] {
        let all = programs
            .iter()
            .map(|program| relative_points(&table, program));
        let plot = Plot::Scatter(ScatterChart {
            x: Axis::linear("L2MP relative to the program's mean", None),
            y: Axis::linear("Executed cycles relative to the program's mean", None),
            series: all.filter(|series| !series.points.is_empty()).collect(),
            diagonal: false,
        });
        let text = "One point for each co-runner and mapping.";
        output.push_figure(Figure::new(key, title, text, runs.seeds, plot)?);
    }
    output.note(format!(
        "Correlation of L2MP with executed cycles: {}.",
        texts.join(", ")
    ));
    Ok(())
}

/// A program's points, both axes relative to its means so that programs of unlike sizes compare.
fn relative_points(table: &MappingTable, program: &str) -> PointSeries {
    let rows = table.rows.iter().filter(|row| row.program == program);
    let points = rows.filter_map(|row| Some((row.usage.memory?.l2mp_cycles()?, row.usage.cycles?)));
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.unzip();
    let mean_of = |values: &[f64]| mean(values).filter(|mean| *mean > 0.0);
    let points = match mean_of(&xs).zip(mean_of(&ys)) {
        Some((x, y)) => { xs.iter().zip(&ys) }
            .map(|point| FigurePoint::exact(point.0 / x, point.1 / y))
            .collect(),
        None => Vec::new(),
    };
    PointSeries {
        name: program.to_owned(),
        points,
    }
}
