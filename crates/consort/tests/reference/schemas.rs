//! The page of schemas: the keys of description files, from the JSON Schemas that the program prints.

use super::{consort, table};
use serde_json::{Map, Value};

/// Endings of keys that name a unit.
const UNITS: [(&str, &str); 26] = [
    ("_gb_s", "GB/s"),
    ("_mhz", "MHz"),
    ("_ghz", "GHz"),
    ("_hz", "1/s"),
    ("_kib", "KiB"),
    ("_mib", "MiB"),
    ("_gib", "GiB"),
    ("_bytes", "bytes"),
    ("_cycles", "cycles"),
    ("_percent", "%"),
    ("_pki", "per 1000 instructions"),
    ("_mpki", "misses per 1000 instructions"),
    (
        "_mpki_128",
        "misses per 1000 instructions, lines of 128 bytes",
    ),
    ("_per_minstr", "per million instructions"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_ns", "ns"),
    ("_ps", "ps"),
    ("_s", "s"),
    ("_nj", "nJ"),
    ("_pj", "pJ"),
    ("_j", "J"),
    ("_w", "W"),
    ("_v", "V"),
    ("_instructions", "instructions"),
    ("_minstr", "million instructions"),
];

/// The unit that a key's ending names; the longest ending counts.
fn unit(key: &str) -> &'static str {
    let fitting = UNITS.iter().filter(|(ending, _)| key.ends_with(ending));
    let longest = fitting.max_by_key(|(ending, _)| ending.len());
    longest.map_or("", |(_, unit)| unit)
}

fn of<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema[key].as_array().map_or(&[], Vec::as_slice)
}

/// The type of a value in words; definitions are links.
fn kind(schema: &Value, file: &str) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", anchor(file, name));
    }
    let choices = [of(schema, "anyOf"), of(schema, "oneOf")].concat();
    if !choices.is_empty() {
        let kinds = choices.iter().filter(|choice| choice["type"] != "null");
        let mut kinds: Vec<String> = kinds.map(|choice| kind(choice, file)).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(constant) = schema["const"].as_str() {
        return format!("`{constant}`");
    }
    let names = of(schema, "enum").iter().filter_map(Value::as_str);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if !names.is_empty() {
        return names.join(", ");
    }
    let types = match &schema["type"] {
        Value::Array(several) => several.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    let types = types.iter().filter_map(Value::as_str);
    let words: Vec<String> = types
        .filter(|name| *name != "null")
        .map(|name| match name {
            "array" if schema["items"].is_object() => {
                format!("list of {}", kind(&schema["items"], file))
            }
            "array" => {
                let items = of(schema, "prefixItems").iter();
                let items: Vec<String> = items.map(|item| kind(item, file)).collect();
                format!("[{}]", items.join(", "))
            }
            "object" if schema["additionalProperties"].is_object() => {
                format!("table of {}", kind(&schema["additionalProperties"], file))
            }
            "object" => "table".to_owned(),
            "string" => "text".to_owned(),
            "boolean" => "true or false".to_owned(),
            other => other.to_owned(),
        })
        .collect();
    words.join(" or ")
}

fn anchor(file: &str, name: &str) -> String {
    format!("{file}-{}", name.to_lowercase())
}

/// Description of a schema without the links of rustdoc.
fn description(schema: &Value) -> String {
    super::sources::without_links(schema["description"].as_str().unwrap_or_default())
}

fn default(schema: &Value, is_required: bool) -> String {
    match schema.get("default") {
        _ if is_required => "required".to_owned(),
        None | Some(Value::Null) => String::new(),
        Some(Value::Object(keys)) if keys.is_empty() => "none".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(Value::Object(_)) => "see there".to_owned(),
        Some(value) => format!("`{value}`"),
    }
}

/// The keys of a table, or the values of a choice.
fn body(schema: &Value, file: &str) -> String {
    let none = Map::new();
    let keys = schema["properties"].as_object().unwrap_or(&none);
    if keys.is_empty() {
        let values = [of(schema, "oneOf"), of(schema, "anyOf")].concat();
        let rows = values.iter().map(|value| {
            let mut name = kind(value, file);
            if let Some((key, inner)) = value["properties"]
                .as_object()
                .and_then(|m| m.iter().next())
            {
                name = format!("`{key}` = {}", kind(inner, file));
            }
            vec![name, description(value)]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        return match rows.is_empty() {
            true => format!("{}.\n", kind(schema, file)),
            false => table(&["value", "description"], &rows),
        };
    }
    let required = of(schema, "required");
    let rows = keys.iter().map(|(key, value)| {
        let is_required = required.iter().any(|name| name == key);
        vec![
            format!("`{key}`"),
            kind(value, file),
            unit(key).to_owned(),
            default(value, is_required),
            description(value),
        ]
    });
    let heads = ["key", "type", "unit", "default", "description"];
    table(&heads, &rows.collect::<Vec<_>>())
}

pub fn page() -> String {
    let mut text = "# Description files\n\nThe keys of the files that describe machines, programs, studies \
                    and sweeps, for anyone who writes one. For example, `consort schema machine` prints the \
                    JSON Schema behind the first part, which editors can check a file against. A key \
                    without a default may be left out unless it is required.\n"
        .to_owned();
    for file in ["machine", "program", "study", "sweep"] {
        let schema: Value = serde_json::from_str(&consort(&["schema", file])).unwrap();
        text += &format!("\n## {file} files\n\n{}\n\n", description(&schema));
        text += &body(&schema, file);
        let none = Map::new();
        let definitions = schema["$defs"].as_object().unwrap_or(&none);
        for (name, definition) in definitions {
            text += &format!("\n### {file} {name}\n\n");
            let words = description(definition);
            if !words.is_empty() {
                text += &format!("{words}\n\n");
            }
            text += &body(definition, file);
        }
    }
    text
}
