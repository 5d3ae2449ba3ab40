//! The pages that come from lists: policies, metrics and errors.

use super::sources::{Sources, arguments, comment};
use super::{consort, root, table};
use consort_lab::frame::{BetterDirection, MEASURES};
use serde_json::Value;
use std::collections::BTreeMap;

/// A value of JSON as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub fn policies_page() -> String {
    let listed = consort(&["policies", "--format", "json"]);
    let policies: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let mut text = "# Policies\n\nEvery policy with its signals, its source and its options, for anyone who \
                    chooses one with `--policy`. Options follow the name: for example, `consort run \
                    --policy workover:margin=0.1,numa=false -- make -j8`. The mechanisms are explained in \
                    [the contention model](../concepts/contention.md) and the pages on policies.\n"
        .to_owned();
    let families: Vec<&Value> = policies.iter().map(|policy| &policy["family"]).collect();
    let mut seen = Vec::new();
    for family in families {
        if seen.contains(&family) {
            continue;
        }
        seen.push(family);
        text += &format!("\n## Family {}\n", plain(family));
        for policy in policies.iter().filter(|policy| &policy["family"] == family) {
            text += &policy_part(policy);
        }
    }
    text
}

fn policy_part(policy: &Value) -> String {
    let keys = policy.as_object().unwrap();
    // What can run here depends on the machine.
    let said = ["name", "family", "summary", "options", "here"];
    let facts = keys.iter().filter(|(key, _)| !said.contains(&key.as_str()));
    let facts = facts.map(|(key, value)| {
        let (key, unit) = match key.strip_suffix("_ms") {
            Some(key) => (key, " ms"),
            None => (key.as_str(), ""),
        };
        vec![key.replace('_', " "), format!("{}{unit}", plain(value))]
    });
    let facts = table(&["property", "value"], &facts.collect::<Vec<_>>());
    let options = policy["options"].as_array().unwrap();
    let options = options.iter().map(|option| {
        ["name", "default", "meaning"]
            .map(|key| plain(&option[key]))
            .to_vec()
    });
    let options = options.map(|mut cells| {
        cells[0] = format!("`{}`", cells[0]);
        cells
    });
    let options = table(
        &["option", "default", "meaning"],
        &options.collect::<Vec<_>>(),
    );
    let options = match options.is_empty() {
        true => String::new(),
        false => format!("\n{options}"),
    };
    let name = plain(&policy["name"]);
    let summary = plain(&policy["summary"]);
    format!("\n### {name}\n\n`{name}` {summary}.\n\n{facts}{options}")
}

pub fn metrics_page() -> String {
    let snapshot = "crates/consort/src/commands/daemon/snapshots/\
                    consort__commands__daemon__metrics__tests__the_page_has_every_metric.snap";
    let snapshot = std::fs::read_to_string(root().join(snapshot)).unwrap();
    let mut metrics: Vec<Vec<String>> = Vec::new();
    for line in snapshot.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some("#"), Some(what), Some(name), Some(rest)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        if what == "HELP" {
            metrics.push(vec![
                format!("`{name}`"),
                String::new(),
                String::new(),
                rest.to_owned(),
            ]);
            continue;
        }
        let metric = metrics.iter_mut().find(|m| m[0] == format!("`{name}`"));
        match (what, metric) {
            ("TYPE", Some(metric)) => metric[1] = rest.to_owned(),
            ("UNIT", Some(metric)) => metric[2] = rest.to_owned(),
            // The encoder writes the type first for some metrics.
            ("TYPE", None) => {}
            _ => panic!("unexpected line of metrics: {line}"),
        }
    }
    let rows = MEASURES.iter().map(|measure| {
        let better = match measure.better {
            BetterDirection::Higher => "higher",
            BetterDirection::Lower => "lower",
            BetterDirection::Neither => "",
        };
        let unit = measure.unit.unwrap_or_default().to_owned();
        let key = format!("`{}`", measure.key);
        vec![key, measure.title.to_owned(), unit, better.to_owned()]
    });
    format!(
        "# Metrics\n\nThe metrics that a daemon serves to Prometheus, and the measures that studies can show, \
         for anyone who plots them. For example, a daemon with `[metrics] listen = \"127.0.0.1:9464\"` \
         answers `curl http://127.0.0.1:9464/metrics` with the first table. Formulas are in \
         [Metrics](../concepts/metrics.md).\n\n## Metrics of a daemon\n\nCounters end in `_total` on the \
         page that is served.\n\n{}\n## Measures of studies\n\nThe key of a measure is that of study \
         files and of `--out`.\n\n{}",
        table(&["metric", "type", "unit", "description"], &metrics),
        table(
            &["measure", "title", "unit", "better"],
            &rows.collect::<Vec<_>>()
        )
    )
}

/// The text of an error message with `…` for the parts that differ.
fn message(attribute: &[String]) -> Option<String> {
    let joined = attribute.join(", ");
    let literal: syn::LitStr = joined
        .char_indices()
        .skip(1)
        .filter(|(_, letter)| *letter == '"')
        .find_map(|(end, _)| syn::parse_str(joined.get(..=end)?).ok())?;
    let mut text = String::new();
    let mut depth = 0;
    for letter in literal.value().chars() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                text.push('…');
            }
            other if depth == 0 => text.push(other),
            _ => {}
        }
    }
    Some(text)
}

pub fn errors_page() -> String {
    let sources = Sources::read(&["#[error("]);
    let mut crates: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for (_, found) in sources.all() {
        let mut parts: Vec<&[syn::Attribute]> = vec![found.attributes()];
        if let syn::Item::Enum(item) = &found.item {
            parts.extend(item.variants.iter().map(|variant| variant.attrs.as_slice()));
        }
        for attributes in parts {
            if let Some(message) = message(&arguments(attributes, "error")) {
                let row = vec![message, comment(attributes)];
                crates.entry(found.krate()).or_default().push(row);
            }
        }
    }
    let help = consort(&["--help"]);
    let codes: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Exit codes"))
        .take_while(|line| !line.is_empty())
        .collect();
    let mut text = format!(
        "# Errors\n\nThe messages of errors by the part of Consort that reports them, for anyone who searches \
         for one. For example, a wrong name of a machine gives `consort: unknown machine 'power9'; known: …` \
         and exit code 2. `…` stands for a part that differs.\n\n{}\n",
        codes.join("\n")
    );
    for (krate, mut rows) in crates {
        rows.sort();
        rows.dedup();
        text += &format!("\n## {krate}\n\n{}", table(&["message", "meaning"], &rows));
    }
    text
}
