//! Verdicts on a value of ours next to a published one: units, direction, size.

use super::file::PublishedValue;
use consort_core::stats::ConfidenceInterval;
use consort_data::Cell;
use std::collections::BTreeSet;

/// Direction and size of a value of ours next to a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// True if ours is on the same side of "no difference", beyond its own interval; `None` for a
    /// level.
    pub(super) direction: Option<bool>,
    /// True if ours is within a third of the published value, or of the nearer end of its range.
    pub(super) within_third: bool,
}

/// Units of levels: amounts that are no comparison of two things and have no direction.
const LEVELS: [&str; 5] = [
    "share",
    "cycles",
    "per cycle",
    "per 100 cycles",
    "operations per cycle",
];

/// Judges a number in the published unit, with the half width of its 95 percent interval.
pub(super) fn judge_number(
    (ours, half): (f64, f64),
    ends: (f64, f64),
    unit: &str,
    is_level: bool,
) -> Verdict {
    let (low, high) = ends;
    let is_level = is_level || LEVELS.contains(&unit);
    // Ratios are next to 1, percentages and correlations to 0.
    let neutral = if unit == "ratio" { 1.0 } else { 0.0 };
    // A published "no difference" is met by less than one percent either way.
    let tolerance = if unit == "percent" { 1.0 } else { 0.01 };
    let says_none = low <= neutral && neutral <= high && !is_level;
    let slack = |end: f64| {
        let third = if end == 0.0 { high.abs() } else { end.abs() } / 3.0;
        if says_none {
            third.max(tolerance)
        } else {
            third
        }
    };
    let same_side = match says_none {
        true => (low - tolerance..=high + tolerance).contains(&ours),
        false => (ours > neutral) == (low > neutral) && (ours - neutral).abs() > half,
    };
    Verdict {
        direction: (!is_level).then_some(same_side),
        within_third: (low - slack(low)..=high + slack(high)).contains(&ours),
    }
}

/// Judges a text as a set of items: the direction agrees if at least half of the published items are
/// among ours, the size if the items are the same.
pub(super) fn judge_text(ours: &str, theirs: &str) -> Verdict {
    let (ours, theirs) = (text_items(ours), text_items(theirs));
    let common = ours.intersection(&theirs).count();
    Verdict {
        direction: Some(common > 0 && 2 * common >= theirs.len()),
        within_third: ours == theirs,
    }
}

/// Items of a text: groups in braces, else parts between semicolons, commas or spaces, whichever the
/// text has first in this order. The order of items, and of parts of a group, is left out.
fn text_items(text: &str) -> BTreeSet<String> {
    let parts = |text: &str, separator: char| -> Vec<String> {
        let parts = text.split(separator).map(|part| part.trim().to_lowercase());
        parts.filter(|part| !part.is_empty()).collect()
    };
    if text.contains('{') {
        let groups = text.split('}').filter_map(|group| group.split_once('{'));
        let sorted = groups.map(|(_, members)| {
            let mut members = parts(members, ',');
            members.sort();
            members.join(", ")
        });
        return sorted.collect();
    }
    let separator = [';', ','].into_iter().find(|c| text.contains(*c));
    parts(text, separator.unwrap_or(' ')).into_iter().collect()
}

/// A cell in the published unit.
///
/// # Errors
/// Units that do not convert.
pub(super) fn convert(
    cell: Cell,
    ours: Option<&str>,
    theirs: Option<&str>,
) -> Result<Cell, String> {
    let plain = |unit: &str| match unit {
        "%" => "percent".to_owned(),
        unit if unit.starts_with("percent of ") || unit.starts_with("% ") => "percent".to_owned(),
        unit => unit.to_owned(),
    };
    let Some(theirs) = theirs.map(plain) else {
        return Ok(cell);
    };
    // A column without a unit has plain ratios.
    let ours = ours.map_or_else(|| "ratio".to_owned(), plain);
    let (factor, shift) = match (ours.as_str(), theirs.as_str()) {
        (one, other) if one == other => return Ok(cell),
        ("per 100 cycles", "per cycle") => (0.01, 0.0),
        ("share", "percent") => (100.0, 0.0),
        ("percent", "share") => (0.01, 0.0),
        ("ratio", "percent") => (100.0, -100.0),
        ("ratio", "share" | "operations per cycle" | "correlation") => return Ok(cell),
        ("percent", "ratio") => (0.01, 1.0),
        _ => return Err(format!("ours is in '{ours}', not in '{theirs}'")),
    };
    Ok(match cell {
        Cell::Interval(one) => Cell::Interval(ConfidenceInterval {
            mean: one.mean * factor + shift,
            ci95: one.ci95.map(|half| half * factor),
            n: one.n,
        }),
        other => match other.value() {
            Some(value) => Cell::Number(value * factor + shift),
            None => other,
        },
    })
}

