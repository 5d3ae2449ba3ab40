//! A study for tests: sums of small numbers, counted.

use crate::study::{Study, StudyError, StudyInfo, StudyOutput, StudyReport};
use consort_core::stats::ConfidenceInterval;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Figure, HeadlineTable, Plot, ReportColumn, ReportTable,
};
use consort_experiment::Scale;
use consort_experiment::{ExperimentContext, SharedResults};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Results that the tests of this crate share; for contexts with two workers and the studies' own
/// settings only.
pub(crate) fn made() -> SharedResults {
    static MADE: LazyLock<SharedResults> = LazyLock::new(SharedResults::default);
    MADE.clone()
}

/// A number of workers.
pub(crate) fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Sums a few numbers that follow from the seed; counts its runs.
pub(crate) struct Sums {
    info: StudyInfo,
    pub(crate) times_run: AtomicUsize,
}

impl Sums {
    pub(crate) fn named(id: &str) -> Self {
        let info = StudyInfo {
            id: id.to_owned(),
            title: "Sums <of> small numbers".to_owned(),
            source: "A & B, \"On sums\"".to_owned(),
            section: "section 1".to_owned(),
            original: "Two sums on paper.".to_owned(),
            differs: "Nothing.".to_owned(),
            default_seed: 7,
            full_seconds_hint: 1,
        };
        Self {
            info,
            times_run: AtomicUsize::new(0),
        }
    }

    pub(crate) fn times_run(&self) -> usize {
        self.times_run.load(Ordering::Relaxed)
    }
}

impl Study for Sums {
    fn info(&self) -> &StudyInfo {
        &self.info
    }

    fn run(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
        self.times_run.fetch_add(1, Ordering::Relaxed);
        let jobs: Vec<u64> = (1..=context.by_scale(3, 10)).collect();
        let sums = context.map(&jobs, |job| (job * context.seed()) as f64 / 3.0)?;
        Ok(StudyOutput {
            tables: vec![headline(&sums)?, table(&sums)?],
            figures: vec![figure(&sums)?],
            notes: vec!["a < b".to_owned()],
            runs: jobs.len(),
        })
    }
}

fn headline(sums: &[f64]) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    headline.add("all sums", "ratio", sums.iter().sum::<f64>())?;
    Ok(headline.into_table())
}

fn table(sums: &[f64]) -> Result<ReportTable, StudyError> {
    let columns = vec![
        ReportColumn::with_unit("sum", "Sum", "units"),
        ReportColumn::plain("kind", "Kind"),
    ];
    let mut table = ReportTable::new("sums", "Sums & more", columns)?;
    let all = ConfidenceInterval::from_values(sums).unwrap();
    table.push("mean", vec![all.into(), "mean".into()])?;
    table.push("first", vec![sums[0].into(), "<first>".into()])?;
    Ok(table)
}

fn figure(sums: &[f64]) -> Result<Figure, StudyError> {
    let bars = BarChart {
        category: "Number".to_owned(),
        value: Axis::linear("Sum", Some("units")),
        baseline: 0.0,
        groups: (1..=sums.len()).map(|n| n.to_string()).collect(),
        series: vec![BarSeries {
            name: "sum".to_owned(),
            bars: sums.iter().map(|v| Some(Bar::exact(*v))).collect(),
        }],
    };
    Ok(Figure::new("sums", "Sums", "", 1, Plot::Bars(bars))?)
}

/// The report of a quick run of [`Sums`].
pub(crate) fn report(id: &'static str) -> StudyReport {
    let study = Sums::named(id);
    let context = ExperimentContext::new(7, Scale::Quick, workers(1), &|_| ());
    let output = study.run(&context).unwrap();
    StudyReport::new(&study, &context, output)
}
