//! Tables of the conclusions that were tested.

use super::tested::{ConclusionTrials, ConclusionVerdict, JointResult, SensitivityTrial};
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_data::{Cell, HeadlineTable, ReportColumn, ReportTable};

/// Share of the samples in which each conclusion holds with everything varied.
pub(super) fn headline(all: &[ConclusionTrials<'_>]) -> Result<ReportTable, StudyError> {
    let mut table = HeadlineTable::new()?;
    for tested in all {
        let joint = JointResult::from_samples(tested.samples());
        let row = format!("{}, everything varied", tested.headline.sentence);
        table.add(&row, "percent of samples", joint.percent)?;
    }
    Ok(table.into_table())
}

/// Table `headlines`: a row per conclusion.
pub(super) fn conclusions(
    file: &StudyFile,
    all: &[ConclusionTrials<'_>],
) -> Result<ReportTable, StudyError> {
    let rows = all
        .iter()
        .map(|tested| (&tested.headline.key, conclusion(tested)));
    file.fill_table("headlines", rows)
}

fn conclusion(tested: &ConclusionTrials<'_>) -> Vec<Cell> {
    let swings = tested.swings();
    let hold = swings.iter().filter(|swing| swing.holds()).count() as u64;
    let fail = swings.iter().filter(|swing| swing.fails()).count() as u64;
    let joint = JointResult::from_samples(tested.samples());
    let [low, high] = joint.percent_95;
    let [p5, median, p95] = joint.quantiles;
    vec![
        ratio(tested.plain()),
        tested.plain().verdict().text().into(),
        (swings.len() as u64).into(),
        hold.into(),
        fail.into(),
        joint.percent.into(),
        low.into(),
        high.into(),
        (joint.samples as u64).into(),
        p5.into(),
        median.into(),
        p95.into(),
        (tested.plain().ratios.len() as u64).into(),
    ]
}

/// The table of one conclusion, named after it: a row per parameter, by swing.
pub(super) fn swings(tested: &ConclusionTrials<'_>) -> Result<ReportTable, StudyError> {
    let columns = vec![
        ReportColumn::plain("swing", "Swing"),
        ReportColumn::plain("low", "Ratio at the low end"),
        ReportColumn::plain("high", "Ratio at the high end"),
        ReportColumn::plain("low_verdict", "Conclusion at the low end"),
        ReportColumn::plain("high_verdict", "Conclusion at the high end"),
        ReportColumn::plain("low_factor", "Factor at the low end"),
        ReportColumn::plain("high_factor", "Factor at the high end"),
    ];
    let title = format!("{}: one parameter at a time", tested.headline.sentence);
    let mut table = ReportTable::new(&tested.headline.key, &title, columns)?;
    for swing in tested.swings() {
        let [low, high] = swing.ends;
        let cells = vec![
            swing.size().into(),
            ratio(low),
            ratio(high),
            low.verdict().text().into(),
            high.verdict().text().into(),
            low.reached.into(),
            high.reached.into(),
        ];
        table.push(&swing.parameter.name(), cells)?;
    }
    Ok(table)
}

fn ratio(trial: &SensitivityTrial) -> Cell {
    trial
        .interval()
        .map_or_else(|| Cell::missing("no runs"), Cell::from)
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
