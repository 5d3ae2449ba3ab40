//! Models as TOML files: reading and writing.

use crate::model::level::{ComponentParameters, LevelParameters, MAX_PARAMETER, MAX_WAYS};
use crate::model::{Accuracy, Deviation, InterferenceModel, ModelError, Provenance};
use crate::text::hint;
use std::fmt::{Display, Write};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest error, in percent; beyond it the file is wrong.
const MAX_PERCENT: f64 = 1e6;

const MAX_INTEGER: u64 = i64::MAX as u64;

impl InterferenceModel {
    /// Reads a model; `origin` names the text in errors.
    ///
    /// # Errors
    /// The first mistake, with its line, key and valid range.
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

    /// The model as TOML, which [`InterferenceModel::parse`] reads back to an equal model.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(HEAD);
        write_line(&mut text, "name", &toml_string(&self.name));
        write_line(&mut text, "machine", &toml_string(&self.machine));
        write_line(&mut text, "components", &array(&self.components));
        write_provenance(&mut text, &self.provenance);
        for level in &self.levels {
            self.level_to_toml(&mut text, level);
        }
        text
    }

    fn level_to_toml(&self, text: &mut String, level: &LevelParameters) {
        text.push_str("\n[[level]]\n");
        let ways = format!("{} # threads per core", level.ways());
        write_line(text, "ways", &ways);
        text.push_str("\n[level.parameters]\n");
        for (name, p) in self.components.iter().zip(level.parameters()) {
            let values = p
                .named_values()
                .map(|(name, value)| format!("{name} = {value:?}"));
            let table = format!("{{ {} }}", values.join(", "));
            write_line(text, &toml_string(name), &table);
        }
        let tested = self.provenance.accuracy.iter();
        for accuracy in tested.filter(|a| a.ways == level.ways()).take(1) {
            text.push_str("\n[level.accuracy]\n");
            write_line(text, "forward", &deviation_toml(&accuracy.forward));
            write_line(text, "inverse", &deviation_toml(&accuracy.inverse));
        }
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
    let parameters: Result<Vec<ComponentParameters>, ModelError> = components
        .iter()
        .map(|name| parameters(&of_all.table(name)?))
        .collect();
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

#[derive(Clone, Copy, Debug)]
struct ModelSource<'t> {
    origin: &'t str,
    text: &'t str,
}

/// One table of a file with its place there.
#[derive(Clone, Debug)]
struct TomlSection<'a> {
    source: ModelSource<'a>,
    table: &'a DeTable<'a>,
    /// Path of the table, with a dot at its end; empty for the whole file.
    path: String,
    /// Offset of the table in the text, bytes.
    start: usize,
}

type TomlValue<'a> = &'a Spanned<DeValue<'a>>;

impl ModelSource<'_> {
    fn error(&self, at: usize, key: &str, problem: impl Display) -> ModelError {
        let before = self.text.as_bytes().iter().take(at);
        ModelError::File {
            origin: self.origin.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            key: key.to_owned(),
            problem: problem.to_string(),
        }
    }
}