/// Distance of a number from a published one, or from the nearer end of its range.
pub(super) fn difference(ours: f64, theirs: &PublishedValue) -> Option<f64> {
    let (low, high) = theirs.ends()?;
    Some(ours - ours.clamp(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(ours: f64, ends: (f64, f64), unit: &str) -> (Option<bool>, bool) {
        let verdict = judge_number((ours, 0.0), ends, unit, false);
        (verdict.direction, verdict.within_third)
    }

    #[test]
    fn gains_agree_by_sign_and_within_a_third() {
        assert_eq!(number(10.7, (8.0, 8.0), "percent"), (Some(true), false));
        assert_eq!(number(10.6, (8.0, 8.0), "percent"), (Some(true), true));
        assert_eq!(number(-1.0, (8.0, 8.0), "percent"), (Some(false), false));
        assert_eq!(number(-30.0, (-32.0, -32.0), "percent"), (Some(true), true));
        // The ends of a range have a third each: 4 to 21.3.
        assert_eq!(number(4.1, (6.0, 16.0), "percent"), (Some(true), true));
        assert_eq!(number(21.4, (6.0, 16.0), "percent"), (Some(true), false));
    }

    #[test]
    fn difference_within_its_interval_is_none() {
        let verdict = |half| judge_number((2.0, half), (2.0, 2.0), "percent", false);
        assert_eq!(verdict(1.9).direction, Some(true));
        assert_eq!(verdict(2.1).direction, Some(false));
        assert!(verdict(2.1).within_third);
    }

    #[test]
    fn ratios_agree_on_one_side_of_one() {
        assert_eq!(number(1.35, (1.5, 1.5), "ratio"), (Some(true), true));
        assert_eq!(number(0.9, (1.1, 1.1), "ratio"), (Some(false), true));
    }

    #[test]
    fn no_difference_is_met_within_a_percent() {
        assert_eq!(number(0.9, (0.0, 0.0), "percent"), (Some(true), true));
        assert_eq!(number(10.0, (0.0, 0.0), "percent"), (Some(false), false));
    }

    #[test]
    fn levels_have_no_direction() {
        assert_eq!(number(0.09, (0.08, 0.08), "share"), (None, true));
        assert_eq!(number(0.013, (0.0, 0.01), "share"), (None, true));
        let error = judge_number((9.4, 0.0), (13.4, 13.4), "percent", true);
        assert_eq!((error.direction, error.within_third), (None, true));
    }

    #[test]
    fn texts_are_sets_of_items() {
        let judge = |ours, theirs| {
            let verdict = judge_text(ours, theirs);
            (verdict.direction, verdict.within_third)
        };
        assert_eq!(judge("radix fft lu", "fft lu barnes"), (Some(true), false));
        assert_eq!(
            judge("b least; a most", "a most; b least"),
            (Some(true), true)
        );
        let theirs = "{a 3, b 3} {c 2, d 6}";
        assert_eq!(judge("{d 6, c 2} {b 3, a 3}", theirs), (Some(true), true));
        assert_eq!(judge("{a 3, c 3}", theirs), (Some(false), false));
    }

    #[test]
    fn units_convert_or_are_refused() {
        let one = |ours, theirs| convert(Cell::Number(2.0), Some(ours), Some(theirs));
        assert_eq!(one("ratio", "percent"), Ok(Cell::Number(100.0)));
        assert_eq!(one("per 100 cycles", "per cycle"), Ok(Cell::Number(0.02)));
        assert_eq!(one("% of cycles", "percent"), Ok(Cell::Number(2.0)));
        let plain = |theirs| convert(Cell::Number(1.5), None, Some(theirs));
        assert_eq!(plain("percent"), Ok(Cell::Number(50.0)));
        assert_eq!(plain("share"), Ok(Cell::Number(1.5)));
        assert_eq!(
            one("s", "percent"),
            Err("ours is in 's', not in 'percent'".to_owned())
        );
    }
}
