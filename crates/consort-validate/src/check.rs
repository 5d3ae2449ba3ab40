//! One figure of ours beside a published one.

use serde::Serialize;

/// Published figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedFigure {
    /// A number.
    Value(f64),
    /// Anything between two numbers.
    Range {
        /// The lower one.
        low: f64,
        /// The upper one.
        high: f64,
    },
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// An order; ours is the share of pairs that stand the other way round.
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

/// Errors that still count as agreement. Fixed per kind of figure; docs/validation.md tells which
/// of them were set with a result in view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance {
    kind: CheckErrorKind,
    allowed: f64,
    /// Differences up to this one agree whatever their error is, in the check's unit.
    floor: f64,
}

impl Tolerance {
    pub(crate) const fn relative(allowed: f64) -> Self {
        Self::relative_above(allowed, 0.0)
    }

    /// Relative, but for differences that are too small to matter.
    pub(crate) const fn relative_above(allowed: f64, floor: f64) -> Self {
        Self {
            kind: CheckErrorKind::Relative,
            allowed,
            floor,
        }
    }

    pub(crate) const fn absolute(allowed: f64) -> Self {
        Self {
            kind: CheckErrorKind::Absolute,
            allowed,
            floor: 0.0,
        }
    }

    /// For distances: what is published is the distance that still counts as none.
    pub(crate) const fn distance() -> Self {
        Self {
            kind: CheckErrorKind::Distance,
            allowed: 0.0,
            floor: 0.0,
        }
    }

    /// The error and whether it agrees.
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
        let zero_by_zero = difference == 0.0 && self.kind == CheckErrorKind::Relative;
        let error = if zero_by_zero { 0.0 } else { error };
        (
            error.is_finite().then_some(error),
            within && ours.is_finite(),
        )
    }
}

/// One figure of ours beside a published one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValidationCheck {
    /// Name of its group.
    pub group: &'static str,
    /// Stable id within the group.
    pub id: String,
    /// Quantity that is compared.
    pub what: String,
    /// Source of the published figure.
    pub source: String,
    /// Unit of both figures; empty for plain ratios.
    pub unit: String,
    /// Published figure.
    pub published: PublishedFigure,
    /// Ours.
    pub ours: f64,
    /// Distance of ours from it; none where it cannot be said.
    pub error: Option<f64>,
    /// Meaning of the error.
    pub error_kind: CheckErrorKind,
    /// Size of the error up to which they agree.
    pub allowed: f64,
    /// True where they agree.
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
    /// A check, judged.
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
    /// The same with a note.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn topic(tolerance: Tolerance) -> CheckTemplate<'static> {
        CheckTemplate {
            group: "g",
            source: "s",
            unit: "u",
            tolerance,
        }
    }

    fn judged(tolerance: Tolerance, published: PublishedFigure, ours: f64) -> (Option<f64>, bool) {
        let check = topic(tolerance).check("id", "what", published, ours);
        (check.error, check.agrees)
    }

    #[test]
    fn errors_are_signed_and_judged_by_their_size() {
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
    fn what_is_too_small_to_matter_agrees() {
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
        let of = |ours| judged(Tolerance::distance(), PublishedFigure::AtMost(0.1), ours);
        assert_eq!(of(0.05), (Some(0.05), true));
        assert_eq!(of(0.2), (Some(0.2), false));
    }

    proptest! {
        #[test]
        fn nothing_that_is_not_a_number_agrees(value in -10.0f64..10.0) {
            for published in [PublishedFigure::Value(value), PublishedFigure::AtMost(value), PublishedFigure::AtLeast(value)] {
                let (error, agrees) = judged(Tolerance::relative(0.1), published, f64::NAN);
                prop_assert!(!agrees && error.is_none());
            }
        }

        #[test]
        fn what_lies_in_a_range_has_no_error(low in -5.0f64..0.0, high in 0.0f64..5.0, at in 0.0f64..1.0) {
            let ours = low + at * (high - low);
            let range = PublishedFigure::Range { low, high };
            prop_assert_eq!(judged(Tolerance::absolute(0.0), range, ours.min(high)), (Some(0.0), true));
        }
    }
}
