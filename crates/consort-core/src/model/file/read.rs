//! Reading a model from TOML.

use super::section::{ModelSource, TomlSection};
use crate::model::error::ModelError;
use crate::model::interference_model::InterferenceModel;
use crate::model::level::LevelParameters;
use crate::model::parameters::{ComponentParameters, MAX_PARAMETER, MAX_WAYS};
use crate::model::provenance::{Accuracy, Deviation, Provenance};
use toml::de::DeTable;

/// Larger errors than this say that something else is wrong.
const MAX_PERCENT: f64 = 1e6;

/// TOML has no larger integer.
const MAX_INTEGER: u64 = i64::MAX as u64;

impl InterferenceModel {
    /// Reads a model; `origin` is the name of the text in errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, key and valid range.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ModelError> {
        let source = ModelSource { origin, text };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            source.error(at, "", e.message().replace('\n', "; "))
        })?;
        model(&TomlSection {
            source,
            table: table.get_ref(),
            path: String::new(),
            start: 0,
        })
    }
}

fn model(file: &TomlSection<'_>) -> Result<InterferenceModel, ModelError> {
    file.check_keys(&["name", "machine", "components", "provenance", "level"])?;
    let components = components(file)?;
    let (levels, accuracy) = levels(file, &components)?;
    Ok(InterferenceModel {
        name: file.name("name")?,
        machine: file.name("machine")?,
        components,
        levels,
        provenance: provenance(&file.table("provenance")?, accuracy)?,
    })
}

fn components(file: &TomlSection<'_>) -> Result<Vec<String>, ModelError> {
    let components = file.strings("components")?;
    if components.is_empty() {
        return Err(file.key_error("components", "is empty; name at least one component"));
    }
    for (place, name) in components.iter().enumerate() {
        if components[..place].contains(name) {
            let problem = format!("names '{name}' twice; every component once");
            return Err(file.key_error("components", problem));
        }
    }
    Ok(components)
}

fn provenance(
    section: &TomlSection<'_>,
    accuracy: Vec<Accuracy>,
) -> Result<Provenance, ModelError> {
    section.check_keys(&["source", "date", "programs", "quanta"])?;
    Ok(Provenance {
        source: section.string("source")?,
        date: section.string("date")?,
        programs: section.strings("programs")?,
        quanta: section.integer("quanta", 0..=MAX_INTEGER)?,
        accuracy,
    })
}

fn levels(
    file: &TomlSection<'_>,
    components: &[String],
) -> Result<(Vec<LevelParameters>, Vec<Accuracy>), ModelError> {
    let sections = file.tables("level")?;
    if sections.is_empty() {
        return Err(file.key_error("level", "is empty; give at least one level"));
    }
    let mut levels: Vec<LevelParameters> = Vec::new();
    let mut all_accuracy = Vec::new();
    for section in &sections {
        let level = level(section, components)?;
        if levels
            .last()
            .is_some_and(|last| last.ways() >= level.ways())
        {
            let problem = "is not above that of the level before; order levels by ways";
            return Err(section.key_error("ways", problem));
        }
        if section.has("accuracy") {
            all_accuracy.push(accuracy(&section.table("accuracy")?, level.ways())?);
        }
        levels.push(level);
    }
    Ok((levels, all_accuracy))
}

fn level(section: &TomlSection<'_>, components: &[String]) -> Result<LevelParameters, ModelError> {
    section.check_keys(&["ways", "parameters", "accuracy"])?;
    let ways = section.integer("ways", 2..=u64::from(MAX_WAYS))?;
    let of_all = section.table("parameters")?;
    let known: Vec<&str> = components.iter().map(String::as_str).collect();
    of_all.check_keys(&known)?;
    let of_one = |name: &String| parameters(&of_all.table(name)?);
    let parameters: Result<Vec<ComponentParameters>, ModelError> =
        components.iter().map(of_one).collect();
    LevelParameters::new(ways as u32, parameters?)
}

fn parameters(section: &TomlSection<'_>) -> Result<ComponentParameters, ModelError> {
    section.check_keys(&["alpha", "beta", "gamma", "delta"])?;
    let number = |key| section.number(key, -MAX_PARAMETER..=MAX_PARAMETER);
    Ok(ComponentParameters {
        alpha: number("alpha")?,
        beta: number("beta")?,
        gamma: number("gamma")?,
        delta: number("delta")?,
    })
}

fn accuracy(section: &TomlSection<'_>, ways: u32) -> Result<Accuracy, ModelError> {
    section.check_keys(&["forward", "inverse"])?;
    Ok(Accuracy {
        ways,
        forward: deviation(&section.table("forward")?)?,
        inverse: deviation(&section.table("inverse")?)?,
    })
}

fn deviation(section: &TomlSection<'_>) -> Result<Deviation, ModelError> {
    section.check_keys(&["mean_absolute_percent", "p95_percent"])?;
    let percent = |key| section.number(key, 0.0..=MAX_PERCENT);
    Ok(Deviation {
        mean_absolute_percent: percent("mean_absolute_percent")?,
        p95_percent: percent("p95_percent")?,
    })
}
