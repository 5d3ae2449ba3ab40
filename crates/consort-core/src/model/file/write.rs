//! Writing a model as TOML.

use crate::model::level::Level;
use crate::model::provenance::{Accuracy, Deviation, Provenance};
use crate::model::whole::Model;
use std::fmt::Write;

const HEAD: &str = "\
# An interference model. Coefficients have no unit: a component next to co-runners, in
# cycles per cycle alone, is alpha + beta c + gamma s + delta c s, where c is the thread's
# own share of its cycles alone and s the sum of its co-runners' shares. Accuracy is of
# programs that were held out of the training.
";

impl Model {
    /// The model as TOML, which [`Model::parse`] reads back to an equal model.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(HEAD);
        line(&mut text, "name", &quoted(&self.name));
        line(&mut text, "machine", &quoted(&self.machine));
        line(&mut text, "components", &array(&self.components));
        provenance(&mut text, &self.provenance);
        for level in &self.levels {
            self.level_to_toml(&mut text, level);
        }
        text
    }

    fn level_to_toml(&self, text: &mut String, level: &Level) {
        text.push_str("\n[[level]]\n");
        let ways = format!("{} # threads per core", level.ways());
        line(text, "ways", &ways);
        text.push_str("\n[level.parameters]\n");
        for (name, p) in self.components.iter().zip(level.parameters()) {
            let values = p.named().map(|(name, value)| format!("{name} = {value:?}"));
            let table = format!("{{ {} }}", values.join(", "));
            line(text, &quoted(name), &table);
        }
        let tested = self.provenance.accuracy.iter();
        for accuracy in tested.filter(|a| a.ways == level.ways()).take(1) {
            accuracy_to_toml(text, accuracy);
        }
    }
}

fn provenance(text: &mut String, provenance: &Provenance) {
    text.push_str("\n[provenance]\n");
    line(text, "source", &quoted(&provenance.source));
    line(text, "date", &quoted(&provenance.date));
    line(text, "programs", &array(&provenance.programs));
    line(text, "quanta", &provenance.quanta.to_string());
}

fn accuracy_to_toml(text: &mut String, accuracy: &Accuracy) {
    text.push_str("\n[level.accuracy]\n");
    line(text, "forward", &deviation(&accuracy.forward));
    line(text, "inverse", &deviation(&accuracy.inverse));
}

fn deviation(deviation: &Deviation) -> String {
    let (mean, p95) = (deviation.mean_absolute_percent, deviation.p95_percent);
    format!("{{ mean_absolute_percent = {mean:?}, p95_percent = {p95:?} }}")
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn array(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A basic string of TOML, which is a key as well.
fn quoted(text: &str) -> String {
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
