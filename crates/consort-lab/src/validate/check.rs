//! One figure of ours next to a published one.

use consort_data::long::{LongRows, RowOwner};
use consort_data::{Cell, Table};
use serde::Serialize;

/// Relative errors from here on are shown as a multiple, because percents would be hard to read.
const MANY_TIMES: f64 = 9.0;

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedFigure {
    /// A number.
    Value(f64),
    /// Any number from `low` to `high`.
    Range {
        /// Smallest number that agrees.
        low: f64,
        /// Largest number that agrees.
        high: f64,
    },
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// An order; ours is the share of pairs in the opposite order.
    Ordering(String),
}

impl PublishedFigure {
    /// The published value that is nearest to ours.
    fn nearest(&self, ours: f64) -> f64 {
        match *self {
            Self::Value(value) => value,
            Self::Range { low, high } => ours.max(low).min(high),
            Self::AtLeast(least) => ours.max(least),
            Self::AtMost(most) => ours.min(most),
            Self::Ordering(_) => 0.0,
        }
    }

    /// For people: `1.5`, `1 to 2`, `at least 3`.
    pub fn text(&self) -> String {
        let number = |value: f64| Cell::from(value).text();
        match self {
            Self::Value(value) => number(*value),
            Self::Range { low, high } => format!("{} to {}", number(*low), number(*high)),
            Self::AtLeast(least) => format!("at least {}", number(*least)),
            Self::AtMost(most) => format!("at most {}", number(*most)),
            Self::Ordering(order) => order.clone(),
        }
    }
}

/// Meaning of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckErrorKind {
    /// (ours − published)/|published|.
    Relative,
    /// ours − published, in the check's unit.
    Absolute,
    /// A distance between distributions; ours itself is the error.
    Distance,
}

/// Errors that still count as agreement. They are fixed per kind of figure; docs/research/validation.md
/// names those that were set with a result in view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance {
    kind: CheckErrorKind,
    allowed: f64,
    /// Differences up to this one agree whatever the error, in the check's unit.
    floor: f64,
}

impl Tolerance {
    const fn new(kind: CheckErrorKind, allowed: f64, floor: f64) -> Self {
        Self {
            kind,
            allowed,
            floor,
        }
    }

    pub(crate) const fn relative(allowed: f64) -> Self {
        Self::new(CheckErrorKind::Relative, allowed, 0.0)
    }

    /// Relative, except that differences up to `floor` always agree.
    pub(crate) const fn relative_above(allowed: f64, floor: f64) -> Self {
        Self::new(CheckErrorKind::Relative, allowed, floor)
    }

    pub(crate) const fn absolute(allowed: f64) -> Self {
        Self::new(CheckErrorKind::Absolute, allowed, 0.0)
    }

    /// For distances: the published figure is the distance that still counts as none.
    pub(crate) const fn distance() -> Self {
        Self::new(CheckErrorKind::Distance, 0.0, 0.0)
    }

    fn judge(self, published: &PublishedFigure, ours: f64) -> (Option<f64>, bool) {
        let nearest = published.nearest(ours);
        let difference = ours - nearest;
        let error = match self.kind {
            CheckErrorKind::Relative => difference / nearest.abs(),
            CheckErrorKind::Absolute => difference,
            CheckErrorKind::Distance => ours,
        };
        let within = difference.abs() <= self.floor
            || (self.kind != CheckErrorKind::Distance && error.abs() <= self.allowed)
            || difference == 0.0;
        // Two zeros agree; their relative error would be no number.
        let zero_by_zero = difference == 0.0 && self.kind == CheckErrorKind::Relative;
        let error = if zero_by_zero { 0.0 } else { error };
        (
            error.is_finite().then_some(error),
            within && ours.is_finite(),
        )
    }
}

/// One figure of ours next to a published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationCheck {
    /// Name of the check's group.
    pub group: &'static str,
    /// Stable id within the group.
    pub id: String,
    /// Quantity that is compared.
    pub what: String,
    /// Source of the published figure.
    pub source: String,
    /// Unit of both figures; empty for plain ratios.
    pub unit: String,
    /// Figure of the source, in the check's unit.
    pub published: PublishedFigure,
    /// Our figure, in the check's unit.
    pub ours: f64,
    /// Distance of ours from the published figure; `None` if it is not finite.
    pub error: Option<f64>,
    /// Meaning of the error.
    pub error_kind: CheckErrorKind,
    /// Size of the error up to which they agree.
    pub allowed: f64,
    /// True if they agree.
    pub agrees: bool,
    /// Remark for the reader; may be empty.
    pub note: String,
}

/// Properties that checks of one kind have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckTemplate<'a> {
    pub(crate) group: &'static str,
    pub(crate) source: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) tolerance: Tolerance,
}

impl CheckTemplate<'_> {
    pub(crate) fn check(
        &self,
        id: impl Into<String>,
        what: impl Into<String>,
        published: PublishedFigure,
        ours: f64,
    ) -> ValidationCheck {
        let (error, agrees) = self.tolerance.judge(&published, ours);
        ValidationCheck {
            group: self.group,
            id: id.into(),
            what: what.into(),
            source: self.source.to_owned(),
            unit: self.unit.to_owned(),
            published,
            ours,
            error,
            error_kind: self.tolerance.kind,
            allowed: self.tolerance.allowed,
            agrees,
            note: String::new(),
        }
    }
}

