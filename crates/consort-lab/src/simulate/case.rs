//! A workload on a machine, ready to be run under a contender.

use super::chips::single_core_chip;
use super::measurements::{RunMeasurements, RunObservers};
use super::part_error;
use super::spec::{AlonePlace, RestartKind};
use crate::frame;
use crate::study::StudyError;
use consort_experiment::watch::CoreKind;
use consort_experiment::{
    AloneWork, Contender, Experiment, ExperimentError, RunOptions, measure_alone,
};
use consort_sim::chip::Chip;
use consort_sim::engine::RunMode;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;
use std::time::Duration;

/// The operating system beneath policies on other grounds than a source's.
const OS: &str = "linux";
/// The model that deals threads to cores in turn and leaves them there.
const PINNED: &str = "pinned";
/// Delay of the others after the program that is dealt to the first core, which is large, ms.
const LATER_MS: f64 = 1e-3;

/// A workload, its machine, and the work of its programs.
#[derive(Clone)]
pub(crate) struct PreparedCase {
    /// Key, labels and programs of the case.
    pub of: frame::Case,
    /// Workload and machine.
    pub experiment: Experiment,
    /// Work of each program.
    pub work: Vec<AloneWork>,
    /// The operating system beneath policies that name none.
    beneath: String,
    /// Kind of load: programs or threads that start again when they are done.
    again: RestartKind,
    /// True if `pinned` is the mean over all programs that it may give the large core.
    all_assignments: bool,
}

impl PreparedCase {
    /// Measures the work that each program does alone in the given time. The operating system is
    /// `linux`.
    ///
    /// # Errors
    /// Programs that make no progress.
    pub fn new(
        of: frame::Case,
        chip: &Arc<Chip>,
        workload: Workload,
        (alone, alone_s): (AlonePlace, f64),
        seed: u64,
    ) -> Result<Self, StudyError> {
        let large = match alone {
            AlonePlace::LargeCore => single_core_chip(chip, CoreKind::Large)?,
            AlonePlace::Machine => Arc::clone(chip),
        };
        let mut work: Vec<AloneWork> = Vec::with_capacity(workload.entries.len());
        for (n, entry) in workload.entries.iter().enumerate() {
            // Instances of one program do the same work alone, so that one measurement serves all.
            let like = |other: &ProgramInstance| {
                Arc::ptr_eq(&other.program, &entry.program) && other.threads == entry.threads
            };
            let one = match workload.entries[..n].iter().position(like) {
                Some(same) => work[same],
                None => {
                    let place = if entry.threads == 1 { &large } else { chip };
                    measure_alone(place, entry, alone_s, seed).map_err(part_error(&of.key))?
                }
            };
            work.push(one);
        }
        let experiment = Experiment::new(chip, workload, alone_s);
        // Without the numbers of instances.
        let entries = experiment.workload.entries.iter();
        let programs = entries.map(|entry| entry.program.name.clone()).collect();
        Ok(Self {
            of: frame::Case { programs, ..of },
            experiment,
            work,
            beneath: OS.to_owned(),
            again: RestartKind::Programs,
            all_assignments: false,
        })
    }

    /// A case of that key, on `linux`, whose programs of one thread are measured alone on a large
    /// core.
    ///
    /// # Errors
    /// As [`PreparedCase::new`].
    pub fn from_key(
        key: &str,
        chip: &Arc<Chip>,
        workload: Workload,
        alone_s: f64,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let of = frame::Case {
            key: key.to_owned(),
            ..frame::Case::default()
        };
        Self::new(of, chip, workload, (AlonePlace::LargeCore, alone_s), seed)
    }

    /// Puts the case on another operating system, with other programs that start again.
    pub fn on_system(mut self, system: &str, again: RestartKind) -> Self {
        system.clone_into(&mut self.beneath);
        self.again = again;
        self
    }

    /// Takes for [`PINNED`] the mean over all programs that it may give the large core.
    pub fn with_all_assignments(mut self) -> Self {
        self.all_assignments = true;
        self
    }

    /// Lets moves cost nothing.
    pub fn with_free_migration(mut self) -> Self {
        self.experiment.free_migration = true;
        self
    }

    /// One run.
    ///
    /// # Errors
    /// Policies that are unknown or of no use here, runs that do not end.
    pub fn run(&self, policy: &str, seed: u64) -> Result<RunMeasurements, StudyError> {
        if policy != PINNED || !self.all_assignments {
            return self.run_once(policy, seed, None);
        }
        let programs = 0..self.work.len();
        let all: Result<Vec<_>, _> = programs
            .map(|first| self.run_once(policy, seed, Some(first)))
            .collect();
        Ok(RunMeasurements::mean(&all?))
    }

