//! The known studies, by id.

use crate::simulate::Presets;
use crate::studies::FILES;
use crate::study::{FileStudy, Study, StudyInfo};
use consort_sim::describe::DescribeError;
use std::sync::Arc;
use thiserror::Error;

/// Stands for every study.
const ALL: &str = "all";

/// Studies, in the order in which they are listed.
#[derive(Clone)]
pub struct Registry(Vec<Arc<dyn Study>>);

/// There is no study with that id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown study '{id}'; {hint}")]
pub struct UnknownStudy {
    /// The unknown id.
    pub id: String,
    /// The nearest id, or all known ones.
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
        let found = self.0.iter().find(has_id).map(Arc::clone);
        found.ok_or_else(|| {
            let known = self.list().map(|info| info.id.as_str());
            // Ids are written in capitals, so that small letters are no mistake.
            let upper = id.to_ascii_uppercase();
            UnknownStudy {
                id: id.to_owned(),
                hint: consort_core::hint(&upper, known.chain([ALL])),
            }
        })
    }

    /// The studies with these ids, each once, in the order of the ids; `all` stands for every
    /// study.
    ///
    /// # Errors
    /// When an id is unknown; nothing is chosen then.
    pub fn select<S: AsRef<str>>(&self, ids: &[S]) -> Result<Vec<Arc<dyn Study>>, UnknownStudy> {
        let mut chosen: Vec<Arc<dyn Study>> = Vec::new();
        for id in ids {
            let id = id.as_ref();
            let studies = match id.eq_ignore_ascii_case(ALL) {
                true => self.0.clone(),
                false => vec![self.find(id)?],
            };
            for study in studies {
                if chosen.iter().all(|c| c.info().id != study.info().id) {
                    chosen.push(study);
                }
            }
        }
        Ok(chosen)
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
    fn studies_are_selected_once_in_request_order() {
        check(&["b2", "A1", "B2"], &["B2", "A1"]);
        check(&["B2", "all"], &["B2", "A1"]);
        check(&[], &[]);
    }

    #[test]
    fn unknown_study_is_named_with_a_hint() {
        let near = two().find("a11").err().unwrap();
        assert_eq!(near.to_string(), "unknown study 'a11'; did you mean 'A1'?");
        let far = two().select(&["A1", "nonsense"]).err().unwrap();
        assert_eq!(far.hint, "known: A1, B2, all");
    }

    #[test]
    fn list_keeps_the_registry_order() {
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
    fn every_study_file_passes_all_checks() {
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
