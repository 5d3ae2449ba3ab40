//! `consort schema`: formats for other tools.

use crate::check_refused;
use crate::common::{consort, json, run, stderr};

#[test]
fn schemas_are_json_and_describe_the_keys_of_the_files() {
    let kinds = [
        ("machine", "core_type"),
        ("program", "phase"),
        ("study", "experiments"),
    ];
    for (kind, key) in kinds {
        let output = run(consort().args(["schema", kind]));
        assert!(output.status.success(), "{}", stderr(&output));
        let schema = json(&output);
        assert!(
            schema["$schema"]
                .as_str()
                .is_some_and(|s| s.contains("2020-12"))
        );
        let title = schema["title"].as_str().unwrap();
        assert!(title.contains(kind), "{title}");
        assert!(schema["properties"].get(key).is_some(), "{kind}: {key}");
    }
}

#[test]
fn a_program_printed_as_json_has_only_keys_of_the_schema() {
    let schema = json(&run(consort().args(["schema", "program"])));
    let program = json(&run(consort().args(["programs", "mcf", "--format", "json"])));
    for key in program.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}

#[test]
fn unknown_kinds_are_refused_with_those_there_are() {
    check_refused(&["schema", "workflow"], &["workflow", "machine", "program"]);
    check_refused(&["schema"], &["KIND"]);
}
