//! One value of a table.

use consort_core::stats::{ConfidenceInterval, RatioInterval};
use serde::{Deserialize, Serialize};

/// One value of a table. In JSON counts and numbers are numbers, an interval is `{mean, ci95, n}`,
/// text is a string, and what is missing is `{missing}` with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A count, written without decimals.
    Count(u64),
    /// A number in the column's unit.
    Number(f64),
    /// A mean over runs, in the column's unit.
    Interval(ConfidenceInterval),
    /// There is no value, and why.
    Missing {
        /// The reason.
        missing: String,
    },
    /// Text.
    Text(String),
}

impl Cell {
    /// A cell without a value, and why.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self::Missing {
            missing: reason.into(),
        }
    }

    /// The count, the number, or the mean of an interval.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number(value) => Some(*value),
            Self::Interval(interval) => Some(interval.mean),
            Self::Missing { .. } | Self::Text(_) => None,
        }
    }

    /// The half width of the 95 percent interval.
    pub fn ci95(&self) -> Option<f64> {
        match self {
            Self::Interval(interval) => interval.ci95,
            _ => None,
        }
    }

    /// The number of runs.
    pub fn n(&self) -> Option<usize> {
        match self {
            Self::Interval(interval) => Some(interval.n),
            _ => None,
        }
    }

    /// For people: `1.234 ± 0.012`, the text, or a dash.
    pub fn text(&self) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Number(value) => number_text(*value, decimals(*value)),
            Self::Interval(interval) => {
                let half = interval.ci95.unwrap_or_default();
                let places = decimals(interval.mean).min(supported_decimals(half));
                let mean = number_text(interval.mean, places);
                match interval.ci95 {
                    Some(half) => format!("{mean} ± {}", half_text(half, places)),
                    None => mean,
                }
            }
            Self::Missing { .. } => "-".to_owned(),
            Self::Text(text) => text.clone(),
        }
    }

    /// The same cell, or a missing one if a number is not finite, because JSON cannot hold it.
    pub(crate) fn reject_non_finite(self) -> Self {
        let numbers = [self.value(), self.ci95()];
        if numbers.into_iter().flatten().all(f64::is_finite) {
            self
        } else {
            Self::missing("not a finite number")
        }
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<ConfidenceInterval> for Cell {
    fn from(interval: ConfidenceInterval) -> Self {
        Self::Interval(interval)
    }
}

impl From<RatioInterval> for Cell {
    /// The geometric mean with the upper, longer half of its interval.
    fn from(ratio: RatioInterval) -> Self {
        Self::Interval(ratio.to_interval())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Magnitudes outside which numbers are written with an exponent.
const PLAIN: std::ops::Range<f64> = 1e-4..1e9;

/// Half a width with the decimals of its mean; below the last of them, a bound.
fn half_text(half: f64, places: usize) -> String {
    let text = format!("{half:.places$}");
    let shown_as_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    if half > 0.0 && shown_as_zero && places > 0 {
        format!("<0.{:0>places$}", 1)
    } else if half >= PLAIN.end {
        number_text(half, places)
    } else {
        text
    }
}

/// Decimals that show four significant digits, between zero and six.
fn decimals(value: f64) -> usize {
    let size = value.abs();
    if size == 0.0 {
        return 0;
    }
    let bounds = [1000.0, 100.0, 10.0, 1.0, 0.1, 0.01];
    bounds.iter().take_while(|bound| size < **bound).count()
}

/// Decimals that a half width supports: those with which it shows two significant digits.
fn supported_decimals(half: f64) -> usize {
    let bounds = [10.0, 1.0, 0.1, 0.01, 0.001, 0.000_1];
    match half == 0.0 {
        true => bounds.len(),
        false => bounds.iter().take_while(|bound| half < **bound).count(),
    }
}

/// A number for people, with a minus sign only if its digits are not all 0.
pub(crate) fn number_text(value: f64, places: usize) -> String {
    let size = value.abs();
    if size != 0.0 && !PLAIN.contains(&size) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.places$}");
    let is_zero = text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    if is_zero {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cell: impl Into<Cell>, expect: &str) {
        assert_eq!(cell.into().text(), expect);
    }

    #[test]
    fn numbers_show_four_digits() {
        check(0.0, "0");
        check(1.0, "1.000");
        check(1, "1");
        check(-0.012_345, "-0.01235");
        check(0.000_012, "1.200e-5");
        check(123.456, "123.5");
        check(4_567_890.0, "4567890");
        check(2e12, "2.000e12");
        assert_eq!(number_text(-0.000_4, 3), "0.000");
    }

    #[test]
    fn intervals_show_digits_that_they_support() {
        let interval = ConfidenceInterval::from_values(&[10.0, 12.0, 14.0]).unwrap();
        check(interval, "12.0 ± 5.0");
        check(
            ConfidenceInterval::from_values(&[-40.0, 70.0]).unwrap(),
            "15 ± 699",
        );
        check(ConfidenceInterval::from_values(&[10.0]).unwrap(), "10.00");
        check(
            RatioInterval::from_ratios(&[1.5, 1.5]).unwrap(),
            "1.500 ± 0.000",
        );
        check(
            ConfidenceInterval::from_values(&[0.5, 0.500_000_1]).unwrap(),
            "0.5000 ± <0.0001",
        );
    }

    #[test]
    fn each_kind_survives_json() {
        let interval = ConfidenceInterval::from_values(&[0.1, 0.3]).unwrap();
        let single = ConfidenceInterval::from_values(&[0.1]).unwrap();
        let cells = [
            Cell::from(0.1 + 0.2),
            Cell::from(10.0),
            Cell::from(10),
            Cell::from(u64::MAX),
            interval.into(),
            single.into(),
            "text".into(),
            Cell::missing("why"),
        ];
        let json = serde_json::to_string(&cells).unwrap();
        assert!(json.contains(r#"{"missing":"why"}"#), "{json}");
        assert!(json.contains(r#""ci95":null,"n":1"#), "{json}");
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&json).unwrap(), cells);
    }

    #[test]
    fn what_files_cannot_hold_is_missing() {
        assert_eq!(Cell::from(f64::NAN).reject_non_finite().value(), None);
        assert_eq!(Cell::from(1.0).reject_non_finite().value(), Some(1.0));
    }
}