impl<'a> TomlSection<'a> {
    fn check_keys(&self, known: &[&str]) -> Result<(), ModelError> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let problem = format!("unknown key; {}", hint(name, known.iter().copied()));
                let path = format!("{}{name}", self.path);
                return Err(self.source.error(key.span().start, &path, problem));
            }
        }
        Ok(())
    }

    fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn string(&self, key: &str) -> Result<String, ModelError> {
        let value = self.value(key, "a string")?;
        let text = value.get_ref().as_str();
        text.map(str::to_owned)
            .ok_or_else(|| self.type_error(key, value, "a string"))
    }

    fn name(&self, key: &str) -> Result<String, ModelError> {
        let name = self.string(key)?;
        if name.is_empty() {
            return Err(self.key_error(key, "is empty; give a name"));
        }
        Ok(name)
    }

    fn strings(&self, key: &str) -> Result<Vec<String>, ModelError> {
        let expected = "an array of strings";
        let value = self.value(key, expected)?;
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.type_error(key, value, expected))?;
        let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
        let texts: Option<Vec<String>> = array.iter().map(text).collect();
        texts.ok_or_else(|| self.type_error(key, value, expected))
    }

    fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, ModelError> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let value = self.value(key, &expected)?;
        let integer = value.get_ref().as_integer();
        let integer = integer.and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
        integer
            .filter(|i| range.contains(i))
            .ok_or_else(|| self.type_error(key, value, &expected))
    }

    /// A number; integers are numbers too.
    fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64, ModelError> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        let value = self.value(key, &expected)?;
        let number: Option<f64> = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|n| range.contains(n))
            .ok_or_else(|| self.type_error(key, value, &expected))
    }

    fn table(&self, key: &str) -> Result<Self, ModelError> {
        let value = self.value(key, "a table")?;
        self.section_from_value(key, &format!("{}{key}.", self.path), value)
    }

    fn tables(&self, key: &str) -> Result<Vec<Self>, ModelError> {
        let expected = "an array of tables";
        let value = self.value(key, expected)?;
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.type_error(key, value, expected))?;
        let place =
            |(i, item)| self.section_from_value(key, &format!("{}{key}[{i}].", self.path), item);
        array.iter().enumerate().map(place).collect()
    }

    /// An error at a key of this table, or at the table if the key is missing.
    fn key_error(&self, key: &str, problem: impl Display) -> ModelError {
        let start = self.table.get(key).map_or(self.start, |v| v.span().start);
        let path = format!("{}{key}", self.path);
        self.source.error(start, &path, problem)
    }

    fn section_from_value(
        &self,
        key: &str,
        path: &str,
        value: TomlValue<'a>,
    ) -> Result<Self, ModelError> {
        let table = value.get_ref().as_table();
        let table = table.ok_or_else(|| self.type_error(key, value, "a table"))?;
        Ok(Self {
            source: self.source,
            table,
            path: path.to_owned(),
            start: value.span().start,
        })
    }

    fn value(&self, key: &str, expected: &str) -> Result<TomlValue<'a>, ModelError> {
        let missing = || self.key_error(key, format!("is missing; expected {expected}"));
        self.table.get(key).ok_or_else(missing)
    }

    fn type_error(&self, key: &str, value: TomlValue<'_>, expected: &str) -> ModelError {
        let shown = self.source.text.get(value.span()).unwrap_or("");
        let shown = shown.lines().next().unwrap_or("").trim();
        let path = format!("{}{key}", self.path);
        let problem = format!("is {shown}; expected {expected}");
        self.source.error(value.span().start, &path, problem)
    }
}

const HEAD: &str = "\
# An interference model. Coefficients have no unit: a component next to co-runners, in
# cycles per cycle alone, is alpha + beta c + gamma s + delta c s, where c is the thread's
# own share of its cycles alone and s the sum of its co-runners' shares. Accuracy is of
# programs that were held out of the training.
";

fn write_provenance(text: &mut String, provenance: &Provenance) {
    text.push_str("\n[provenance]\n");
    write_line(text, "source", &toml_string(&provenance.source));
    write_line(text, "date", &toml_string(&provenance.date));
    write_line(text, "programs", &array(&provenance.programs));
    write_line(text, "quanta", &provenance.quanta.to_string());
}

fn deviation_toml(deviation: &Deviation) -> String {
    let (mean, p95) = (deviation.mean_absolute_percent, deviation.p95_percent);
    format!("{{ mean_absolute_percent = {mean:?}, p95_percent = {p95:?} }}")
}

fn write_line(text: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn array(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| toml_string(item)).collect();
    format!("[{}]", items.join(", "))
}

