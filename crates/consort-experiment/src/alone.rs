//! Simulated machines, and runs of each program alone, which set its work and its reference.

use super::error::ExperimentError;
use crate::StopRequest;
use consort_core::{Machine, Sample, SignalOffers, ThreadId};
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{
    RunMode, SampleSource, SimulatedProgram, SimulationSettings, ThreadCounts,
};
use consort_sim::program::ThreadsSpec;
use consort_sim::{SimMachine, workload};
use serde::Serialize;
use std::sync::Arc;

/// A simulated machine with its energy model.
///
/// # Errors
/// Instances without threads or work, an operating system that does not exist.
pub fn build_machine(
    chip: &Arc<Chip>,
    instances: &[SimulatedProgram],
    settings: &SimulationSettings,
    quantum_ns: u64,
    source: Box<dyn SampleSource>,
) -> Result<SimMachine, ExperimentError> {
    let meter = Box::new(EnergyModel::new(chip));
    let chip = Arc::clone(chip);
    Ok(SimMachine::new(
        chip, instances, settings, quantum_ns, meter, source,
    )?)
}

/// A machine under `linux` without samples, on which every program runs once.
pub(crate) fn build_unwatched_machine(
    chip: &Arc<Chip>,
    instances: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
) -> Result<SimMachine, ExperimentError> {
    let settings = SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let quiet = Box::new(NullSampleSource::default());
    build_machine(chip, instances, &settings, quantum_ns, quiet)
}

/// A source without any samples.
#[derive(Debug, Default)]
pub struct NullSampleSource {
    offers: SignalOffers,
}

impl SampleSource for NullSampleSource {
    fn offers(&self) -> &SignalOffers {
        &self.offers
    }

    fn sample(&mut self, _: ThreadId, _: &ThreadCounts, _: u64) -> Sample {
        Sample::default()
    }
}

/// Work of each program, and the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunUntil {
    /// Every program does what takes it the same time alone, and starts again until the last has
    /// done its work, so that the load stays constant.
    #[default]
    EqualWork,
    /// Every program runs once, process after process, and is as long as its description says, so
    /// that the rest of the longest runs without the others.
    AllFinished,
}

impl RunUntil {
    /// Fate of a program that has done its work.
    pub fn mode(self) -> RunMode {
        match self {
            Self::EqualWork => RunMode::RestartUntilAllDone,
            Self::AllFinished => RunMode::OnceByProcesses,
        }
    }
}

/// The work of one instance and the time that it takes alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AloneWork {
    /// Instructions: of all threads if the program divides its work, else of each thread.
    pub instructions: f64,
    /// Time that they take alone on the machine, s.
    pub alone_s: f64,
}

/// Instructions in the unit in which programs state their lengths.
const GIGA: f64 = 1e9;

/// Rounds at most in which the work of a program with serial sections is found.
const ROUNDS: u32 = 8;
/// Largest deviation of its time alone from the requested time, relative.
const NEAR: f64 = 1e-3;

/// Makes what an instance does alone under `linux` in `seconds` its work.
///
/// Serial sections are a share of the work, and threads that divide it pass through all phases in a
/// run, so what a program does in the first seconds of endless work is not what takes it so long: with
/// serial sections or several phases, the work is found by running it to its end, and `alone_s` is
/// what it took, within a thousandth of `seconds`.
///
/// # Errors
/// A program that makes no progress in that time.
pub fn measure_alone(
    chip: &Arc<Chip>,
    instance: &workload::ProgramInstance,
    seconds: f64,
    seed: u64,
) -> Result<AloneWork, ExperimentError> {
    let alone = AloneRun {
        chip,
        instance,
        seconds,
        seed,
    };
    let first = alone.measure_endless()?;
    let has_phases = instance.program.phases.len() > 1;
    let in_small = |t: &ThreadsSpec| t.serial_share > 0.0 || t.divide_work && has_phases;
    if instance.threads > 1 && alone.threads().is_some_and(in_small) {
        return alone.measure_to_end(first.instructions);
    }
    Ok(first)
}

/// All of a program, as long as its description says that it is, and what that takes alone under
/// `linux`.
///
/// # Errors
/// A program that makes no progress.
pub(super) fn measure_full_length(
    chip: &Arc<Chip>,
    instance: &workload::ProgramInstance,
    seed: u64,
) -> Result<AloneWork, ExperimentError> {
    let phases = instance.program.phases.iter();
    let instructions = GIGA * phases.map(|phase| phase.length_ginstr).sum::<f64>();
    let alone = AloneRun {
        chip,
        instance,
        seconds: 1.0,
        seed,
    };
    alone.time_run(instructions)
}

/// An instance by itself on a machine.
struct AloneRun<'a> {
    chip: &'a Arc<Chip>,
    instance: &'a workload::ProgramInstance,
    seconds: f64,
    seed: u64,
}

