//! Checks as tables and sentences for people.

use super::check::{Check, ErrorKind, Published};
use super::validation::Validation;
use crate::report::{Cell, Column, Table, TableError};

impl Published {
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

impl Check {
    /// The error for people: relative ones in percent.
    pub fn error_text(&self) -> String {
        match (self.error, self.error_kind) {
            (None, _) => "-".to_owned(),
            (Some(error), ErrorKind::Relative) => format!("{:+.1} %", 100.0 * error),
            (Some(error), ErrorKind::Absolute) => signed(error),
            (Some(error), ErrorKind::Distance) => Cell::from(error).text(),
        }
    }

    /// What disagrees, in a sentence.
    pub(super) fn sentence(&self) -> String {
        let ours = Cell::from(self.ours).text();
        let mut text = format!("{}: published {}", self.what, self.published.text());
        text += &format!(", ours {ours} {}", self.unit);
        let text = text.trim_end();
        let note = if self.note.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.note)
        };
        match self.error_kind {
            ErrorKind::Distance => format!("{text}{note}."),
            _ => format!("{text}, off by {}{note}.", self.error_text()),
        }
    }
}

fn signed(value: f64) -> String {
    let text = Cell::from(value).text();
    if value > 0.0 {
        format!("+{text}")
    } else {
        text
    }
}

impl Validation {
    /// One table per group, in the order of the groups.
    ///
    /// # Errors
    /// Two checks of one group with one id.
    pub fn group_tables(&self) -> Result<Vec<Table>, TableError> {
        let table = |summary: &super::GroupSummary| {
            let mut table = Table::new(summary.group, summary.about, columns())?;
            for check in self.checks.iter().filter(|c| c.group == summary.group) {
                table.push(&check.id, cells(check))?;
            }
            Ok(table)
        };
        self.summary.iter().map(table).collect()
    }
}

fn columns() -> Vec<Column> {
    let columns = [
        ("check", "check"),
        ("published", "published"),
        ("ours", "ours"),
        ("unit", "unit"),
        ("error", "error"),
        ("agrees", "agrees"),
        ("note", "note"),
    ];
    columns
        .map(|(key, title)| Column::plain(key, title))
        .to_vec()
}

fn cells(check: &Check) -> Vec<Cell> {
    let published = match check.published {
        Published::Value(value) => value.into(),
        _ => check.published.text().as_str().into(),
    };
    vec![
        check.id.as_str().into(),
        published,
        check.ours.into(),
        check.unit.as_str().into(),
        check.error_text().as_str().into(),
        if check.agrees { "yes" } else { "no" }.into(),
        check.note.as_str().into(),
    ]
}
