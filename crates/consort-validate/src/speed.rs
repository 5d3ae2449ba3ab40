//! Simulated instructions per second of the host: the two scenarios that the simulator is
//! built for.
//!
//! Pitfall: the one group whose figures depend on the host, its load and the build.

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::error::ValidateError;
use super::group::{GroupInputs, GroupOutput};
use consort_experiment::bench::{ACMP, POWER8, SimulationBench};

/// The group's name.
pub(super) const NAME: &str = "speed";

const SPEED: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "aim of the project; instruction-level simulators reach 1e5 to 1e7, analytic ones 1e11",
    unit: "instr/host s",
    tolerance: Tolerance::absolute(0.0),
};

/// Runs of each scenario; the median counts.
const RUNS: usize = 5;

pub(super) fn run(_: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
    let checks = [POWER8, ACMP].map(measure_scenario);
    let build = if cfg!(debug_assertions) {
        "a build that was not optimised for speed"
    } else {
        "an optimised build"
    };
    Ok(GroupOutput {
        checks: checks.into_iter().collect::<Result<_, _>>()?,
        notes: vec![format!(
            "Measured now, in processor time of one thread of this host, by {build}. \
             `consort bench` repeats the same runs more often and gives the spread."
        )],
        ..GroupOutput::default()
    })
}

fn measure_scenario(scenario: SimulationBench) -> Result<ValidationCheck, ValidateError> {
    let mut runs = scenario.run_times(RUNS)?;
    runs.sort_by(|a, b| a.speed().total_cmp(&b.speed()));
    let median = runs[RUNS / 2];
    let note = format!(
        "median of {RUNS} runs of {} quanta: {:.2e} instructions in {:.3} s",
        median.quanta, median.instructions, median.seconds
    );
    let aim = PublishedFigure::AtLeast(scenario.target());
    Ok(SPEED
        .check(scenario.name(), scenario.title(), aim, median.speed())
        .with_note(note))
}
