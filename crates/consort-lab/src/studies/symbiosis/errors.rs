//! S2 and S3: errors of the forward and of the inverse model.

use super::training::{StackSplit, TrainingResult, train};
use crate::simulate::part_error;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::model::LevelParameters;
use consort_data::{Cell, HeadlineTable};
use consort_experiment::ExperimentContext;
use consort_experiment::train::{ErrorSpread, LevelErrors, TrainingRow};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest mean that counts as 0, percent: differences of counts leave as much of a component that
/// does not occur.
const ROUNDING: f64 = 1e-9;

/// Kind of error.
struct ErrorAspect {
    spread: fn(&LevelErrors) -> &ErrorSpread,
    /// True if an error can be below 0.
    is_signed: bool,
    model: &'static str,
    title: &'static str,
}

const FORWARD: ErrorAspect = ErrorAspect {
    spread: |errors| &errors.forward,
    is_signed: true,
    model: "forward model",
    title: "Errors of predicted slowdowns",
};

const INVERSE: ErrorAspect = ErrorAspect {
    spread: |errors| &errors.inverse,
    is_signed: false,
    model: "inverse model",
    title: "Cycles that the inverse model puts under a wrong cause",
};

/// The parts that both studies have: rows and series are `trained` and `held-out` programs.
fn size_errors(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
    about: &ErrorAspect,
) -> Result<(Arc<TrainingResult>, StudyOutput), StudyError> {
    let training = train(context, StackSplit::TopLevel)?;
    let spreads = [&training.seen, &training.held_out].map(about.spread);
    let named = ["trained", "held-out"].into_iter().zip(spreads);
    let mut headline = HeadlineTable::new()?;
    let mut sizes = Vec::new();
    for (name, spread) in named.clone() {
        let (size, within) = (spread.size, percent_within(spread, 10.0));
        let row = format!("mean error of the {}, {name}", about.model);
        headline.add(&row, "percent", size.mean_absolute_percent)?;
        let row = format!("errors within 10 percent, {name}");
        headline.add(&row, "percent", within)?;
        let row = format!("errors beyond 30 percent, {name}");
        headline.add(&row, "percent", 100.0 - percent_within(spread, 30.0))?;
        let cells = vec![
            size.mean_absolute_percent.into(),
            size.p95_percent.into(),
            within.into(),
            (spread.count as u64).into(),
        ];
        sizes.push((name, cells));
    }
    // Errors without a sign leave the bins below 0 empty.
    let is_shown = |&&(low, ..): &&(f64, f64, u64)| about.is_signed || low >= 0.0;
    let bins: Vec<Vec<(f64, f64, u64)>> = { spreads.iter() }
        .map(|spread| spread.histogram.bins().collect())
        .collect();
    let shown = bins[0].iter().filter(is_shown);
    let labels: Vec<String> = shown.map(|&(low, high, _)| bin_label(low, high)).collect();
    let mut series: Vec<(String, Vec<Cell>)> = Vec::new();
    for ((name, spread), bins) in named.zip(&bins) {
        let share = |bin: &(f64, f64, u64)| 100.0 * bin.2 as f64 / spread.count.max(1) as f64;
        let cells = bins.iter().filter(is_shown).map(|bin| share(bin).into());
        series.push((name.to_owned(), cells.collect()));
    }
    let row = |n: usize| series.iter().map(|(_, cells)| cells[n].clone()).collect();
    let rows = labels.iter().enumerate().map(|(n, label)| (label, row(n)));
    let sizes_text = spreads.map(|spread| {
        format!(
            "{:.1} % (95 percent within {:.1} %)",
            spread.size.mean_absolute_percent, spread.size.p95_percent
        )
    });
    let output = StudyOutput {
        tables: vec![
            headline.into_table(),
            file.fill_table("errors", sizes)?,
            file.fill_table("histogram", rows)?,
        ],
        notes: vec![format!(
            "{}: on trained programs {} on average, on held-out programs {}, over {} pairs.",
            about.title, sizes_text[0], sizes_text[1], training.runs,
        )],
        figures: vec![file.bar_figure("histogram", 1, labels, series)?],
        runs: 1,
    };
    Ok((training, output))
}

/// Percent of the errors in bins that lie within this much, in percent.
fn percent_within(spread: &ErrorSpread, percent: f64) -> f64 {
    let bins = spread.histogram.bins();
    let inside = bins.filter(|&(low, high, _)| low >= -percent && high <= percent);
    let count: u64 = inside.map(|bin| bin.2).sum();
    100.0 * count as f64 / spread.count.max(1) as f64
}

/// A bin's edges in percent, for example `-2..0`.
fn bin_label(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{low:.0}..{high:.0}"),
        (true, false) => format!("from {low:.0}"),
        _ => format!("below {high:.0}"),
    }
}

