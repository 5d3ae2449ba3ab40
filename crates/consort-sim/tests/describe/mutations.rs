//! Presets with stretches of their text replaced, at random.

use super::FILE;
use consort_sim::chip::Chip;
use consort_sim::machine::{self, MAX_PUS, presets};
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

fn mutated() -> impl Strategy<Value = String> {
    let names: Vec<_> = presets::names().collect();
    let changes = prop::collection::vec((any::<usize>(), 0usize..6, junk()), 1..4);
    (prop::sample::select(names), changes).prop_map(|(name, changes)| {
        let mut text = presets::text(name).expect("it is a preset").to_owned();
        for (at, length, junk) in changes {
            text = mutate(&text, at, length, &junk);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_text_panics_and_every_error_is_one_line_that_names_the_file(text in mutated()) {
        match machine::parse(FILE, &text) {
            Ok(spec) => {
                let pus = Chip::new(&spec, None).expect("a valid machine has PUs").places().len();
                prop_assert!((1..=MAX_PUS as usize).contains(&pus));
            }
            Err(error) => {
                let told = error.to_string();
                prop_assert!(!told.contains(char::is_control), "{told:?}");
                let place = format!("{FILE}:{}: ", error.line);
                prop_assert!(told.starts_with(&place), "{told:?}");
                prop_assert!((1..=text.lines().count() + 1).contains(&error.line));
            }
        }
    }
}
