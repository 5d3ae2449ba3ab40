//! Histograms of errors as tables and figures.

use super::training::Lesson;
use crate::study::StudyError;
use consort_report::{Axis, Bar, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
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

fn spreads(lesson: &Lesson, kind: Kind) -> [&Spread; 2] {
    [kind(&lesson.seen), kind(&lesson.held_out)]
}

fn bins(lesson: &Lesson, kind: Kind, is_signed: bool) -> Vec<Bin> {
    let [seen, held_out] = spreads(lesson, kind);
    let both = seen.histogram.bins().zip(held_out.histogram.bins());
    let percent = |count: u64, of: &Spread| 100.0 * count as f64 / of.count.max(1) as f64;
    both.filter(|((low, ..), _)| is_signed || *low >= 0.0)
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
pub(super) fn table(lesson: &Lesson, kind: Kind, is_signed: bool) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("trained_percent", "Of errors on trained programs", "%"),
        Column::with_unit("held_out_percent", "Of errors on held-out programs", "%"),
    ];
    let mut table = Table::new("histogram", "Errors by size", columns)?;
    for bin in bins(lesson, kind, is_signed) {
        table.push(&bin.label, bin.percents.map(Cell::from).into())?;
    }
    Ok(table)
}

/// Figure `histogram`.
pub(super) fn figure(
    lesson: &Lesson,
    kind: Kind,
    is_signed: bool,
    title: &str,
) -> Result<Figure, StudyError> {
    let bins = bins(lesson, kind, is_signed);
    let series = |(i, name): (usize, &str)| BarSeries {
        name: name.to_owned(),
        bars: bins
            .iter()
            .map(|bin| Some(Bar::exact(bin.percents[i])))
            .collect(),
    };
    let bars = Bars {
        category: "Error, %".to_owned(),
        value: Axis::linear("Share of errors", Some("%")),
        baseline: 0.0,
        groups: bins.iter().map(|bin| bin.label.clone()).collect(),
        series: KINDS.into_iter().enumerate().map(series).collect(),
    };
    let text = "One error per thread and quantum; bins of 2 percent.";
    Ok(Figure::new("histogram", title, text, 1, Plot::Bars(bars))?)
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
