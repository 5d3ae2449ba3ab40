//! Histograms of errors as tables and figures.

use super::errors::About;
use super::training::Lesson;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_report::{Cell, Figure, Table};
use consort_train::{Errors, Spread};

/// Relation of the programs of a row of errors to the model.
pub(super) const KINDS: [&str; 2] = ["trained", "held-out"];

/// Selection of one kind of errors.
pub(super) type Kind = fn(&Errors) -> &Spread;

/// Bins that can hold something: all, or where errors have no sign those from 0.
struct Bin {
    label: String,
    /// Share of the errors of each of [`KINDS`] in it, percent.
    percents: [f64; 2],
}

fn bins(lesson: &Lesson, about: &About) -> Vec<Bin> {
    let [seen, held_out] = [&lesson.seen, &lesson.held_out].map(about.kind);
    let both = seen.histogram.bins().zip(held_out.histogram.bins());
    let percent = |count: u64, of: &Spread| 100.0 * count as f64 / of.count.max(1) as f64;
    both.filter(|((low, ..), _)| about.is_signed || *low >= 0.0)
        .map(|((low, high, seen_count), (.., held_out_count))| Bin {
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
pub(super) fn table(file: &StudyFile, lesson: &Lesson, about: &About) -> Result<Table, StudyError> {
    let bins = bins(lesson, about).into_iter();
    file.table(
        "histogram",
        bins.map(|bin| (bin.label, bin.percents.map(Cell::from).into())),
    )
}

/// Figure `histogram`.
pub(in crate::studies) fn figure(
    file: &StudyFile,
    lesson: &Lesson,
    about: &About,
) -> Result<Figure, StudyError> {
    let bins = bins(lesson, about);
    let series = |(i, name): (usize, &str)| {
        let cells = bins.iter().map(|bin| bin.percents[i].into());
        (name.to_owned(), cells.collect())
    };
    let groups = bins.iter().map(|bin| bin.label.clone()).collect();
    file.bars(
        "histogram",
        1,
        groups,
        KINDS.into_iter().enumerate().map(series),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_bins_are_named_by_their_one_edge() {
        let labels = Spread::of(&[]).histogram;
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
