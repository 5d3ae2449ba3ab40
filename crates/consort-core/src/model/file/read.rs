//! Reading a model from TOML.

use super::section::{Section, Source};
use crate::model::error::ModelError;
use crate::model::level::Level;
use crate::model::parameters::{MAX_PARAMETER, MAX_WAYS, Parameters};
use crate::model::provenance::{Accuracy, Deviation, Provenance};
use crate::model::whole::Model;
use toml::de::DeTable;

/// Larger errors than this say that something else is wrong.
const MAX_PERCENT: f64 = 1e6;

/// TOML has no larger integer.
const MAX_INTEGER: u64 = i64::MAX as u64;

impl Model {
    /// Reads a model; `origin` is the name of the text in errors.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, key and valid range.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ModelError> {
        let source = Source { origin, text };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            source.error(at, "", e.message().replace('\n', "; "))
        })?;
        model(&Section {
            source,
            table: table.get_ref(),
            path: String::new(),
            start: 0,
        })
    }
}

fn model(file: &Section<'_>) -> Result<Model, ModelError> {
    file.only(&["name", "machine", "components", "provenance", "level"])?;
    let components = components(file)?;
    let (levels, accuracy) = levels(file, &components)?;
    Ok(Model {
        name: file.name("name")?,
        machine: file.name("machine")?,
        components,
        levels,
        provenance: provenance(&file.table("provenance")?, accuracy)?,
    })
}

fn components(file: &Section<'_>) -> Result<Vec<String>, ModelError> {
    let components = file.strings("components")?;
    if components.is_empty() {
        return Err(file.wrong("components", "is empty; name at least one component"));
    }
    for (place, name) in components.iter().enumerate() {
        if components[..place].contains(name) {
            let problem = format!("names '{name}' twice; every component once");
            return Err(file.wrong("components", problem));
        }
    }
    Ok(components)
}

fn provenance(section: &Section<'_>, accuracy: Vec<Accuracy>) -> Result<Provenance, ModelError> {
    section.only(&["source", "date", "programs", "quanta"])?;
    Ok(Provenance {
        source: section.string("source")?,
        date: section.string("date")?,
        programs: section.strings("programs")?,
        quanta: section.integer("quanta", 0..=MAX_INTEGER)?,
        accuracy,
    })
}

fn levels(
    file: &Section<'_>,
    components: &[String],
) -> Result<(Vec<Level>, Vec<Accuracy>), ModelError> {
    let sections = file.tables("level")?;
    if sections.is_empty() {
        return Err(file.wrong("level", "is empty; give at least one level"));
    }
    let mut levels: Vec<Level> = Vec::new();
    let mut all_accuracy = Vec::new();
    for section in &sections {
        let level = level(section, components)?;
        if levels
            .last()
            .is_some_and(|last| last.ways() >= level.ways())
        {
            let problem = "is not above that of the level before; order levels by ways";
            return Err(section.wrong("ways", problem));
        }
        if section.has("accuracy") {
            all_accuracy.push(accuracy(&section.table("accuracy")?, level.ways())?);
        }
        levels.push(level);
    }
    Ok((levels, all_accuracy))
}

fn level(section: &Section<'_>, components: &[String]) -> Result<Level, ModelError> {
    section.only(&["ways", "parameters", "accuracy"])?;
    let ways = section.integer("ways", 2..=u64::from(MAX_WAYS))?;
    let of_all = section.table("parameters")?;
    let known: Vec<&str> = components.iter().map(String::as_str).collect();
    of_all.only(&known)?;
    let of_one = |name: &String| parameters(&of_all.table(name)?);
    let parameters: Result<Vec<Parameters>, ModelError> = components.iter().map(of_one).collect();
    Level::new(ways as u32, parameters?)
}

fn parameters(section: &Section<'_>) -> Result<Parameters, ModelError> {
    section.only(&["alpha", "beta", "gamma", "delta"])?;
    let number = |key| section.number(key, -MAX_PARAMETER..=MAX_PARAMETER);
    Ok(Parameters {
        alpha: number("alpha")?,
        beta: number("beta")?,
        gamma: number("gamma")?,
        delta: number("delta")?,
    })
}

fn accuracy(section: &Section<'_>, ways: u32) -> Result<Accuracy, ModelError> {
    section.only(&["forward", "inverse"])?;
    Ok(Accuracy {
        ways,
        forward: deviation(&section.table("forward")?)?,
        inverse: deviation(&section.table("inverse")?)?,
    })
}

fn deviation(section: &Section<'_>) -> Result<Deviation, ModelError> {
    section.only(&["mean_absolute_percent", "p95_percent"])?;
    let percent = |key| section.number(key, 0.0..=MAX_PERCENT);
    Ok(Deviation {
        mean_absolute_percent: percent("mean_absolute_percent")?,
        p95_percent: percent("p95_percent")?,
    })
}
