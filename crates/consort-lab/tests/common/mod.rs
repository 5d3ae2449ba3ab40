//! Running a study, as the tests of all studies do.

use consort_lab::runner::{Settings, run};
use consort_lab::studies::REGISTRY;
use consort_lab::{Scale, StudyOutput};
use std::num::NonZeroUsize;

/// What a study gives at the quick scale with its own seed.
pub fn output(id: &str, workers: usize) -> StudyOutput {
    let settings = Settings {
        seed: None,
        scale: Scale::Quick,
        workers: NonZeroUsize::new(workers).expect("there is a worker"),
        version: "test".to_owned(),
    };
    let study = REGISTRY.find(id).expect("the study is registered");
    let outcome = run(study, &settings, None, &|_| ()).expect("the study runs");
    outcome.into_report().output
}
