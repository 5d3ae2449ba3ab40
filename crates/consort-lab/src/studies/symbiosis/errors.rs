//! Sizes and histograms of one kind of error, for S2 and S3.

use super::training::TrainingResult;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::train::{ErrorSpread, LevelErrors};

/// Relation of the programs of a row of errors to the model.
const KINDS: [&str; 2] = ["trained", "held-out"];

/// Selection of one kind of errors.
type ErrorSelector = fn(&LevelErrors) -> &ErrorSpread;

/// Kind of error, with its title.
pub(in crate::studies) struct ErrorAspect {
    kind: ErrorSelector,
    /// True where an error can be below 0.
    pub is_signed: bool,
    pub title: &'static str,
}

/// Forward errors.
pub(in crate::studies) const FORWARD: ErrorAspect = ErrorAspect {
    kind: |errors| &errors.forward,
    is_signed: true,
    title: "Errors of predicted slowdowns",
};

/// Inverse errors.
pub(in crate::studies) const INVERSE: ErrorAspect = ErrorAspect {
    kind: |errors| &errors.inverse,
    is_signed: false,
    title: "Cycles that the inverse model puts under a wrong cause",
};

/// The sizes of errors of this model.
pub(in crate::studies) fn headline(
    lesson: &TrainingResult,
    about: &ErrorAspect,
    model: &str,
) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (name, errors) in KINDS.into_iter().zip([&lesson.seen, &lesson.held_out]) {
        let spread = (about.kind)(errors);
        let mean = spread.size.mean_absolute_percent;
        headline.add(
            &format!("mean error of the {model}, {name}"),
            "percent",
            mean,
        )?;
        let row = format!("errors within 10 percent, {name}");
        headline.add(&row, "percent", within(spread, 10.0))?;
    }
    Ok(headline.into_table())
}

/// Tables `errors` and `histogram`.
pub(in crate::studies) fn tables(
    file: &StudyFile,
    lesson: &TrainingResult,
    about: &ErrorAspect,
) -> Result<Vec<ReportTable>, StudyError> {
    Ok(vec![
        sizes(file, lesson, about)?,
        histogram(file, lesson, about)?,
    ])
}

fn sizes(
    file: &StudyFile,
    lesson: &TrainingResult,
    about: &ErrorAspect,
) -> Result<ReportTable, StudyError> {
    let both = KINDS.into_iter().zip([&lesson.seen, &lesson.held_out]);
    let rows = both.map(|(name, errors)| {
        let spread = (about.kind)(errors);
        let cells = vec![
            spread.size.mean_absolute_percent.into(),
            spread.size.p95_percent.into(),
            within(spread, 10.0).into(),
            (spread.count as u64).into(),
        ];
        (name, cells)
    });
    file.fill_table("errors", rows)
}

/// Percent of the errors in bins that lie within this much, in percent.
fn within(spread: &ErrorSpread, percent: f64) -> f64 {
    let inside = |&(low, high, _): &(f64, f64, u64)| low >= -percent && high <= percent;
    let count: u64 = spread
        .histogram
        .bins()
        .filter(inside)
        .map(|bin| bin.2)
        .sum();
    100.0 * count as f64 / spread.count.max(1) as f64
}

/// Bins that can hold something: all, or where errors have no sign those from 0.
struct ErrorBin {
    label: String,
    /// Share of the errors of each of [`KINDS`] in it, percent.
    percents: [f64; 2],
}

fn bins(lesson: &TrainingResult, about: &ErrorAspect) -> Vec<ErrorBin> {
    let [seen, held_out] = [&lesson.seen, &lesson.held_out].map(about.kind);
    let both = seen.histogram.bins().zip(held_out.histogram.bins());
    let percent = |count: u64, of: &ErrorSpread| 100.0 * count as f64 / of.count.max(1) as f64;
    both.filter(|((low, ..), _)| about.is_signed || *low >= 0.0)
        .map(|((low, high, seen_count), (.., held_out_count))| ErrorBin {
            label: label(low, high),
            percents: [percent(seen_count, seen), percent(held_out_count, held_out)],
        })
        .collect()
}

/// A bin's edges in percent, for example `-2..0`.
fn label(low: f64, high: f64) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{low:.0}..{high:.0}"),
        (true, false) => format!("from {low:.0}"),
        _ => format!("below {high:.0}"),
    }
}

/// Table `histogram`.
fn histogram(
    file: &StudyFile,
    lesson: &TrainingResult,
    about: &ErrorAspect,
) -> Result<ReportTable, StudyError> {
    let bins = bins(lesson, about).into_iter();
    file.fill_table(
        "histogram",
        bins.map(|bin| (bin.label, bin.percents.map(Cell::from).into())),
    )
}

/// Figure `histogram`.
pub(in crate::studies) fn figure(
    file: &StudyFile,
    lesson: &TrainingResult,
    about: &ErrorAspect,
) -> Result<Figure, StudyError> {
    let bins = bins(lesson, about);
    let series = |(i, name): (usize, &str)| {
        let cells = bins.iter().map(|bin| bin.percents[i].into());
        (name.to_owned(), cells.collect())
    };
    let groups = bins.iter().map(|bin| bin.label.clone()).collect();
    file.bar_figure(
        "histogram",
        1,
        groups,
        KINDS.into_iter().enumerate().map(series),
    )
}

/// One sentence on both.
pub(in crate::studies) fn note(lesson: &TrainingResult, about: &ErrorAspect) -> String {
    let of = |errors: &LevelErrors| {
        let size = (about.kind)(errors).size;
        format!(
            "{:.1} % (95 percent within {:.1} %)",
            size.mean_absolute_percent, size.p95_percent
        )
    };
    format!(
        "{}: on trained programs {} on average, on held-out programs {}, over {} pairs.",
        about.title,
        of(&lesson.seen),
        of(&lesson.held_out),
        lesson.runs,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_counts_whole_bins() {
        let spread = ErrorSpread::from_percents(&[-11.0, -9.0, 0.0, 9.9, 10.1]);
        assert_eq!(within(&spread, 10.0), 60.0);
    }

    #[test]
    fn open_bins_are_named_by_their_one_edge() {
        let labels = ErrorSpread::from_percents(&[]).histogram;
        let labels: Vec<String> = labels
            .bins()
            .map(|(low, high, _)| label(low, high))
            .collect();
        assert_eq!(
            (labels[0].as_str(), labels[1].as_str()),
            ("below -30", "-30..-28")
        );
        assert_eq!(labels.last().unwrap(), "from 30");
    }
}
