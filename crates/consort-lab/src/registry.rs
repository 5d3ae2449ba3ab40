//! Finding studies by id.

use crate::study::{Study, StudyInfo};
use std::sync::Arc;
use thiserror::Error;

/// The word that stands for every study.
const ALL: &str = "all";

/// The studies that there are, in the order in which they are listed.
#[derive(Clone)]
pub struct Registry(Vec<Arc<dyn Study>>);

/// There is no study with that id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown study '{id}'; {hint}")]
pub struct UnknownStudy {
    /// The id that was asked for.
    pub id: String,
    /// The id that may have been meant, or all that there are.
    pub hint: String,
}

impl Registry {
    /// A registry of these studies.
    pub fn new(studies: Vec<Arc<dyn Study>>) -> Self {
        Self(studies)
    }

    /// The studies.
    pub fn studies(&self) -> &[Arc<dyn Study>] {
        &self.0
    }

    /// Descriptions of the studies.
    pub fn list(&self) -> impl Iterator<Item = &StudyInfo> + Clone {
        self.0.iter().map(|study| study.info())
    }

    /// The study with that id, in any case.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, id: &str) -> Result<Arc<dyn Study>, UnknownStudy> {
        let has_id = |study: &&Arc<dyn Study>| study.info().id.eq_ignore_ascii_case(id);
        let found = self.0.iter().find(has_id);
        found.map(Arc::clone).ok_or_else(|| self.unknown(id))
    }

    /// The studies with these ids, each once, in the order asked for; `all`
    /// stands for every study.
    ///
    /// # Errors
    /// When an id is unknown; nothing is chosen then.
    pub fn select<S: AsRef<str>>(&self, ids: &[S]) -> Result<Vec<Arc<dyn Study>>, UnknownStudy> {
        let mut chosen: Vec<Arc<dyn Study>> = Vec::new();
        for id in ids {
            for study in self.named(id.as_ref())? {
                if chosen.iter().all(|c| c.info().id != study.info().id) {
                    chosen.push(study);
                }
            }
        }
        Ok(chosen)
    }

    fn named(&self, id: &str) -> Result<Vec<Arc<dyn Study>>, UnknownStudy> {
        if id.eq_ignore_ascii_case(ALL) {
            Ok(self.0.clone())
        } else {
            self.find(id).map(|study| vec![study])
        }
    }

    fn unknown(&self, id: &str) -> UnknownStudy {
        let known = self.list().map(|info| info.id.as_str());
        let upper = id.to_ascii_uppercase();
        UnknownStudy {
            id: id.to_owned(),
            hint: consort_core::hint(&upper, known.chain([ALL])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sums;

    fn registry() -> Registry {
        let studies = ["A1", "B2"].map(|id| Arc::new(Sums::named(id)) as Arc<dyn Study>);
        Registry::new(studies.to_vec())
    }

    fn check(ids: &[&str], expect: &[&str]) {
        let chosen = registry().select(ids).unwrap();
        let chosen: Vec<&str> = chosen
            .iter()
            .map(|study| study.info().id.as_str())
            .collect();
        assert_eq!(chosen, expect);
    }

    #[test]
    fn studies_are_chosen_once_in_the_order_asked_for() {
        check(&["b2", "A1", "B2"], &["B2", "A1"]);
        check(&["B2", "all"], &["B2", "A1"]);
        check(&[], &[]);
    }

    #[test]
    fn an_unknown_study_is_named_with_what_there_is() {
        let near = registry().find("a11").err().unwrap();
        assert_eq!(near.to_string(), "unknown study 'a11'; did you mean 'A1'?");
        let far = registry().select(&["A1", "nonsense"]).err().unwrap();
        assert_eq!(far.hint, "known: A1, B2, all");
    }

    #[test]
    fn the_list_is_in_the_registry_s_order() {
        let registry = registry();
        let ids: Vec<&str> = registry.list().map(|info| info.id.as_str()).collect();
        assert_eq!(ids, ["A1", "B2"]);
    }
}
