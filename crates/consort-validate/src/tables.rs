//! Checks as tables and sentences for people.

use super::check::{CheckErrorKind, PublishedFigure, ValidationCheck};
use consort_data::long::{LongRows, RowOwner};
use consort_data::{Cell, Table};

/// Relative errors from here on are told as a multiple.
const MANY_TIMES: f64 = 9.0;

impl PublishedFigure {
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

impl ValidationCheck {
    /// The error for people: relative ones in percent, or how many times the published figure
    /// ours is where percents would be hard to read.
    pub fn error_text(&self) -> String {
        match (self.error, self.error_kind) {
            (None, _) => "-".to_owned(),
            (Some(error), CheckErrorKind::Relative) if error >= MANY_TIMES => {
                format!("{:.0} times", 1.0 + error)
            }
            (Some(error), CheckErrorKind::Relative) => format!("{:+.1} %", 100.0 * error),
            (Some(error), CheckErrorKind::Absolute) => format_signed(error),
            (Some(error), CheckErrorKind::Distance) => Cell::from(error).text(),
        }
    }

    /// Sentence that says what disagrees.
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

fn format_signed(value: f64) -> String {
    let text = Cell::from(value).text();
    if value > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

/// Checks: the case is `GROUP:ID`; `agrees` is 1 or 0.
pub fn checks_to_long_table(checks: &[ValidationCheck], seed: u64) -> Table {
    let mut rows = LongRows::default();
    for check in checks {
        let case = format!("{}:{}", check.group, check.id);
        let of = RowOwner {
            case: &case,
            seed: Some(seed),
            ..RowOwner::default()
        };
        let unit = Some(check.unit.as_str()).filter(|unit| !unit.is_empty());
        rows.push(of, "ours", check.ours, unit);
        rows.push_if_some(of, "error", check.error, None);
        rows.push(of, "allowed", check.allowed, None);
        rows.push(of, "agrees", f64::from(u8::from(check.agrees)), None);
    }
    rows.table()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckTemplate, Tolerance};

    fn sentence(tolerance: Tolerance, published: PublishedFigure, ours: f64) -> String {
        let topic = CheckTemplate {
            group: "g",
            source: "s",
            unit: "cycles",
            tolerance,
        };
        let check = topic.check("id", "what", published, ours);
        check.with_note("note").sentence()
    }

    #[test]
    fn sentences_say_how_far_off_ours_is() {
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
}