    /// One run, in which a program may begin before all others.
    fn run_once(
        &self,
        policy: &str,
        seed: u64,
        first: Option<usize>,
    ) -> Result<RunMeasurements, StudyError> {
        let part = format!("{} under {policy}", self.of.key);
        let entrant = StudyContender::new(policy, &self.beneath).map_err(part_error(&part))?;
        let mut experiment = Experiment {
            quantum: entrant.quantum.or(self.experiment.quantum),
            ..self.experiment.clone()
        };
        if let Some(first) = first {
            let entries = experiment.workload.entries.iter_mut().enumerate();
            let others = entries.filter(|(n, _)| *n != first);
            others.for_each(|(_, entry)| entry.start_ms += LATER_MS);
        }
        let seen = RunObservers::new(&experiment.chip);
        let reported = Some(Box::new(seen.clone()) as _);
        let options = RunOptions {
            mode: match self.again {
                RestartKind::Threads => RunMode::RestartThreadsUntilAllDone,
                RestartKind::Programs => RunMode::RestartUntilAllDone,
            },
            observer: reported,
            listener: None,
        };
        let run = experiment.run_with(&entrant.contender, &self.work, seed, options);
        Ok(RunMeasurements::new(
            &run.map_err(part_error(&part))?,
            &seen,
        ))
    }
}

/// A contender and its quantum, if it is not the policy's own.
pub(crate) struct StudyContender {
    pub contender: Contender,
    pub quantum: Option<Duration>,
}

impl StudyContender {
    /// Reads a name of rows; `os` is beneath policies that name no other.
    ///
    /// # Errors
    /// Unknown policies and models of operating systems.
    pub fn new(name: &str, os: &str) -> Result<Self, ExperimentError> {
        let (name, quantum) = match name
            .strip_suffix(" ms")
            .and_then(|n| n.split_once(" every "))
        {
            Some((before, ms)) => (before, ms.parse().ok().map(Duration::from_millis)),
            None => (name, None),
        };
        let (policy, os) = name.split_once(" on ").unwrap_or((name, os));
        let contender = Contender::new(policy, os)?;
        Ok(Self { contender, quantum })
    }
}

#[cfg(test)]
mod tests {
    use super::super::chips::chip;
    use super::super::mixes::draw_mixes;
    use super::super::programs::{find, parallel_workload, staggered_copies, suite};
    use super::*;

    #[test]
    fn program_alone_on_large_core_is_not_slowed() {
        let chip = chip("acmp-1+1").unwrap();
        let workload = staggered_copies(&find("hmmer").unwrap(), 1);
        let case = PreparedCase::from_key("x", &chip, workload, 0.05, 1).unwrap();
        let run = case.run("tcs", 1).unwrap();
        // Wherever it starts, the large core takes it over at the first quantum.
        assert!(run.slowdowns[0] < 1.05, "{:?}", run.slowdowns);
        assert!(run.large_instructions > 0.95 && run.large_accesses > 0.9);
        assert!(run.energy_j > 0.0 && run.turnaround_s == run.makespan_s);
    }

    #[test]
    fn several_threads_have_the_whole_machine_alone() {
        let chip = chip("acmp-1+3").unwrap();
        let workload = parallel_workload(&find("lu.cont").unwrap(), 4);
        let case = PreparedCase::from_key("x", &chip, workload, 0.05, 1).unwrap();
        let run = case.run("linux", 1).unwrap();
        assert!((run.slowdowns[0] - 1.0).abs() < 0.01, "{:?}", run.slowdowns);
    }

    #[test]
    fn pinned_is_the_mean_over_all_assignments() {
        let chip = chip("acmp-1+1").unwrap();
        let suite = suite("spec2006", usize::MAX).unwrap();
        let workload = draw_mixes(3, &suite, (2, 1), 1).remove(0);
        let case = PreparedCase::from_key("x", &chip, workload, 0.02, 1).unwrap();
        let each = [0, 1].map(|first| case.run_once(PINNED, 1, Some(first)).unwrap());
        // Whoever begins first has the large core to itself.
        for first in [0, 1] {
            let [there, elsewhere] = [first, 1 - first].map(|run| each[run].slowdowns[first]);
            assert!(there < 1.2 && elsewhere > 1.2, "{there} {elsewhere}");
        }
        let mean = case.with_all_assignments().run(PINNED, 1).unwrap();
        assert_eq!(mean.stp, (each[0].stp + each[1].stp) / 2.0);
    }

    #[test]
    fn failed_run_is_named_with_case_and_policy() {
        let chip = chip("acmp-1+1").unwrap();
        let workload = staggered_copies(&find("hmmer").unwrap(), 1);
        let case = PreparedCase::from_key("hmmer/1", &chip, workload, 0.01, 1).unwrap();
        let error = case.run("hrs", 1).unwrap_err().to_string();
        assert!(
            error.starts_with("hmmer/1 under hrs: unknown policy"),
            "{error}"
        );
    }

    fn check_contender(name: &str, expect: (&str, &str, Option<u64>)) {
        let entrant = StudyContender::new(name, "linux").unwrap();
        let ms = entrant.quantum.map(|q| q.as_millis() as u64);
        let contender = &entrant.contender;
        assert_eq!((contender.name(), contender.os(), ms), expect);
    }

    #[test]
    fn names_of_rows_say_policy_system_and_quantum() {
        check_contender("hrrs", ("hrrs", "linux", None));
        check_contender("kuths on pinned", ("kuths", "pinned", None));
        check_contender("random every 4 ms", ("random", "linux", Some(4)));
        assert!(StudyContender::new("kuths on linus", "linux").is_err());
    }
}
