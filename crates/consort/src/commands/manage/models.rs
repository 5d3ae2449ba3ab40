//! Interference models for `consort run`: the one that was named, or one from the usual folders
//! that fits this machine.

use crate::config;
use crate::failure::{bad_input, error_chain};
use anyhow::{Context, Result};
use consort_core::SignalOffers;
use consort_core::model::InterferenceModel;
use consort_core::policy::PolicySpec;
use std::path::{Path, PathBuf};

/// The policy that uses models.
pub(crate) const SYMBIOTIC: &str = "symbiotic";
/// Its option for the model.
const OPTION: &str = "model";

/// Models that were looked at.
#[derive(Debug, Default)]
pub(crate) struct ModelSearch {
    /// The first that fits.
    pub(crate) fitting: Option<PathBuf>,
    /// Reasons why those before it do not, one sentence each.
    pub(crate) refused: Vec<String>,
}

/// Looks for a model that fits: the named one, or else `*.toml` in `models` of the folders of
/// configuration, by name. A named one that is no model is an error; one that does not fit is not.
pub(crate) fn find(named: Option<&Path>, offers: &SignalOffers) -> Result<ModelSearch> {
    if let Some(path) = named {
        return check_named_model(path, offers);
    }
    let mut found = ModelSearch::default();
    for path in config::folders()
        .iter()
        .flat_map(|folder| files(&folder.join("models")))
    {
        match fits(&path, offers) {
            Ok(()) => {
                found.fitting = Some(path);
                break;
            }
            Err(error) => found.refused.push(error_chain(&error)),
        }
    }
    Ok(found)
}

fn check_named_model(path: &Path, offers: &SignalOffers) -> Result<ModelSearch> {
    let model =
        read(path).map_err(|error| bad_input(format!("--model: {}", error_chain(&error))))?;
    let misfit = model.check_fit(offers.machine(), offers.stack()).err();
    Ok(ModelSearch {
        fitting: misfit.is_none().then(|| path.to_owned()),
        refused: misfit.iter().map(ToString::to_string).collect(),
    })
}

/// Gives the policy a model; only one policy takes one, and only once.
pub(crate) fn set_model_option(spec: &mut PolicySpec, model: &Path) -> Result<()> {
    if spec.name != SYMBIOTIC {
        let name = &spec.name;
        return Err(bad_input(format!(
            "--model is for the policy {SYMBIOTIC} and for auto; {name} takes no model"
        )));
    }
    let path = model.display().to_string();
    if let Some(other) = spec.options.get(OPTION) {
        return Err(bad_input(format!(
            "both --model {path} and {OPTION}={other} are given; give one"
        )));
    }
    // A bare name is that of a model that comes with Consort.
    let path = match consort_describe::input::is_path(&path) {
        true => path,
        false => format!("./{path}"),
    };
    spec.options.insert(OPTION.to_owned(), path);
    Ok(())
}

/// The reason for a choice without a model, with what was wrong with those that were found.
pub(crate) fn append_refusals(why: String, refused: &[String]) -> String {
    refused
        .iter()
        .fold(why, |why, refused| format!("{why}; {refused}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

fn fits(path: &Path, offers: &SignalOffers) -> Result<()> {
    Ok(read(path)?.check_fit(offers.machine(), offers.stack())?)
}

fn read(path: &Path) -> Result<InterferenceModel> {
    let origin = path.display().to_string();
    let text = consort_describe::input::read_text(path)
        .with_context(|| format!("cannot read {origin}"))?;
    Ok(InterferenceModel::parse(&text, &origin)?)
}
