//! Running a study, as the tests of all studies do.

pub mod headline;

use consort_experiment::{Scale, SharedResults};
use consort_lab::runner::{StudySettings, run};
use consort_lab::simulate::Presets;
use consort_lab::{FileStudy, Study, StudyOutput, registry};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Results that the studies of all tests have made, by number of workers: a test that compares
/// two numbers of them would else compare a result with itself.
static MADE: Mutex<BTreeMap<usize, SharedResults>> = Mutex::new(BTreeMap::new());

fn made(workers: usize) -> SharedResults {
    let mut made = MADE.lock().expect("no test fails under the lock");
    made.entry(workers).or_default().clone()
}

/// Output of a study at the quick scale with its own seed.
pub fn output(id: &str, workers: usize) -> StudyOutput {
    let known = registry().expect("the files of the studies are right");
    output_of(&*known.find(id).expect("the study is registered"), workers)
}

/// As [`output`], in two runs where the study's file has three.
pub fn output_of_two_runs(id: &str, workers: usize) -> StudyOutput {
    let name = format!("{}.toml", id.to_lowercase());
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("studies")
        .join(&name);
    let text = std::fs::read_to_string(file).expect("the study has a file");
    let fewer = text.replace("runs = { quick = 3", "runs = { quick = 2");
    assert_ne!(fewer, text, "{id} has three runs");
    let study = FileStudy::parse(&name, &fewer, Arc::new(Presets)).expect("the file is right");
    output_of(&study, workers)
}

fn output_of(study: &dyn Study, workers: usize) -> StudyOutput {
    let settings = StudySettings {
        seed: None,
        scale: Scale::Quick,
        workers: NonZeroUsize::new(workers).expect("there is a worker"),
        version: "test".to_owned(),
        made: made(workers),
    };
    let outcome = run(study, &settings, None, &|_| ()).expect("the study runs");
    outcome.into_report().output
}
