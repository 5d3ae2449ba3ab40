//! Tests of model files: what is wrong is named, what is written is read.

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
fn a_wrong_coefficient_is_named_with_line_key_and_range() {
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
fn what_is_no_toml_is_told_with_its_line() {
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

fn two_levels(name: &str, components: Vec<String>, [a, b, c, d]: [f64; 4]) -> InterferenceModel {
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
    fn what_is_written_is_read(
        name in "\\PC{1,8}",
        components in prop::collection::btree_set("[ -~\t\n\u{7f}é]{0,6}", 1..5),
        coefficients in prop::array::uniform4(-1e3f64..1e3),
    ) {
        let model = two_levels(&name, components.into_iter().collect(), coefficients);
        let text = model.to_toml();
        prop_assert_eq!(InterferenceModel::parse(&text, "written"), Ok(model), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_with_its_place(
        text in "(name = \"a\"\n)?(level = |\\[\\[level\\]\\]\n|[a-z0-9=\"\n#.\\[\\]{} ]){0,40}",
    ) {
        if let Err(error) = InterferenceModel::parse(&text, "m.toml") {
            prop_assert!(error.to_string().starts_with("m.toml:"), "{}", error);
        }
    }
}
