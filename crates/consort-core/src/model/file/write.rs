//! Writing a model as TOML.

use crate::model::interference_model::InterferenceModel;
use crate::model::level::LevelParameters;
use crate::model::provenance::{Accuracy, Deviation, Provenance};
use std::fmt::Write;

const HEAD: &str = "\
# An interference model. Coefficients have no unit: a component next to co-runners, in
# cycles per cycle alone, is alpha + beta c + gamma s + delta c s, where c is the thread's
# own share of its cycles alone and s the sum of its co-runners' shares. Accuracy is of
# programs that were held out of the training.
";

impl InterferenceModel {
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
            accuracy_to_toml(text, accuracy);
        }
    }
}

fn write_provenance(text: &mut String, provenance: &Provenance) {
    text.push_str("\n[provenance]\n");
    write_line(text, "source", &toml_string(&provenance.source));
    write_line(text, "date", &toml_string(&provenance.date));
    write_line(text, "programs", &array(&provenance.programs));
    write_line(text, "quanta", &provenance.quanta.to_string());
}

fn accuracy_to_toml(text: &mut String, accuracy: &Accuracy) {
    text.push_str("\n[level.accuracy]\n");
    write_line(text, "forward", &deviation(&accuracy.forward));
    write_line(text, "inverse", &deviation(&accuracy.inverse));
}

fn deviation(deviation: &Deviation) -> String {
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

/// A basic string of TOML, which is a key as well.
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
