//! What the fuzz targets of this crate run, and the tests on a corpus and on random input.

use consort_sim::chip::Chip;
use consort_sim::describe::{DescribeError, Problems};
use consort_sim::machine::{self, MAX_PUS};
use consort_sim::program;
use consort_sim::workload::{WorkloadExpr, WorkloadFile};

/// The file that error texts must name.
const FILE: &str = "fuzzed.toml";

/// A refusal is one line that begins with the file and a line of the text.
fn check_told(error: &DescribeError, text: &str) {
    let reported = error.to_string();
    assert!(!reported.contains(char::is_control), "{reported:?}");
    let place = format!("{FILE}:{}: ", error.line);
    assert!(reported.starts_with(&place), "{reported:?}");
    assert!(
        (1..=text.lines().count() + 1).contains(&error.line),
        "{reported}"
    );
}

/// A machine file of any text is refused, or laid out.
pub fn machine_file(text: &str) {
    match machine::parse(FILE, text) {
        Ok(spec) => {
            let chip = Chip::new(&spec, None).expect("a valid machine has CPUs");
            assert!((1..=MAX_PUS as usize).contains(&chip.places().len()));
            let capacities = chip.topology().core_types().iter().map(|t| t.capacity);
            assert_eq!(capacities.max(), Some(1024));
        }
        Err(error) => check_told(&error, text),
    }
}

/// A program file of any text is refused, or valid when validated again.
pub fn program_file(text: &str) {
    match program::parse(FILE, text) {
        Ok(spec) => {
            let mut problems = Problems::default();
            program::validate(&spec, &mut problems);
            assert!(problems.list().is_empty());
        }
        Err(error) => check_told(&error, text),
    }
}

/// A workload expression comes back the same after it was written out, or is refused in one
/// line; a workload file is read or refused.
pub fn workload(text: &str) {
    match text.parse::<WorkloadExpr>() {
        Ok(expr) => assert_eq!(expr.to_string().parse(), Ok(expr)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    match WorkloadFile::parse(FILE, text) {
        Ok(file) => assert!(!file.spec().entries.is_empty()),
        Err(error) => check_told(&error, text),
    }
}
