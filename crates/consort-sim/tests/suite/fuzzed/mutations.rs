//! Texts with stretches replaced, at random.

use consort_sim::{machine, program};
use proptest::prelude::*;

/// What is put in place of a stretch of text.
fn junk() -> impl Strategy<Value = String> {
    const NUMBERS: &[&str] = &[
        "-1",
        "0",
        "1e308",
        "-1e-300",
        "nan",
        "inf",
        "4294967295",
        "4294967296",
        "1e-300",
        "9223372036854775807",
        "4096",
        "64",
    ];
    const SHAPES: &[&str] = &[
        "\"x\"",
        "\"\\n\"",
        "[]",
        "{}",
        "true",
        "[[",
        "]",
        "}",
        "=",
        "\n",
        "\n[",
        "#",
        "\"\"\"",
        "a.b",
        "\"a\\nb\" = 1",
        "\u{85}",
        "1979-05-27",
    ];
    prop_oneof![
        prop::sample::select(NUMBERS).prop_map(str::to_owned),
        prop::sample::select(SHAPES).prop_map(str::to_owned),
        ".{0,8}",
    ]
}

/// Where values, names and everything else begin and end.
fn cuts(text: &str) -> Vec<usize> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let cuts = text
        .match_indices(ends)
        .flat_map(|(at, c)| [at, at + c.len()]);
    cuts.collect()
}

fn mutate(text: &str, at: usize, length: usize, junk: &str) -> String {
    let cuts = cuts(text);
    let Some(&start) = cuts.get(at % cuts.len().max(1)) else {
        return junk.to_owned();
    };
    let next = cuts.iter().copied().filter(|&cut| cut >= start).nth(length);
    let end = next.unwrap_or(text.len());
    format!("{}{junk}{}", &text[..start], &text[end..])
}

/// The texts of all machines that come along.
pub fn machines() -> Vec<String> {
    let texts = machine::presets::names().filter_map(machine::presets::text);
    texts.map(str::to_owned).collect()
}

/// All programs that come along, as text.
pub fn programs() -> Vec<String> {
    let specs = program::presets::names().filter_map(|name| program::presets::find(name).ok());
    specs
        .filter_map(|spec| toml::to_string(&spec).ok())
        .collect()
}

/// One of the texts with one to three stretches replaced.
pub fn of(texts: Vec<String>) -> impl Strategy<Value = String> {
    let changes = prop::collection::vec((any::<usize>(), 0usize..6, junk()), 1..4);
    (prop::sample::select(texts), changes).prop_map(|(mut text, changes)| {
        for (at, length, junk) in changes {
            text = mutate(&text, at, length, &junk);
        }
        text
    })
}
