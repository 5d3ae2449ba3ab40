//! One measure of every program under every mapping, over all of its co-runners: M1 and M4.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING`. Table `programs`: rows `PROGRAM/MAPPING`, and
//! `PROGRAM/alone`; columns the measure's key (mean over co-runners, interval over seeds), `least`
//! and `most` (means over seeds, the co-runner with the least and the most), `co_runners`. Table
//! `variation`: rows programs; column `percent`, the excess of the largest mean over co-runners
//! over the smallest, and `lowest` and `highest`, the mappings of these. Figure `programs`.

use super::measures::{L1D, MappingMeasure, UTILISATION};
use super::plan::{MAPPINGS, PROGRAMS};
use super::sweep::{self, PairRuns};
use crate::frame::interval_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// M1: misses of the L1 data cache of each program under each mapping.
pub(in crate::studies) fn m1(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    run(context, file, L1D)
}

/// M4: share of the cores that each program has under each mapping.
pub(in crate::studies) fn m4(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    run(context, file, UTILISATION)
}

fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
    measure: MappingMeasure,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let view = ProgramMeasureView {
        runs: &runs,
        measure,
    };
    Ok(runs.output(
        vec![view.headline()?, view.table(file)?, view.variation(file)?],
        vec![view.figure(file)?],
        vec![view.sentence()],
    ))
}

/// One measure and how it is told.
pub(in crate::studies) struct ProgramMeasureView<'a> {
    pub runs: &'a PairRuns,
    pub measure: MappingMeasure,
}

/// The range of a program's means over mappings.
pub(in crate::studies) struct MappingRange {
    /// The program.
    pub program: &'static str,
    /// The mapping with the smallest mean and the one with the largest.
    pub at: [&'static str; 2],
    /// Largest by smallest, less 1.
    pub more: f64,
}

impl ProgramMeasureView<'_> {
    fn over_seeds(&self, program: &str, mapping: &str) -> Vec<f64> {
        self.runs
            .over_co_runners(program, mapping, self.measure.value)
    }

    /// The bars of the source's chart: each program under each mapping, mean over co-runners.
    fn headline(&self) -> Result<ReportTable, StudyError> {
        let mut headline = HeadlineTable::new()?;
        for program in PROGRAMS {
            for mapping in MAPPINGS {
                let cell = interval_cell(&self.over_seeds(program, mapping));
                let row = format!("{program}, {mapping}");
                headline.add(&row, self.measure.unit_name(), cell)?;
            }
        }
        Ok(headline.into_table())
    }

    /// Table `programs`.
    fn table(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let mut rows = Vec::new();
        for program in PROGRAMS {
            rows.push((format!("{program}/alone"), self.alone(program)));
            for mapping in MAPPINGS {
                rows.push((format!("{program}/{mapping}"), self.row(program, mapping)));
            }
        }
        file.fill_table("programs", rows)
    }

    fn alone(&self, program: &str) -> Vec<Cell> {
        let alone = self.runs.alone(program);
        let value = alone.map_or(f64::NAN, |alone| (self.measure.value)(&alone.with));
        let none = || Cell::missing("the program is alone");
        vec![value.into(), none(), none(), 0.into()]
    }

    fn row(&self, program: &str, mapping: &str) -> Vec<Cell> {
        let of = |(pair, place)| mean(&self.runs.values(pair, place, mapping, self.measure.value));
        let each: Vec<f64> = self.runs.with(program).filter_map(of).collect();
        let least = each.iter().copied().fold(f64::INFINITY, f64::min);
        let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        vec![
            interval_cell(&self.over_seeds(program, mapping)),
            least.into(),
            most.into(),
            Cell::Count(each.len() as u64),
        ]
    }

    /// Range of the means under different mappings, for each program.
    pub fn ranges(&self) -> Vec<MappingRange> {
        let of = |program: &'static str| {
            let value = |m: &&'static str| Some((*m, mean(&self.over_seeds(program, m))?));
            let mut all: Vec<(&str, f64)> = MAPPINGS.iter().filter_map(value).collect();
            all.sort_by(|a, b| a.1.total_cmp(&b.1));
            let (low, high) = (all.first()?, all.last()?);
            let more = if high.1 > 0.0 {
                high.1 / low.1 - 1.0
            } else {
                0.0
            };
            Some(MappingRange {
                program,
                at: [low.0, high.0],
                more,
            })
        };
        PROGRAMS.into_iter().filter_map(of).collect()
    }

    /// Sentence on the programs for which mappings differ most and least.
    pub fn sentence(&self) -> String {
        let mut ranges = self.ranges();
        ranges.sort_by(|a, b| b.more.total_cmp(&a.more));
        let of = |range: &MappingRange| {
            let (percent, [low, high]) = (100.0 * range.more, range.at);
            format!("{} {percent:.1} % ({low} to {high})", range.program)
        };
        let all: Vec<String> = ranges.iter().map(of).collect();
        format!(
            "{}: largest over smallest mean under any mapping, and these mappings: {}.",
            self.measure.title,
            all.join(", "),
        )
    }

    /// Table `variation`.
    fn variation(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let row = |range: MappingRange| {
            let [low, high] = range.at;
            let cells = vec![(100.0 * range.more).into(), low.into(), high.into()];
            (range.program, cells)
        };
        file.fill_table("variation", self.ranges().into_iter().map(row))
    }

    /// Figure `programs`.
    fn figure(&self, file: &StudyFile) -> Result<Figure, StudyError> {
        let series = MAPPINGS.map(|mapping| {
            let cell = |program: &&str| interval_cell(&self.over_seeds(program, mapping));
            (mapping.to_owned(), PROGRAMS.iter().map(cell).collect())
        });
        let groups = PROGRAMS.map(str::to_owned).to_vec();
        file.bar_figure("programs", self.runs.seeds, groups, series)
    }
}
