//! Published figures next to ours.
//!
//! [`built_in`] has what the sources print, [`read`] a user's own file. A study's file maps the names
//! of published figures to its values ([`OutcomeSpec`](crate::study::file::OutcomeSpec)); a figure
//! without an entry is the row of the headline with the same name. [`compare`] sets ours next to
//! theirs with a verdict on each: whether the direction agrees, and whether ours is within a third.

mod comparison;
mod file;
mod place;
mod verdict;
mod view;

pub use comparison::{
    AgreementCount, ComparedFigure, ReferenceComparison, ReferenceScore, UnmatchedFigure, compare,
};
pub use file::{PublishedValue, ReferenceFileError, ReferenceLine, parse, read};
pub use view::ReferenceView;

/// The figures that the sources of the studies print, for comparison only: no parameter is taken
/// from them.
///
/// # Errors
/// None that can occur: a test reads the file.
pub fn built_in() -> Result<Vec<ReferenceLine>, ReferenceFileError> {
    parse("published.csv", include_str!("../../data/published.csv"))
}

#[cfg(test)]
mod tests {
    use super::place::find_entry;
    use super::*;
    use crate::registry;

    #[test]
    fn figures_and_entries_are_about_each_other() {
        let lines = built_in().unwrap();
        let registry = registry().unwrap();
        for line in &lines {
            assert!(registry.find(&line.study).is_ok(), "{line:?}");
        }
        for study in registry.studies() {
            let own = lines.iter().filter(|line| line.study == study.info().id);
            let names: Vec<&str> = own.map(|line| line.row.as_str()).collect();
            for entry in study.published() {
                let one = std::slice::from_ref(entry);
                let found = names.iter().any(|name| find_entry(one, name).is_some());
                assert!(found, "{}: {}", study.info().id, entry.row);
            }
        }
    }
}
