//! What the fuzz targets run, on the presets, on texts like them and on random bytes.

mod bodies;
mod mutations;
mod solved;

use crate::small::{exact, possible};
use consort_sim::{machine, program};
use proptest::prelude::*;

/// Workload expressions and files, right and wrong.
const WORKLOADS: &[&str] = &[
    "4*hmmer+4*povray",
    "streamcluster@4+./mine.toml@2",
    "mix:spec2006/10?seed=7",
    "title = 'two'\n[[entry]]\nprogram = 'mcf'\ncount = 2\nthreads = 1\nstart_ms = 5.0\n",
    "[[entry]]\nprogram = ''\ncount = 0\n",
    "entry = []",
];

#[test]
fn presets_are_read() {
    for name in machine::presets::names() {
        bodies::machine_file(machine::presets::text(name).expect("it is a preset"));
    }
    for name in program::presets::names() {
        let spec = program::presets::find(name).expect("it is a preset");
        bodies::program_file(&toml::to_string(&spec).expect("descriptions are TOML"));
    }
    WORKLOADS.iter().for_each(|text| bodies::workload(text));
}

#[test]
fn presets_as_they_are_can_be_solved() {
    for which in 0..80 {
        assert!(solved::description(&[which, which, which]), "{which}");
    }
}

/// Descriptions that were once solved to more than the chip can do.
#[test]
fn found_descriptions_are_solved() {
    assert!(solved::description(&[35, 110, 0, 231, 94, 253, 0, 95, 0]));
    assert!(solved::description(&[
        84, 207, 141, 165, 37, 141, 0, 51, 0, 0
    ]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        bodies::machine_file(&text);
        bodies::program_file(&text);
        bodies::workload(&text);
    }

    #[test]
    fn changed_machines_are_read_or_refused(text in mutations::of(mutations::machines())) {
        bodies::machine_file(&text);
    }

    #[test]
    fn changed_programs_are_read_or_refused(text in mutations::of(mutations::programs())) {
        bodies::program_file(&text);
    }

    #[test]
    fn changed_workloads_are_read_or_refused(
        text in mutations::of(WORKLOADS.iter().map(|text| (*text).to_owned()).collect()),
    ) {
        bodies::workload(&text);
    }

}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        max_global_rejects: 4000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_valid_description_is_solved_and_runs(
        input in prop::collection::vec(any::<u8>(), 3..22),
    ) {
        // What is no longer valid does not count as a case.
        prop_assume!(solved::description(&input));
    }
}
