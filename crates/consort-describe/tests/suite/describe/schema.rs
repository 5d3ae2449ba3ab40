//! The published schemas: presets conform to theirs, every key is explained.

use consort_describe::describe::{machine_schema, program_schema};
use consort_describe::machine::presets;
use serde_json::Value;

/// Checks keys of `value` against `schema`: all required there, none unknown.
fn conforms(root: &Value, schema: &Value, value: &Value, path: &str) {
    let reference = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next());
    let schema = reference.map_or(schema, |name| &root["$defs"][name]);
    if let Some(first) = schema["anyOf"].get(0).filter(|_| !value.is_null()) {
        return conforms(root, first, value, path);
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(root, &schema["items"], item, path);
    }
    let Some(object) = value.as_object() else {
        return;
    };
    for key in schema["required"].as_array().into_iter().flatten() {
        let key = key.as_str().expect("names are strings");
        assert!(object.contains_key(key), "{path}.{key}");
    }
    for (key, member) in object {
        let rest = &schema["additionalProperties"];
        let inner = schema["properties"].get(key).unwrap_or(rest);
        assert!(inner.is_object(), "{path}.{key} is not in the schema");
        conforms(root, inner, member, &format!("{path}.{key}"));
    }
}

#[test]
fn presets_conform_to_the_published_schema() {
    let schema = machine_schema();
    for name in presets::names() {
        let spec = presets::find(name).expect("it is a preset");
        let value = serde_json::to_value(&spec).expect("a description is a tree");
        conforms(&schema, &schema, &value, name);
    }
}

#[test]
fn schemas_explain_every_key() {
    for schema in [machine_schema(), program_schema()] {
        assert!(
            schema["title"]
                .as_str()
                .is_some_and(|t| t.starts_with("Consort"))
        );
        let kinds = schema["$defs"].as_object().expect("there are definitions");
        for kind in kinds.values().chain([&schema]) {
            for (key, property) in kind["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{key}");
            }
        }
    }
}
