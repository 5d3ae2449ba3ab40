//! Studies of a user: files beside those that come with Consort.

use crate::descriptions::Programs;
use crate::failure::bad_input;
use anyhow::Result;
use consort_lab::{FileStudy, Registry, Study};
use std::path::Path;
use std::sync::Arc;

/// The studies that are asked for, by id or by file, each once in the order asked for.
pub(super) fn select(known: &Registry, requested: &[String]) -> Result<Vec<Arc<dyn Study>>> {
    let mut chosen: Vec<Arc<dyn Study>> = Vec::new();
    for text in requested {
        let found = match is_file(text) {
            true => vec![read(known, text)?],
            false => known.select(&[text]).map_err(bad_input)?,
        };
        for study in found {
            if chosen.iter().all(|c| c.info().id != study.info().id) {
                chosen.push(study);
            }
        }
    }
    Ok(chosen)
}

/// The known studies and those of files among the chosen.
pub(super) fn extend_registry(known: &Registry, chosen: &[Arc<dyn Study>]) -> Registry {
    let is_own = |study: &&Arc<dyn Study>| known.find(&study.info().id).is_err();
    let own = chosen.iter().filter(is_own).map(Arc::clone);
    let all = known.studies().iter().map(Arc::clone).chain(own);
    Registry::new(all.collect())
}

/// Ids have neither strokes nor points.
fn is_file(text: &str) -> bool {
    text.contains(['/', '.'])
}

fn read(known: &Registry, path: &str) -> Result<Arc<dyn Study>> {
    let text = consort_describe::input::read_text(Path::new(path));
    let text = text.map_err(|error| bad_input(format!("{path}: {error}")))?;
    let study = FileStudy::parse(path, &text, Arc::new(Programs)).map_err(bad_input)?;
    let id = study.info().id.clone();
    if known.find(&id).is_ok() {
        return Err(bad_input(format!(
            "{path}: id: '{id}' is a study that comes with Consort; choose another"
        )));
    }
    Ok(Arc::new(study))
}
