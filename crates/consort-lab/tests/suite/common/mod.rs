//! Running a study, as the tests of all studies do.

pub mod headline;

use consort_experiment::{Made, Scale};
use consort_lab::StudyOutput;
use consort_lab::registry;
use consort_lab::runner::{Settings, run};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;

/// Results that the studies of all tests have made, by number of workers: a test that compares
/// two numbers of them would else compare a result with itself.
static MADE: Mutex<BTreeMap<usize, Made>> = Mutex::new(BTreeMap::new());

fn made(workers: usize) -> Made {
    let mut made = MADE.lock().expect("no test fails under the lock");
    made.entry(workers).or_default().clone()
}

/// Output of a study at the quick scale with its own seed.
pub fn output(id: &str, workers: usize) -> StudyOutput {
    let settings = Settings {
        seed: None,
        scale: Scale::Quick,
        workers: NonZeroUsize::new(workers).expect("there is a worker"),
        version: "test".to_owned(),
        made: made(workers),
    };
    let known = registry().expect("the files of the studies are right");
    let study = known.find(id).expect("the study is registered");
    let outcome = run(&*study, &settings, None, &|_| ()).expect("the study runs");
    outcome.into_report().output
}