/// S2: errors of the forward model.
///
/// Keys. Table `headline`: rows `mean error of the forward model, KIND`, `errors within 10
/// percent, KIND` and `errors beyond 30 percent, KIND`, KIND `trained` or `held-out`. Table `errors`: rows `trained`, `held-out`; columns
/// `mean_abs_percent`, `p95_percent`, `within_10_percent`, `errors`. Table `histogram`: rows bins
/// such as `-2..0`, `below -30`, `from 30`; columns `trained_percent`, `held_out_percent`. Table
/// `programs`: rows programs, worst first; columns `slowdown`, `predicted`, `mean_abs_percent`,
/// `component` (the one that is furthest off). Figure `histogram`.
pub(in crate::studies) fn forward(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let (training, mut output) = size_errors(context, file, &FORWARD)?;
    let programs = PredictedProgram::all(&training);
    let rows = programs.iter().map(|program| {
        let cells = vec![
            program.slowdown.into(),
            program.predicted.into(),
            program.mean_abs_percent.into(),
            program.component.into(),
        ];
        (program.name, cells)
    });
    output.tables.push(file.fill_table("programs", rows)?);
    let worst = programs.iter().take(5).map(|program| {
        format!(
            "{} (slowdown {:.2}, predicted {:.2}, {})",
            program.name, program.slowdown, program.predicted, program.component
        )
    });
    output.notes.push(format!(
        "Predicted worst, with the component that is furthest off: {}. One coefficient per event \
         stands for all causes that are counted under it, whose cycles grow differently: misses \
         that wait for each other not at all, overlapping ones with the lost half of the window.",
        worst.collect::<Vec<_>>().join(", ")
    ));
    Ok(output)
}

/// Predictions of a program's slowdowns, means over its rows.
struct PredictedProgram<'a> {
    name: &'a str,
    slowdown: f64,
    predicted: f64,
    mean_abs_percent: f64,
    /// The component with the largest mean magnitude of the residual.
    component: &'a str,
}

impl<'a> PredictedProgram<'a> {
    /// All programs, the one that is predicted worst first.
    fn all(training: &'a TrainingResult) -> Vec<Self> {
        let mut rows: BTreeMap<&str, Vec<&TrainingRow>> = BTreeMap::new();
        for row in &training.set.rows {
            rows.entry(&row.program).or_default().push(row);
        }
        let each = rows.into_iter();
        let mut programs: Vec<Self> = each
            .map(|(name, rows)| Self::new(training, name, &rows))
            .collect();
        programs.sort_by(|a, b| b.mean_abs_percent.total_cmp(&a.mean_abs_percent));
        programs
    }

    fn new(training: &'a TrainingResult, name: &'a str, rows: &[&TrainingRow]) -> Self {
        let (level, components) = (&training.fit.level, &training.set.components);
        let [mut slowdown, mut predicted, mut error] = [0.0; 3];
        let mut residuals = vec![0.0; components.len()];
        let mut together = vec![0.0; components.len()];
        for row in rows {
            let (is, said) = (row.slowdown(), level.slowdown(&row.own, &row.others));
            slowdown += is;
            predicted += said;
            error += (said / is - 1.0).abs();
            level.predict_stack(&row.own, &row.others, &mut together);
            let both = row.together.iter().zip(&together);
            for (sum, (measured, predicted)) in residuals.iter_mut().zip(both) {
                *sum += (measured - predicted).abs();
            }
        }
        let named = components.iter().zip(residuals);
        let furthest = named.max_by(|a, b| a.1.total_cmp(&b.1));
        let count = rows.len() as f64;
        Self {
            name,
            slowdown: slowdown / count,
            predicted: predicted / count,
            mean_abs_percent: 100.0 * (error / count),
            component: furthest.map_or("", |(name, _)| name),
        }
    }
}

