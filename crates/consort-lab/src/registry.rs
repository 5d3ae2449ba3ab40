//! The studies that there are, and finding them by id.

use crate::simulate::Presets;
use crate::studies::FILES;
use crate::study::{FileStudy, Study, StudyInfo};
use consort_sim::describe::DescribeError;
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

/// Every study that comes with Consort, in the order of the list.
///
/// # Errors
/// None: a test reads every file.
pub fn registry() -> Result<Registry, DescribeError> {
    let study = |(name, text): &(&str, &str)| {
        let study = FileStudy::parse_built_in(name, text, Arc::new(Presets))?;
        Ok(Arc::new(study) as Arc<dyn Study>)
    };
    let studies: Result<Vec<_>, DescribeError> = FILES.iter().map(study).collect();
    studies.map(Registry::new)
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
        found
            .map(Arc::clone)
            .ok_or_else(|| self.unknown_study_error(id))
    }

    /// The studies with these ids, each once, in the order asked for; `all`
    /// stands for every study.
    ///
    /// # Errors
    /// When an id is unknown; nothing is chosen then.
    pub fn select<S: AsRef<str>>(&self, ids: &[S]) -> Result<Vec<Arc<dyn Study>>, UnknownStudy> {
        let mut chosen: Vec<Arc<dyn Study>> = Vec::new();
        for id in ids {
            for study in self.resolve_id(id.as_ref())? {
                if chosen.iter().all(|c| c.info().id != study.info().id) {
                    chosen.push(study);
                }
            }
        }
        Ok(chosen)
    }

    fn resolve_id(&self, id: &str) -> Result<Vec<Arc<dyn Study>>, UnknownStudy> {
        if id.eq_ignore_ascii_case(ALL) {
            Ok(self.0.clone())
        } else {
            self.find(id).map(|study| vec![study])
        }
    }

    fn unknown_study_error(&self, id: &str) -> UnknownStudy {
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
    use crate::studies::{ANALYSES, experiment, experiment_names};
    use crate::testing::Sums;
    use std::collections::BTreeSet;

    fn two() -> Registry {
        let studies = ["A1", "B2"].map(|id| Arc::new(Sums::named(id)) as Arc<dyn Study>);
        Registry::new(studies.to_vec())
    }

    fn check(ids: &[&str], expect: &[&str]) {
        let chosen = two().select(ids).unwrap();
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
        let near = two().find("a11").err().unwrap();
        assert_eq!(near.to_string(), "unknown study 'a11'; did you mean 'A1'?");
        let far = two().select(&["A1", "nonsense"]).err().unwrap();
        assert_eq!(far.hint, "known: A1, B2, all");
    }

    #[test]
    fn the_list_is_in_the_registry_s_order() {
        let registry = two();
        let ids: Vec<&str> = registry.list().map(|info| info.id.as_str()).collect();
        assert_eq!(ids, ["A1", "B2"]);
    }

    /// Returns true where ids can be typed by people and become file names: they are plain, differ
    /// in more than case, and none is `all`.
    fn are_usable(registry: &Registry) -> bool {
        let ids: Vec<&str> = registry.list().map(|info| info.id.as_str()).collect();
        let lower: BTreeSet<String> = ids.iter().map(|id| id.to_lowercase()).collect();
        let plain = |id: &&str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        lower.len() == ids.len() && ids.iter().all(|id| plain(id) && *id != "all")
    }

    #[test]
    fn ids_are_unique_and_plain() {
        let sums = |ids: &[&str]| {
            let studies = ids
                .iter()
                .map(|id| Arc::new(Sums::named(id)) as Arc<dyn Study>);
            Registry::new(studies.collect())
        };
        assert!(are_usable(&registry().unwrap()));
        assert!(!are_usable(&sums(&["A1", "a1"])));
        assert!(!are_usable(&sums(&["all"])));
    }

    #[test]
    fn every_file_is_right_down_to_machines_and_suites() {
        for (name, text) in FILES {
            FileStudy::parse(name, text, Arc::new(Presets)).unwrap();
        }
        assert!(experiment_names().all(|name| experiment(name).is_some()));
    }

    #[test]
    fn every_analysis_of_a_study_has_its_file() {
        for (name, _) in ANALYSES.studies {
            let line = format!("\nanalysis = \"{name}\"\n");
            assert!(FILES.iter().any(|(_, text)| text.contains(&line)), "{name}");
        }
    }
}
