//! Analysis of asymmetric chips: experiments that are more than workloads under policies, and the
//! tables and notes on them that study files cannot state.

mod alone;
mod exchanges;
pub(crate) mod ideal;
pub(crate) mod migration;
mod views;

pub(super) use alone::{closed_form, cores_alone, programs_alone};
pub(super) use exchanges::{exchange_with_large, exchange_with_small, exchange_working_sets};
pub(super) use ideal::{ideal_at_ratios, ideal_next_to_hrrs};
pub(super) use views::{note_ceiling, note_saved_cycles, note_verdict, readings};

use super::pinned_settings;
use crate::frame::Case;
use crate::simulate::{ExperimentSpec, part_error, programs::suite};
use crate::study::StudyError;
use consort_core::Machine;
use consort_experiment::{ExperimentContext, NullSampleSource, ProgramCounters, build_machine};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::engine::{SimulatedProgram, SimulationSettings};
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// Time that a machine with one core runs between two looks at it, ns; nothing depends on it.
const LOOK_NS: u64 = 1_000_000_000;

/// Time and counters of a thread's run.
#[derive(Clone, Copy, Debug)]
struct SingleRun {
    /// Time that it took, s.
    time_s: f64,
    counters: ProgramCounters,
}

impl SingleRun {
    /// Runs so many instructions of a program on a machine with one core.
    ///
    /// # Errors
    /// No instructions.
    fn run(
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        instructions: f64,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let settings = pinned_settings(seed);
        let mut machine = start_copies(chip, program, (1, instructions), &settings, LOOK_NS)?;
        while machine
            .observe()
            .map_err(part_error(&program.name))?
            .is_some()
        {}
        let oracle = machine.oracle();
        let mut counters = ProgramCounters::default();
        for counts in oracle.threads().filter_map(|id| oracle.counts(id)) {
            counters.add(&ProgramCounters::from(&counts));
        }
        Ok(Self {
            time_s: machine.time_ns() as f64 * 1e-9,
            counters,
        })
    }

    /// Instructions per cycle.
    fn ipc(&self) -> f64 {
        self.counters.instructions / self.counters.cycles
    }
}

/// A machine without counters on which copies of a program begin, each with so many instructions.
fn start_copies(
    chip: &Arc<Chip>,
    program: &Arc<ProgramSpec>,
    (copies, instructions): (usize, f64),
    settings: &SimulationSettings,
    quantum_ns: u64,
) -> Result<SimMachine, StudyError> {
    let copy = SimulatedProgram {
        program: Arc::clone(program),
        threads: 1,
        instructions,
        start_ms: 0.0,
    };
    let quiet = Box::<NullSampleSource>::default();
    let machine = build_machine(chip, &vec![copy; copies], settings, quantum_ns, quiet);
    machine.map_err(part_error(&program.name))
}

/// The programs of the experiment's suites.
fn suite_programs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let mut all = Vec::new();
    for case in &spec.cases {
        let name = case.suite.as_deref().unwrap_or_default();
        all.extend(suite(name, case.most.at_scale(context))?);
    }
    Ok(all)
}

/// Cases of programs alone.
fn program_cases<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<Case> {
    let names = names.into_iter();
    names
        .map(|name| Case::with_label(name, "program", name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::chips::{chip, single_core_chip};
    use crate::simulate::programs::find;
    use consort_experiment::watch::CoreKind;

    #[test]
    fn large_core_is_faster_than_small() {
        let group = chip("acmp-1+3").unwrap();
        let program = find("hmmer").unwrap();
        let run = |kind| {
            let one = single_core_chip(&group, kind).unwrap();
            SingleRun::run(&one, &program, 1e9, 1).unwrap()
        };
        let (large, small) = (run(CoreKind::Large), run(CoreKind::Small));
        for side in [&large, &small] {
            assert!((side.counters.instructions - 1e9).abs() < 10.0);
            let ipc = 1e9 / (side.time_s * 2.66e9);
            assert!((side.ipc() / ipc - 1.0).abs() < 1e-6);
        }
        assert!(large.ipc() > small.ipc());
    }
}