/// S3: errors of the inverse model.
///
/// Keys. Tables `errors` and `histogram` as in S2, bins from `0..2`. Table `components`: rows the
/// events of the stack; columns `alone_percent`, `estimated_percent` (means, of the cycles alone),
/// `mean_abs_percent`. Table `guesses`: row `trained` and `held-out`; column `kept_percent`.
/// Figure `histogram`.
pub(in crate::studies) fn inverse(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let (training, mut output) = size_errors(context, file, &INVERSE)?;
    let undone = random_stacks_error(&training.fit.level, context.seed())?;
    let row = "error of inverting random stacks";
    let cells = vec![
        undone.into(),
        Cell::missing("one mean"),
        "percent".into(),
        Cell::missing("no runs"),
    ];
    output.tables[0].push(row, cells)?;
    let sums = component_sums(&training)?;
    let count = training.set.rows.len().max(1) as f64;
    let percents = sums.iter().map(|sums| {
        sums.map(|sum| {
            let percent = 100.0 * sum / count;
            if percent.abs() < ROUNDING {
                0.0
            } else {
                percent
            }
        })
    });
    let percents: Vec<[f64; 3]> = percents.collect();
    let named = || training.set.components.iter().zip(&percents);
    let rows = named().map(|(name, percents)| (name, percents.map(Cell::from).into()));
    output.tables.push(file.fill_table("components", rows)?);
    let kept = [&training.seen, &training.held_out]
        .map(|errors| 100.0 * errors.guesses_kept as f64 / errors.inverted.max(1) as f64);
    let rows = ["trained", "held-out"].into_iter().zip(kept);
    let rows = rows.map(|(name, kept)| (name, vec![kept.into()]));
    output.tables.push(file.fill_table("guesses", rows)?);
    let worst = named().max_by(|a, b| a.1[2].total_cmp(&b.1[2]));
    let worst = worst.map_or_else(String::new, |(name, [alone, estimated, _])| {
        format!("{name} ({alone:.1} % of the cycles alone, estimated as {estimated:.1} %)")
    });
    output.notes.push(format!(
        "The component that is furthest off is {worst}. In {:.0} % of the co-runs the equations \
         of some component have no root between 0 and 1 and its measured share is kept instead.",
        kept[0]
    ));
    Ok(output)
}

/// Number of random pairs that are inverted.
const RANDOM_PAIRS: usize = 1000;

/// Least `beta` of components that random stacks have: no inverse finds a component again whose
/// measured cycles hardly depend on its own.
const FOUND_AGAIN: f64 = 0.1;

/// Mean cycles of random stacks that the inverse puts under a wrong cause after the forward model,
/// percent.
fn random_stacks_error(level: &LevelParameters, seed: u64) -> Result<f64, StudyError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let parameters = level.parameters();
    let mut wrong = 0.0;
    for _ in 0..RANDOM_PAIRS {
        let own: [Vec<f64>; 2] = std::array::from_fn(|_| {
            let drawn = parameters.iter().map(|component| {
                let share = random.random::<f64>();
                if component.beta.abs() < FOUND_AGAIN {
                    0.0
                } else {
                    share
                }
            });
            let drawn: Vec<f64> = drawn.collect();
            let sum: f64 = drawn.iter().sum();
            drawn.iter().map(|share| share / sum).collect()
        });
        let seen = [0, 1].map(|thread: usize| {
            let mut together = vec![0.0; parameters.len()];
            level.predict_stack(&own[thread], &own[1 - thread], &mut together);
            together
        });
        let inverse = level.invert(&[&seen[0], &seen[1]]);
        let inverse = inverse.map_err(part_error("inverse model"))?;
        for (thread, own) in own.iter().enumerate() {
            let both = inverse.st_stack(thread).iter().zip(own);
            wrong += both.map(|(found, own)| (found - own).abs()).sum::<f64>();
        }
    }
    // A share too much for one cause is too little for another.
    Ok(100.0 * wrong / 2.0 / (2 * RANDOM_PAIRS) as f64)
}

/// Sums over all rows for each component, in shares of the cycles alone: alone, estimated, and
/// magnitude of the difference.
fn component_sums(training: &TrainingResult) -> Result<Vec<[f64; 3]>, StudyError> {
    let mut co_runs: BTreeMap<u64, Vec<&TrainingRow>> = BTreeMap::new();
    for row in &training.set.rows {
        co_runs.entry(row.co_run).or_default().push(row);
    }
    let mut sums = vec![[0.0; 3]; training.set.components.len()];
    for rows in co_runs.values() {
        let measured: Vec<&[f64]> = rows.iter().map(|row| row.measured.as_slice()).collect();
        let inverse = training.fit.level.invert(&measured);
        let inverse = inverse.map_err(part_error("inverse model"))?;
        for (thread, row) in rows.iter().enumerate() {
            let both = inverse.st_stack(thread).iter().zip(&row.own);
            for (sum, (estimated, alone)) in sums.iter_mut().zip(both) {
                sum[0] += alone;
                sum[1] += estimated;
                sum[2] += (estimated - alone).abs();
            }
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_within_counts_whole_bins() {
        let spread = ErrorSpread::from_percents(&[-11.0, -9.0, 0.0, 9.9, 10.1]);
        assert_eq!(percent_within(&spread, 10.0), 60.0);
    }

    #[test]
    fn open_bins_are_named_by_one_edge() {
        let labels = ErrorSpread::from_percents(&[]).histogram;
        let labels: Vec<String> = { labels.bins() }
            .map(|(low, high, _)| bin_label(low, high))
            .collect();
        assert_eq!(labels[..2], ["below -30", "-30..-28"]);
        assert_eq!(labels.last().unwrap(), "from 30");
    }
}
