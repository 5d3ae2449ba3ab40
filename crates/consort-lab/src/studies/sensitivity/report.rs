//! Tables, tornado charts and notes of the conclusions that were put to the test.
//!
//! Keys. Table `headlines`: rows are the conclusions, for example `workover-throughput`. A table and
//! a figure per conclusion, of its key: rows are parameters, for example `machine.llc.size_kib`,
//! `programs.*.data_mpki`, `quantum`, the largest swing first.

use super::descriptions::VariedParameter;
use super::sampling::wilson_interval;
use super::{
    ConclusionTrials, ConclusionVerdict, ENDS, Metric, SensitivityTrial, THRESHOLD, conclusions,
    test_conclusions,
};
use crate::studies::output::{OutputBuilder, join};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::quantile;
use consort_data::{Axis, Cell, Figure, Plot, ReportColumn, ReportTable, Tornado, TornadoRow};
use consort_experiment::ExperimentContext;

/// Parameters with a bar of their own; the others have one together.
const ROWS: usize = 15;
/// Parameters that are named in a note.
const NAMED: usize = 5;

/// Puts every conclusion to the test.
pub(in crate::studies) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let conclusions = conclusions()?;
    let all = test_conclusions(&conclusions, context)?;
    let runs = conclusions[0].runs[context.by_scale(0, 1)];
    let mut output = OutputBuilder::new(file, runs)?;
    for tested in &all {
        let row = format!("{}, everything varied", tested.conclusion.sentence);
        output.headline(row, "percent of samples", tested.joint_result().percent)?;
    }
    let rows = all
        .iter()
        .map(|tested| (&tested.conclusion.key, tested.cells()));
    output.table("headlines", rows)?;
    for tested in &all {
        output.push_table(tested.swings_table()?);
        output.push_figure(tested.tornado()?);
        output.note(tested.note());
    }
    Ok(output.finish())
}

/// One parameter at both ends.
struct ParameterSwing<'a> {
    parameter: &'a VariedParameter,
    /// Trials at the low and at the high end.
    ends: [&'a SensitivityTrial; 2],
}

impl ParameterSwing<'_> {
    /// Difference of the ratios at both ends.
    fn size(&self) -> f64 {
        (self.ends[1].ratio() - self.ends[0].ratio()).abs()
    }

    /// True if the conclusion holds beyond noise at both ends.
    fn holds(&self) -> bool {
        let mut ends = self.ends.iter();
        ends.all(|end| end.verdict() == ConclusionVerdict::Holds)
    }

    /// True if its opposite holds beyond noise at one of them.
    fn fails(&self) -> bool {
        let mut ends = self.ends.iter();
        ends.any(|end| end.verdict() == ConclusionVerdict::Fails)
    }
}

/// Result of all samples.
struct JointResult {
    samples: usize,
    /// Samples with a ratio above the threshold.
    hold: usize,
    /// Share of these with its 95 percent interval, percent.
    percent: f64,
    percent_95: [f64; 2],
    /// Ratios that 5, 50 and 95 percent of the samples do not exceed.
    quantiles: [f64; 3],
}

impl ConclusionVerdict {
    fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Unclear => "unclear",
            Self::Fails => "fails",
        }
    }
}

fn ratio_cell(trial: &SensitivityTrial) -> Cell {
    let interval = trial.interval();
    interval.map_or_else(|| Cell::missing("no runs"), Cell::from)
}

