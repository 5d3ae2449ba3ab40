//! One program on one core.

use crate::simulate::part_error;
use crate::study::StudyError;
use consort_core::Machine;
use consort_experiment::{NullSampleSource, ProgramCounters, build_machine};
use consort_sim::chip::Chip;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// Time that the machine runs between two looks at it, ns; nothing depends on it.
const LOOK_NS: u64 = 1_000_000_000;

/// Time and counters of a thread's run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleRun {
    /// Time that it took, s.
    pub time_s: f64,
    /// Counters of its run.
    pub counters: ProgramCounters,
}

impl SingleRun {
    /// Runs so many instructions of a program on a machine with one core.
    ///
    /// # Errors
    /// No instructions.
    pub fn run(
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        instructions: f64,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let settings = SimulationSettings {
            seed,
            mode: RunMode::Once,
            os: "pinned".to_owned(),
            logical_cores: false,
            free_migration: false,
        };
        let instance = SimulatedProgram {
            program: Arc::clone(program),
            threads: 1,
            instructions,
            start_ms: 0.0,
        };
        let part = part_error(&program.name);
        let quiet = Box::<NullSampleSource>::default();
        let machine = build_machine(chip, &[instance], &settings, LOOK_NS, quiet);
        let mut machine = machine.map_err(part_error(&program.name))?;
        while machine.observe().map_err(&part)?.is_some() {}
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
    pub fn ipc(&self) -> f64 {
        self.counters.instructions / self.counters.cycles
    }
}

/// Instructions of one pass through a program's phases.
pub(crate) fn pass_instr(program: &ProgramSpec) -> f64 {
    1e9 * program.phases.iter().map(|p| p.length_ginstr).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::chips::{chip, single_core_chip};
    use crate::simulate::programs::find;
    use consort_experiment::watch::CoreKind;

    #[test]
    fn a_large_core_is_faster_and_both_do_the_work() {
        let group = chip("acmp-1+3").unwrap();
        let program = find("hmmer").unwrap();
        let of = |kind| {
            let one = single_core_chip(&group, kind).unwrap();
            SingleRun::run(&one, &program, 1e9, 1).unwrap()
        };
        let (large, small) = (of(CoreKind::Large), of(CoreKind::Small));
        for side in [&large, &small] {
            assert!((side.counters.instructions - 1e9).abs() < 10.0);
            let ipc = 1e9 / (side.time_s * 2.66e9);
            assert!((side.ipc() / ipc - 1.0).abs() < 1e-6);
        }
        assert!(large.ipc() > small.ipc());
        assert!(pass_instr(&program) > 1e9);
    }
}
