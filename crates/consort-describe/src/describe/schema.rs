//! The formats of description files as JSON Schema, for editors and other tools.

use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};

/// JSON Schema (2020-12) of machine files.
pub fn machine_schema() -> Value {
    titled_schema::<MachineSpec>("Consort machine description")
}

/// JSON Schema (2020-12) of program files.
pub fn program_schema() -> Value {
    titled_schema::<ProgramSpec>("Consort program profile")
}

fn titled_schema<T: JsonSchema>(title: &str) -> Value {
    let mut schema = schema_for!(T);
    schema.insert("title".to_owned(), json!(title));
    schema.to_value()
}

/// Returns the format's description of a key such as `core_type.big.smt[1].ways`.
pub(crate) fn meaning<T: JsonSchema>(path: &str) -> String {
    let root = schema_for!(T).to_value();
    let steps = path.split(['.', '[']);
    let found = steps.fold(&root, |at, step| member_schema(&root, at, step));
    let text = found["description"].as_str();
    let text = text.or_else(|| resolve_reference(&root, found)["description"].as_str());
    let text = text.unwrap_or("a value").trim_end_matches('.');
    let words = text.split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The schema of a member of `at`: a property, an element, or any key of a map.
fn member_schema<'a>(root: &'a Value, at: &'a Value, step: &str) -> &'a Value {
    let at = resolve_reference(root, at);
    if step.ends_with(']') {
        return &at["items"];
    }
    match at["properties"].get(step) {
        Some(property) => property,
        None => &at["additionalProperties"],
    }
}

/// Returns the schema that a reference refers to; of an optional value, that of the value.
fn resolve_reference<'a>(root: &'a Value, at: &'a Value) -> &'a Value {
    let at = at["anyOf"].get(0).unwrap_or(at);
    let name = at["$ref"].as_str().and_then(|r| r.rsplit('/').next());
    name.map_or(at, |name| &root["$defs"][name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_explained_in_the_words_of_the_format() {
        let check = |path: &str, expect: &str| {
            assert_eq!(meaning::<MachineSpec>(path), expect);
        };
        check("llc.ways", "Associativity");
        check("core_type.big.frequency_ghz", "Clock, GHz");
        check("core_type.big.l2.ways", "Associativity");
        check(
            "pmu.events[3].name",
            "The vendor's name, for example `PM_CYC`",
        );
        check("nothing.of.the.kind", "a value");
    }
}