impl ConclusionTrials<'_> {
    /// The trial with nothing varied.
    fn plain(&self) -> &SensitivityTrial {
        &self.trials[0]
    }

    /// The parameters by swing, the largest first.
    fn swings(&self) -> Vec<ParameterSwing<'_>> {
        let swing = |(number, parameter)| ParameterSwing {
            parameter,
            ends: [1, 2].map(|end| &self.trials[2 * number + end]),
        };
        let mut all: Vec<ParameterSwing<'_>> =
            self.parameters.iter().enumerate().map(swing).collect();
        all.sort_by(|a, b| b.size().total_cmp(&a.size()));
        all
    }

    /// Result of the trials with all parameters varied at once.
    fn joint_result(&self) -> JointResult {
        let samples = &self.trials[1 + 2 * self.parameters.len()..];
        let ratios: Vec<f64> = samples.iter().map(SensitivityTrial::ratio).collect();
        let hold = ratios.iter().filter(|ratio| **ratio > THRESHOLD).count();
        JointResult {
            samples: samples.len(),
            hold,
            percent: 100.0 * hold as f64 / samples.len().max(1) as f64,
            percent_95: wilson_interval(hold, samples.len()).map(|share| 100.0 * share),
            quantiles: [0.05, 0.5, 0.95].map(|q| quantile(&ratios, q).unwrap_or(f64::NAN)),
        }
    }

    /// Cells of the table `headlines`.
    fn cells(&self) -> Vec<Cell> {
        let (plain, swings, joint) = (self.plain(), self.swings(), self.joint_result());
        let hold = swings.iter().filter(|swing| swing.holds()).count() as u64;
        let fail = swings.iter().filter(|swing| swing.fails()).count() as u64;
        let mut cells: Vec<Cell> = vec![
            ratio_cell(plain),
            plain.verdict().text().into(),
            (swings.len() as u64).into(),
            hold.into(),
            fail.into(),
            joint.percent.into(),
        ];
        cells.extend(joint.percent_95.map(Cell::from));
        cells.push((joint.samples as u64).into());
        cells.extend(joint.quantiles.map(Cell::from));
        cells.push((plain.ratios.len() as u64).into());
        cells
    }

    /// The table of the conclusion: a row per parameter, by swing.
    fn swings_table(&self) -> Result<ReportTable, StudyError> {
        let columns = vec![
            ReportColumn::plain("swing", "Swing"),
            ReportColumn::plain("low", "Ratio at the low end"),
            ReportColumn::plain("high", "Ratio at the high end"),
            ReportColumn::plain("low_verdict", "Conclusion at the low end"),
            ReportColumn::plain("high_verdict", "Conclusion at the high end"),
            ReportColumn::plain("low_factor", "Factor at the low end"),
            ReportColumn::plain("high_factor", "Factor at the high end"),
        ];
        let title = format!("{}: one parameter at a time", self.conclusion.sentence);
        let mut table = ReportTable::new(&self.conclusion.key, &title, columns)?;
        for swing in self.swings() {
            let mut cells = vec![Cell::from(swing.size())];
            cells.extend(swing.ends.map(ratio_cell));
            cells.extend(swing.ends.map(|end| Cell::from(end.verdict().text())));
            cells.extend(swing.ends.map(|end| Cell::from(end.reached)));
            table.push(&swing.parameter.name(), cells)?;
        }
        Ok(table)
    }

    fn tornado(&self) -> Result<Figure, StudyError> {
        // Policies are named without their options.
        let [policy, over] = [&self.conclusion.policy, &self.conclusion.over]
            .map(|policy| policy.split(':').next().unwrap_or(policy));
        let metric = match self.conclusion.metric {
            Metric::Throughput => "Throughput",
            Metric::Speed => "Speed",
            Metric::Fairness => "Fairness",
        };
        let title = format!("{metric} of {policy} over {over}");
        let plain = self.plain().ratio();
        let swings = self.swings();
        let (own, others) = swings.split_at(swings.len().min(ROWS));
        let row = |swing: &ParameterSwing<'_>| TornadoRow {
            name: swing.parameter.name(),
            values: swing.ends.map(SensitivityTrial::ratio),
        };
        let mut rows: Vec<TornadoRow> = own.iter().map(row).collect();
        if !others.is_empty() {
            // Losses and gains of the others, each at its worse and its better end, added up.
            let sum = |side: fn(f64, f64) -> f64| {
                let changes = others.iter().map(|swing| {
                    let changes = swing.ends.map(|trial| trial.ratio() - plain);
                    changes.into_iter().fold(0.0, side)
                });
                plain + changes.sum::<f64>()
            };
            rows.push(TornadoRow {
                name: format!("{} others, added up", others.len()),
                values: [sum(f64::min), sum(f64::max)],
            });
        }
        let tornado = Tornado {
            value: Axis::linear(&title, None),
            baseline: plain,
            threshold: Some(THRESHOLD),
            ends: ENDS.map(|factor| format!("{factor} times")),
            rows,
        };
        let text = "A parameter that cannot go so far goes as far as it can. The last bar adds up \
                    what all other parameters take away at either end, and what they add.";
        let runs = self.plain().ratios.len();
        let plot = Plot::Tornado(tornado);
        Ok(Figure::new(&self.conclusion.key, &title, text, runs, plot)?)
    }

    fn note(&self) -> String {
        let plain = self.plain();
        let is = match plain.verdict() {
            ConclusionVerdict::Holds => "holds",
            ConclusionVerdict::Unclear => "is unclear",
            ConclusionVerdict::Fails => "does not hold",
        };
        let swings = self.swings();
        let holding = swings.iter().filter(|swing| swing.holds()).count();
        let mut failing: Vec<String> = Vec::new();
        for swing in swings.iter().filter(|swing| swing.fails()) {
            let ends = ENDS.iter().zip(swing.ends);
            let at = ends.filter(|(_, end)| end.verdict() == ConclusionVerdict::Fails);
            let at = at.map(|(factor, end)| format!("times {factor} ({:.4})", end.ratio()));
            let at: Vec<String> = at.collect();
            failing.push(format!("{} {}", swing.parameter.name(), at.join(" and ")));
        }
        let mut turned = match failing.len() {
            0 => "no parameter alone turns it round".to_owned(),
            n => {
                let named = join(failing.iter().take(NAMED), String::clone);
                format!("it fails with {n} of them: {named}")
            }
        };
        if failing.len() > NAMED {
            turned.push_str(&format!(", and {} more", failing.len() - NAMED));
        }
        let largest = join(swings.iter().take(NAMED), |swing| {
            format!("{} ({:.4})", swing.parameter.name(), swing.size())
        });
        let joint = self.joint_result();
        let [low, high] = joint.percent_95;
        let [p5, median, p95] = joint.quantiles;
        format!(
            "{}: this {is}, ratio {:.4}. Of {} parameters alone, {holding} leave it standing \
             beyond noise at both ends; {turned}. Largest swings: {largest}. With all varied at \
             once it holds in {} of {} samples (95 percent interval {low:.0} to {high:.0} \
             percent); the ratio is {median:.4} in the median, {p5:.4} to {p95:.4} in nine tenths \
             of them.",
            self.conclusion.sentence,
            plain.ratio(),
            swings.len(),
            joint.hold,
            joint.samples,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested() -> ConclusionTrials<'static> {
        let keys = |key: &str| VariedParameter::Machine(vec![key.to_owned()]);
        let ratios = [1.1, 1.1, 1.11, 1.2, 1.5, 0.9, 1.05, 0.5, 2.0, 3.0];
        ConclusionTrials {
            conclusion: Box::leak(Box::new(conclusions().unwrap().remove(0))),
            parameters: vec![keys("small"), keys("large"), keys("turning")],
            trials: { ratios.into_iter() }
                .map(|ratio| SensitivityTrial {
                    ratios: vec![ratio; 2],
                    reached: 1.0,
                })
                .collect(),
        }
    }

    #[test]
    fn swings_are_sorted_by_size() {
        let tested = tested();
        let swings = tested.swings();
        let names: Vec<String> = swings.iter().map(|s| s.parameter.name()).collect();
        assert_eq!(names, ["machine.large", "machine.turning", "machine.small"]);
        assert!(swings[0].holds() && !swings[0].fails());
        assert!(!swings[1].holds() && swings[1].fails());
    }

    #[test]
    fn samples_follow_the_ends() {
        let joint = tested().joint_result();
        assert_eq!((joint.samples, joint.hold), (3, 2));
        assert!((joint.percent - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(joint.quantiles[1], 2.0);
        assert!(joint.percent_95[0] < joint.percent && joint.percent < joint.percent_95[1]);
    }
}