impl AloneRun<'_> {
    fn threads(&self) -> Option<&ThreadsSpec> {
        self.instance.program.threads.as_ref()
    }

    fn build_machine(&self, instructions: f64) -> Result<SimMachine, ExperimentError> {
        let alone = SimulatedProgram {
            program: Arc::clone(&self.instance.program),
            threads: self.instance.threads,
            instructions,
            start_ms: 0.0,
        };
        let quantum_ns = (self.seconds * 1e9) as u64;
        build_unwatched_machine(self.chip, &[alone], self.seed, quantum_ns)
    }

    /// Part of endless work that it does in the time.
    fn measure_endless(&self) -> Result<AloneWork, ExperimentError> {
        let mut machine = self.build_machine(SimulatedProgram::ENDLESS)?;
        machine.observe()?;
        let done = machine.results().first().map_or(0.0, |r| r.instructions);
        if done <= 0.0 {
            return Err(self.no_progress());
        }
        let divided = self.threads().is_none_or(|t| t.divide_work);
        let shares = if divided {
            1.0
        } else {
            f64::from(self.instance.threads)
        };
        Ok(AloneWork {
            instructions: done / shares,
            alone_s: self.seconds,
        })
    }

    /// Work that takes about the time, from a first guess of it.
    fn measure_to_end(&self, guess: f64) -> Result<AloneWork, ExperimentError> {
        let mut work = self.time_run(guess)?;
        for _ in 1..ROUNDS {
            StopRequest::check()?;
            let factor = self.seconds / work.alone_s;
            if (factor - 1.0).abs() < NEAR {
                break;
            }
            // Serial sections grow with the work, so the time is nearly proportional to it, and a few
            // rounds of scaling are enough.
            work = self.time_run(work.instructions * factor)?;
        }
        Ok(work)
    }

    fn time_run(&self, instructions: f64) -> Result<AloneWork, ExperimentError> {
        let mut machine = self.build_machine(instructions)?;
        // The machine runs in mode `Once`, so observations end when the program does.
        while machine.observe()?.is_some() {}
        let results = machine.results();
        let run = results.first().and_then(|r| r.completions.first());
        let time = run.map(|run| run.end_s - run.start_s);
        let alone_s = time.ok_or_else(|| self.no_progress())?;
        Ok(AloneWork {
            instructions,
            alone_s,
        })
    }

    fn no_progress(&self) -> ExperimentError {
        ExperimentError::NoProgress {
            program: self.instance.name.clone(),
            seconds: self.seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, pair};
    use crate::{Contender, Experiment};

    fn alone(name: &str, threads: u32, seconds: f64) -> AloneWork {
        let mut workload = pair([name, name]);
        workload.entries[0].threads = threads;
        measure_alone(&chip("power7"), &workload.entries[0], seconds, 1).unwrap()
    }

    #[test]
    fn twice_the_time_is_about_twice_the_work() {
        let (one, two) = (alone("povray", 1, 1.0), alone("povray", 1, 2.0));
        assert_eq!((one.alone_s, two.alone_s), (1.0, 2.0));
        let ratio = two.instructions / one.instructions;
        assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn divided_work_is_that_of_all_threads() {
        let (one, four) = (alone("blackscholes", 1, 1.0), alone("blackscholes", 4, 1.0));
        let ratio = four.instructions / one.instructions;
        assert!(ratio > 3.0 && ratio < 4.01, "{ratio}");
    }

    /// Its serial sections are in its work in the same share, however long it runs.
    #[test]
    fn work_with_serial_sections_takes_requested_time() {
        for seconds in [0.5, 2.0] {
            let mut workload = pair(["blackscholes", "mcf"]);
            workload.entries.truncate(1);
            workload.entries[0].threads = 4;
            let experiment = Experiment::new(&chip("power7"), workload, seconds);
            let work = experiment.measure_work(1).unwrap();
            assert!((work[0].alone_s / seconds - 1.0).abs() < NEAR);
            let contender = Contender::new("linux", "linux").unwrap();
            let result = experiment.run(&contender, &work, 1, None).unwrap();
            assert!((result.programs[0].slowdown - 1.0).abs() < 1e-3);
        }
    }

    /// Alone is with all its siblings: what they wait for each other's locks is in the time.
    #[test]
    fn work_with_locks_takes_requested_time() {
        let mut workload = pair(["bodytrack", "mcf"]);
        workload.entries.truncate(1);
        workload.entries[0].threads = 4;
        let experiment = Experiment::new(&chip("power7"), workload, 0.5);
        let work = experiment.measure_work(1).unwrap();
        let contender = Contender::new("linux", "linux").unwrap();
        let result = experiment.run(&contender, &work, 1, None).unwrap();
        assert!((result.programs[0].slowdown - 1.0).abs() < 1e-3);
    }

    #[test]
    fn no_time_is_no_progress() {
        let workload = pair(["mcf", "mcf"]);
        let error = measure_alone(&chip("power7"), &workload.entries[0], 0.0, 1).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("mcf does nothing alone within 0 s")
        );
    }
}
