//! Tests: wrong published figures are noticed, and broken data is named.

use super::*;
use crate::testing::workers;
use consort_experiment::Scale;

fn validate(group: &str, data: &PublishedData) -> Result<Validation, ValidateError> {
    let groups = select(&[group.to_owned()]).unwrap();
    let context = ExperimentContext::new(1, Scale::Quick, workers(2), &|_| ());
    let inputs = GroupInputs {
        data,
        context: &context,
        traces: None,
    };
    run(&groups, &inputs)
}

/// The embedded file with the line that starts with `line` replaced.
fn changed(file: &str, line: &str, by: &str) -> PublishedData {
    let data = PublishedData::embedded();
    let text = data.text(file).unwrap();
    let lines = text
        .lines()
        .map(|l| if l.starts_with(line) { by } else { l });
    let changed = lines.collect::<Vec<_>>().join("\n");
    assert_ne!(changed, text.trim_end());
    data.with_file(file, changed)
}

fn check<'a>(validation: &'a Validation, id: &str) -> &'a ValidationCheck {
    validation.checks.iter().find(|c| c.id == id).unwrap()
}

#[test]
fn wrong_published_figure_is_a_named_disagreement() {
    let before = validate("consistency", &PublishedData::embedded()).unwrap();
    assert!(check(&before, "cpi/mcf").agrees);
    let wrong = changed(
        "spec2006-skylake.csv",
        "mcf,",
        "mcf,316,9.9,5.1,2.75,59.09,27.69",
    );
    let after = validate("consistency", &wrong).unwrap();
    let mcf = check(&after, "cpi/mcf");
    assert!(!mcf.agrees && mcf.error.unwrap() < -0.5, "{mcf:?}");
    let mut listed = after.disagreements.iter();
    let listed = listed.find(|d| d.id == "cpi/mcf").unwrap();
    assert!(listed.text.contains("published 9.900"), "{}", listed.text);
    assert_eq!(after.disagreements.len(), before.disagreements.len() + 1);
    assert!(after.laws_hold());
}

#[test]
fn other_kernel_placement_is_a_disagreement() {
    let data = PublishedData::embedded();
    let text = data.text("linux-placements.toml").unwrap();
    let packed = text.replace("\"1|0 1|0 0|0 0|0\"", "\"1|1 0|0 0|0 0|0\"");
    let validation = validate(
        "placement",
        &data.with_file("linux-placements.toml", packed),
    )
    .unwrap();
    let pair = check(&validation, "2-threads-after-300-ms");
    assert_eq!((pair.ours, pair.agrees), (1.0, false));
}

#[test]
fn broken_law_is_a_failure() {
    let mut validation = validate("conservation", &PublishedData::embedded()).unwrap();
    assert!(validation.laws_hold(), "{:?}", validation.disagreements);
    validation.summary[0].disagree = 1;
    assert!(!validation.laws_hold());
}

#[test]
fn broken_data_is_named_with_its_file() {
    let error = |group: &str, file: &str, text: &str| {
        let result = validate(group, &PublishedData::embedded().with_file(file, text));
        result.unwrap_err().to_string()
    };
    let csv = error("consistency", "spec2006-mix.csv", "program,branch\nmcf,1\n");
    assert!(csv.contains("spec2006-mix.csv"), "{csv}");
    let form = error(
        "independent",
        "forms.csv",
        "id,low,high,unit,what,source\nnone,1,2,u,w,s\n",
    );
    assert!(
        form.contains("forms.csv") && form.contains("'none'"),
        "{form}"
    );
    let machine = error("placement", "forms-machine.toml", "name = 3");
    assert!(machine.contains("forms-machine.toml:1"), "{machine}");
}

#[test]
fn every_speed_is_above_zero() {
    let validation = validate("speed", &PublishedData::embedded()).unwrap();
    assert!(validation.checks.iter().all(|c| c.ours > 0.0));
}

#[test]
fn groups_are_selected_in_registry_order() {
    let names = |requested: &[&str]| -> Vec<&str> {
        let requested: Vec<String> = requested.iter().map(|&name| name.to_owned()).collect();
        select(&requested)
            .unwrap()
            .iter()
            .map(|group| group.name)
            .collect()
    };
    assert_eq!(names(&["speed", "consistency"]), ["consistency", "speed"]);
    assert_eq!(names(&[]).len(), GROUPS.len() - 1);
    assert_eq!(names(&["reference"]), ["reference"]);
}

#[test]
fn unknown_group_is_named_with_a_hint() {
    let error = select(&["consistancy".to_owned()]).unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "unknown group 'consistancy'; did you mean 'consistency'?"
    );
}

#[test]
fn missing_smt_pair_is_broken_data() {
    let data = changed("smt2-tacle.csv", "epic,ndes,", "");
    let error = validate("smt", &data).unwrap_err().to_string();
    assert!(error.contains("smt2-tacle.csv"), "{error}");
    assert!(error.contains("a pair is missing"), "{error}");
}