impl ValidationCheck {
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// The error for people: a relative one in percent, or as a multiple of the published figure.
    pub fn error_text(&self) -> String {
        match (self.error, self.error_kind) {
            (None, _) => "-".to_owned(),
            (Some(error), CheckErrorKind::Relative) if error >= MANY_TIMES => {
                format!("{:.0} times", 1.0 + error)
            }
            (Some(error), CheckErrorKind::Relative) => format!("{:+.1} %", 100.0 * error),
            (Some(error), CheckErrorKind::Absolute) => {
                let sign = if error > 0.0 { "+" } else { "" };
                format!("{sign}{}", Cell::from(error).text())
            }
            (Some(error), CheckErrorKind::Distance) => Cell::from(error).text(),
        }
    }

    pub(super) fn sentence(&self) -> String {
        let ours = format!("{} {}", Cell::from(self.ours).text(), self.unit);
        let (what, ours) = (&self.what, ours.trim_end());
        let published = self.published.text();
        let note = match self.note.as_str() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        match (self.error_kind, self.error) {
            (CheckErrorKind::Distance, _) => {
                format!("{what}: {ours}, {published} by chance{note}.")
            }
            (CheckErrorKind::Relative, Some(error)) if error >= MANY_TIMES => {
                let times = self.error_text();
                format!("{what}: published {published}, ours {ours}, {times} as much{note}.")
            }
            _ => {
                let off = self.error_text();
                format!("{what}: published {published}, ours {ours}, off by {off}{note}.")
            }
        }
    }
}

/// Checks: the case is `GROUP:ID`; `agrees` is 1 or 0.
pub fn checks_to_long_table(checks: &[ValidationCheck], seed: u64) -> Table {
    let mut rows = LongRows::default();
    for check in checks {
        let case = format!("{}:{}", check.group, check.id);
        let owner = RowOwner {
            case: &case,
            seed: Some(seed),
            ..RowOwner::default()
        };
        let unit = Some(check.unit.as_str()).filter(|unit| !unit.is_empty());
        rows.push(owner, "ours", check.ours, unit);
        rows.push_if_some(owner, "error", check.error, None);
        rows.push(owner, "allowed", check.allowed, None);
        rows.push(owner, "agrees", f64::from(u8::from(check.agrees)), None);
    }
    rows.table()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn make_check(tolerance: Tolerance, published: PublishedFigure, ours: f64) -> ValidationCheck {
        let template = CheckTemplate {
            group: "g",
            source: "s",
            unit: "cycles",
            tolerance,
        };
        template.check("id", "what", published, ours)
    }

    fn judged(tolerance: Tolerance, published: PublishedFigure, ours: f64) -> (Option<f64>, bool) {
        let check = make_check(tolerance, published, ours);
        (check.error, check.agrees)
    }

    #[test]
    fn errors_are_signed_and_judged_by_size() {
        let relative = Tolerance::relative(0.25);
        assert_eq!(
            judged(relative, PublishedFigure::Value(2.0), 1.5),
            (Some(-0.25), true)
        );
        assert_eq!(
            judged(relative, PublishedFigure::Value(2.0), 3.0),
            (Some(0.5), false)
        );
        let absolute = Tolerance::absolute(0.5);
        assert_eq!(
            judged(absolute, PublishedFigure::AtLeast(1.0), 0.25),
            (Some(-0.75), false)
        );
        assert_eq!(
            judged(absolute, PublishedFigure::AtMost(1.0), 0.25),
            (Some(0.0), true)
        );
        let order = PublishedFigure::Ordering("a > b".to_owned());
        assert_eq!(
            judged(Tolerance::absolute(0.1), order, 0.2),
            (Some(0.2), false)
        );
    }

    #[test]
    fn differences_below_the_floor_agree() {
        let tolerance = Tolerance::relative_above(0.1, 0.05);
        assert!(judged(tolerance, PublishedFigure::Value(0.01), 0.05).1);
        assert_eq!(
            judged(tolerance, PublishedFigure::Value(0.0), 0.01),
            (None, true)
        );
        assert_eq!(
            judged(tolerance, PublishedFigure::Value(0.0), 0.0),
            (Some(0.0), true)
        );
    }

    #[test]
    fn distances_are_their_own_error() {
        let judge = |ours| judged(Tolerance::distance(), PublishedFigure::AtMost(0.1), ours);
        assert_eq!(judge(0.05), (Some(0.05), true));
        assert_eq!(judge(0.2), (Some(0.2), false));
    }

    #[test]
    fn sentences_show_the_error_and_note() {
        let sentence = |tolerance, published, ours| {
            make_check(tolerance, published, ours)
                .with_note("note")
                .sentence()
        };
        let relative = Tolerance::relative(0.1);
        assert_eq!(
            sentence(relative, PublishedFigure::Value(2.0), 3.0),
            "what: published 2.000, ours 3.000 cycles, off by +50.0 % (note)."
        );
        assert_eq!(
            sentence(relative, PublishedFigure::Value(2.0), 80.0),
            "what: published 2.000, ours 80.00 cycles, 40 times as much (note)."
        );
        assert_eq!(
            sentence(Tolerance::distance(), PublishedFigure::AtMost(0.5), 0.75),
            "what: 0.7500 cycles, at most 0.5000 by chance (note)."
        );
    }

    proptest! {
        #[test]
        fn nan_never_agrees(value in -10.0f64..10.0) {
            for published in [PublishedFigure::Value(value), PublishedFigure::AtMost(value), PublishedFigure::AtLeast(value)] {
                let (error, agrees) = judged(Tolerance::relative(0.1), published, f64::NAN);
                prop_assert!(!agrees && error.is_none());
            }
        }

        #[test]
        fn figure_in_a_range_has_no_error(low in -5.0f64..0.0, high in 0.0f64..5.0, at in 0.0f64..1.0) {
            let ours = low + at * (high - low);
            let range = PublishedFigure::Range { low, high };
            prop_assert_eq!(judged(Tolerance::absolute(0.0), range, ours.min(high)), (Some(0.0), true));
        }
    }
}