/// Quotes a text as a basic string of TOML, which is also valid as a key.
fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use crate::model::{
        Accuracy, ComponentParameters, Deviation, InterferenceModel, LevelParameters, Provenance,
        embedded_model,
    };
    use proptest::prelude::*;

    fn check(from: &str, to: &str, expect: &str) {
        let text = embedded_model("power8-paper").unwrap();
        assert!(text.contains(from), "{from}");
        let error = InterferenceModel::parse(&text.replacen(from, to, 1), "m.toml").unwrap_err();
        assert_eq!(error.to_string(), expect);
    }

    #[test]
    fn wrong_coefficient_is_named_with_range() {
        check(
            "beta = 1.698",
            "beta = 1698",
            "m.toml:19: level[0].parameters.base.beta: is 1698; expected a number from -1000 to 1000",
        );
        check(
            "beta = 1.698",
            "beta = nan",
            "m.toml:19: level[0].parameters.base.beta: is nan; expected a number from -1000 to 1000",
        );
        check(
            "alpha = -0.019, ",
            "",
            "m.toml:19: level[0].parameters.base.alpha: is missing; expected a number from -1000 to 1000",
        );
        check(
            "alpha = -0.019",
            "alhpa = -0.019",
            "m.toml:19: level[0].parameters.base.alhpa: unknown key; did you mean 'alpha'?",
        );
    }

    #[test]
    fn a_wrong_level_is_named() {
        check(
            "ways = 2",
            "ways = 9",
            "m.toml:16: level[0].ways: is 9; expected an integer from 2 to 8",
        );
        check(
            "[level.parameters]",
            "[[level]]\nways = 2\n[level.parameters]",
            "m.toml:15: level[0].parameters: is missing; expected a table",
        );
        check(
            "\"fixed point\" =",
            "\"fixed-point\" =",
            "m.toml:20: level[0].parameters.fixed-point: unknown key; did you mean 'fixed point'?",
        );
    }

    #[test]
    fn a_wrong_head_is_named() {
        check(
            "name = \"power8-paper\"",
            "name = 8",
            "m.toml:5: name: is 8; expected a string",
        );
        check(
            "machine = \"power8\"",
            "machine = \"\"",
            "m.toml:6: machine: is empty; give a name",
        );
        check(
            "\"floating point\", ",
            "\"base\", ",
            "m.toml:7: components: names 'base' twice; every component once",
        );
        check(
            "components = [",
            "components = [1, ",
            "m.toml:7: components: is [1, \"base\", \"fixed point\", \"floating point\", \"data cache \
             miss\"]; expected an array of strings",
        );
        check(
            "quanta = 0",
            "quanta = -1",
            "m.toml:13: provenance.quanta: is -1; expected an integer from 0 to 9223372036854775807",
        );
    }

    #[test]
    fn invalid_toml_is_named_with_its_line() {
        let error = InterferenceModel::parse("name = \"a\"\nmachine =\n", "m.toml").unwrap_err();
        assert!(error.to_string().starts_with("m.toml:2: "), "{error}");
    }

    #[test]
    fn levels_come_in_order() {
        let model = two_levels("a", vec!["base".to_owned()], [0.0, 1.0, 0.0, 0.0]);
        let text = model.to_toml();
        let swapped = text.replace("ways = 2", "ways = 6");
        let error = InterferenceModel::parse(&swapped, "m.toml")
            .unwrap_err()
            .to_string();
        let expect = "ways: is not above that of the level before; order levels by ways";
        assert!(error.ends_with(expect), "{error}");
    }

    fn two_levels(
        name: &str,
        components: Vec<String>,
        [a, b, c, d]: [f64; 4],
    ) -> InterferenceModel {
        let parameters = ComponentParameters {
            alpha: a,
            beta: b,
            gamma: c,
            delta: d,
        };
        let of_all = vec![parameters; components.len()];
        let deviation = Deviation {
            mean_absolute_percent: a.abs(),
            p95_percent: b.abs(),
        };
        let accuracy = Accuracy {
            ways: 4,
            forward: deviation,
            inverse: Deviation::default(),
        };
        InterferenceModel {
            name: name.to_owned(),
            machine: format!("{name}\t\"\\"),
            levels: vec![
                LevelParameters::new(2, of_all.clone()).unwrap(),
                LevelParameters::new(4, of_all).unwrap(),
            ],
            provenance: Provenance {
                source: "a test".to_owned(),
                date: "2026-01-31".to_owned(),
                programs: components.clone(),
                quanta: 17,
                accuracy: vec![accuracy],
            },
            components,
        }
    }

    proptest! {
        #[test]
        fn written_models_are_read_back(
            name in "\\PC{1,8}",
            components in prop::collection::btree_set("[ -~\t\n\u{7f}é]{0,6}", 1..5),
            coefficients in prop::array::uniform4(-1e3f64..1e3),
        ) {
            let model = two_levels(&name, components.into_iter().collect(), coefficients);
            let text = model.to_toml();
            prop_assert_eq!(InterferenceModel::parse(&text, "written"), Ok(model), "{}", text);
        }

        #[test]
        fn any_text_parses_or_names_its_place(
            text in "(name = \"a\"\n)?(level = |\\[\\[level\\]\\]\n|[a-z0-9=\"\n#.\\[\\]{} ]){0,40}",
        ) {
            if let Err(error) = InterferenceModel::parse(&text, "m.toml") {
                prop_assert!(error.to_string().starts_with("m.toml:"), "{}", error);
            }
        }
    }
}
