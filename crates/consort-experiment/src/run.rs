//! One run.

use super::alone::{AloneWork, RunUntil, build_machine, measure_alone, measure_full_length};
use super::contender::Contender;
use super::error::ExperimentError;
use super::oracle::{OracleMachine, SharedDemands};
use super::result::{DecisionTime, RunResult};
use crate::{ExperimentContext, Scale, StopRequest};
use consort_core::plan::Decision;
use consort_core::policy::{Policy, PolicyForm, PolicyRng, View, Wishes};
use consort_core::{Backoff, ControlLoop};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::workload::Workload;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run is given up when it takes this many times what its programs take alone, one after the
/// other.
const PATIENCE: f64 = 20.0;

/// A simulated machine under a policy.
pub(super) type SimulatedLoop = ControlLoop<OracleMachine>;

/// Restarts, observer and listener of a run.
pub struct RunOptions {
    /// Fate of a program that has done its work; by default it starts again until the last program
    /// has done its own.
    pub mode: RunMode,
    /// Is called for everything that the machine does.
    pub observer: Option<Box<dyn Observer>>,
    /// Is called with every decision.
    pub listener: Option<DecisionListener>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            mode: RunMode::RestartUntilAllDone,
            observer: None,
            listener: None,
        }
    }
}

/// A workload on a machine.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub chip: Arc<Chip>,
    /// The programs.
    pub workload: Workload,
    /// Time that each program's work takes alone, s; of no effect for whole programs.
    pub alone_s: f64,
    /// Work of each program, and the end of a run.
    pub until: RunUntil,
    /// Quantum; the policy's own when none.
    pub quantum: Option<Duration>,
    /// True if moves from CPU to CPU cost nothing, for comparison with closed forms.
    pub free_migration: bool,
}

impl Experiment {
    /// A workload on a machine with the policy's own quantum and the usual cost of moves.
    pub fn new(chip: &Arc<Chip>, workload: Workload, alone_s: f64) -> Self {
        Self {
            chip: Arc::clone(chip),
            workload,
            alone_s,
            until: RunUntil::EqualWork,
            quantum: None,
            free_migration: false,
        }
    }

    /// The work of every instance.
    ///
    /// # Errors
    /// A program that makes no progress alone.
    pub fn measure_work(&self, seed: u64) -> Result<Vec<AloneWork>, ExperimentError> {
        let mut known: Vec<AloneWork> = Vec::new();
        let entries = &self.workload.entries;
        for (i, entry) in entries.iter().enumerate() {
            // Copies of a program have the same work.
            let like = |other: &consort_sim::workload::ProgramInstance| {
                Arc::ptr_eq(&other.program, &entry.program) && other.threads == entry.threads
            };
            let work = match entries[..i].iter().position(like) {
                Some(same) => known[same],
                None if self.until == RunUntil::AllFinished => {
                    measure_full_length(&self.chip, entry, seed)?
                }
                None => measure_alone(&self.chip, entry, self.alone_s, seed)?,
            };
            known.push(work);
        }
        Ok(known)
    }

    /// One run under a contender; the observer, if there is one, is called for everything.
    ///
    /// # Errors
    /// Needs of the policy that the machine does not meet; runs that do not end.
    pub fn run(
        &self,
        contender: &Contender,
        work: &[AloneWork],
        seed: u64,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<RunResult, ExperimentError> {
        let options = RunOptions {
            mode: self.until.mode(),
            observer,
            listener: None,
        };
        self.run_with(contender, work, seed, options)
    }

    /// One run with options. With [`RunMode::Once`], CPUs of programs that have done their work are
    /// free for the others, and the run is over when the last has done its own. With
    /// [`RunMode::RestartThreadsUntilAllDone`], as many threads run as at the start, because threads
    /// that are done before their siblings start again, too.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn run_with(
        &self,
        contender: &Contender,
        work: &[AloneWork],
        seed: u64,
        options: RunOptions,
    ) -> Result<RunResult, ExperimentError> {
        let start = Instant::now();
        let (mut control, decisions) = self.build_loop(contender, work, seed, options)?;
        let moves = self.run_until_done(&mut control, work, 1)?;
        let decision_us = *decisions.borrow();
        let (chip, machine) = (&self.chip, control.machine().inner());
        let mut result = RunResult::gather(chip, &self.workload, contender, work, seed, machine);
        result.until = self.until;
        result.moves = moves;
        result.decision_us = decision_us;
        result.host_s = start.elapsed().as_secs_f64();
        result.simulated_minstr_per_host_s /= result.host_s.max(1e-9);
        Ok(result)
    }

    /// A machine with its policy, ready to run.
    pub(super) fn build_loop(
        &self,
        contender: &Contender,
        work: &[AloneWork],
        seed: u64,
        options: RunOptions,
    ) -> Result<(SimulatedLoop, Rc<RefCell<DecisionTime>>), ExperimentError> {
        // A contender that is not ready prepares itself in each run, for callers with a single run.
        let prepared;
        let contender = if contender.is_ready() {
            contender
        } else {
            let workers = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
            let context = ExperimentContext::new(seed, Scale::Full, workers, &|_| ());
            prepared = contender.prepare(&self.chip, &self.workload, &context)?;
            &prepared
        };
        let truth = contender.shared_demands();
        let (pmu, policy, own) = self.open(contender, truth.as_ref(), seed)?;
        let quantum = self.quantum.unwrap_or(own);
        let settings = SimulationSettings {
            seed,
            mode: options.mode,
            os: contender.os().to_owned(),
            logical_cores: policy.wishes().form == PolicyForm::Hardware,
            free_migration: self.free_migration,
        };
        let quantum_ns = quantum.as_nanos() as u64;
        let entries = self.workload.entries.iter().zip(work);
        let instances: Vec<SimulatedProgram> = entries
            .map(|(entry, work)| SimulatedProgram {
                program: Arc::clone(&entry.program),
                threads: entry.threads,
                instructions: work.instructions,
                start_ms: entry.start_ms,
            })
            .collect();
        let mut machine =
            build_machine(&self.chip, &instances, &settings, quantum_ns, Box::new(pmu))?;
        if let Some(observer) = options.observer {
            machine.set_observer(observer);
        }
        let (policy, decisions) = TimedPolicy::new(policy, options.listener);
        let machine = OracleMachine::new(machine, truth);
        let control = ControlLoop::new(machine, Box::new(policy), Backoff::off(), seed);
        Ok((control, decisions))
    }

    /// The quantum under a contender: the one that is set, or its own.
    ///
    /// # Errors
    /// Needs of the policy that the machine does not meet.
    pub fn quantum_under(&self, contender: &Contender) -> Result<Duration, ExperimentError> {
        if let Some(quantum) = self.quantum {
            return Ok(quantum);
        }
        let (.., own) = self.open(contender, None, 0)?;
        Ok(own)
    }

    /// The counters that a contender uses, its policy, and the quantum that is its own.
    fn open(
        &self,
        contender: &Contender,
        truth: Option<&SharedDemands>,
        seed: u64,
    ) -> Result<(SimulatedPmu, Box<dyn Policy>, Duration), ExperimentError> {
        let signals = contender.used_signals(self.chip.topology());
        let wanted = PmuRequest {
            signals: (!signals.is_empty()).then(|| signals.to_vec()),
            ..PmuRequest::default()
        };
        let pmu = SimulatedPmu::new(self.chip.spec(), &wanted, seed)?;
        let (policy, usual_ms) = contender.open(&self.chip, pmu.offers(), truth)?;
        let wishes = policy.wishes();
        let own_ms = wishes.quantum_in_ms(wishes.form, usual_ms);
        Ok((pmu, policy, Duration::from_millis(own_ms)))
    }

    /// Runs quanta until every program has done its work `times` times. Returns the number of masks
    /// that were changed.
    pub(super) fn run_until_done(
        &self,
        control: &mut SimulatedLoop,
        work: &[AloneWork],
        times: u32,
    ) -> Result<u64, ExperimentError> {
        let alone: f64 = work.iter().map(|w| w.alone_s).sum();
        let starts = self.workload.entries.iter().map(|e| e.start_ms / 1e3);
        let late = starts.fold(0.0, f64::max);
        let limit = late + PATIENCE * alone * f64::from(times);
        let mut moves = 0;
        while let Some(turn) = control.run_turn()? {
            StopRequest::check()?;
            moves += turn.enacted.moved.len() as u64;
            if control.machine().inner().time_ns() as f64 > limit * 1e9 {
                return Err(self.endless_error(control.machine().inner(), limit, times));
            }
        }
        Ok(moves)
    }

    fn endless_error(&self, machine: &SimMachine, seconds: f64, times: u32) -> ExperimentError {
        let results = machine.results();
        let waiting = results
            .iter()
            .position(|r| r.completions.len() < times as usize);
        let program = waiting.and_then(|i| self.workload.entries.get(i));
        ExperimentError::Endless {
            program: program.map_or_else(String::new, |entry| entry.name.clone()),
            seconds,
            times: PATIENCE * f64::from(times),
        }
    }
}

/// Listener to every decision.
pub type DecisionListener = Box<dyn FnMut(&Decision)>;

/// A policy with a stopwatch.
pub(super) struct TimedPolicy {
    policy: Box<dyn Policy>,
    listener: Option<DecisionListener>,
    time: Rc<RefCell<DecisionTime>>,
}

impl TimedPolicy {
    pub(super) fn new(
        policy: Box<dyn Policy>,
        listener: Option<DecisionListener>,
    ) -> (Self, Rc<RefCell<DecisionTime>>) {
        let time = Rc::default();
        let timed = Self {
            policy,
            listener,
            time: Rc::clone(&time),
        };
        (timed, time)
    }
}

impl Policy for TimedPolicy {
    fn wishes(&self) -> Wishes {
        self.policy.wishes()
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let start = Instant::now();
        let decision = self.policy.decide(view, rng);
        let micros = start.elapsed().as_secs_f64() * 1e6;
        self.time.borrow_mut().add(micros);
        if let Some(listener) = &mut self.listener {
            listener(&decision);
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, pair};
    use consort_core::Signal;
    use consort_core::trial::{ProgressMeasure, Trial, TrialTiming};

    fn experiment(machine: &str, alone_s: f64) -> Experiment {
        Experiment::new(&chip(machine), pair(["bzip2", "povray"]), alone_s)
    }

    /// By hand: povray of 10^9 and bzip2 of 10^10 instructions. Alone, each takes its instructions
    /// over its own rate; together, povray ends long before bzip2 and does not start again.
    #[test]
    fn whole_programs_run_once_at_their_length() {
        let mut workload = pair(["bzip2", "povray"]);
        for (entry, length) in workload.entries.iter_mut().zip([10.0, 1.0]) {
            let mut program = (*entry.program).clone();
            program.phases.truncate(1);
            program.phases[0].length_ginstr = length;
            entry.program = Arc::new(program);
        }
        let experiment = Experiment {
            until: RunUntil::AllFinished,
            ..Experiment::new(&chip("bulldozer-6282se"), workload, 30.0)
        };
        let work = experiment.measure_work(1).unwrap();
        let lengths: Vec<f64> = work.iter().map(|w| w.instructions).collect();
        assert_eq!(lengths, [1e10, 1e9]);
        let linux = Contender::new("linux", "linux").unwrap();
        let result = experiment.run(&linux, &work, 1, None).unwrap();
        let [bzip2, povray] = &result.programs[..] else {
            panic!("two programs were run")
        };
        assert_eq!(result.until, RunUntil::AllFinished);
        assert!(povray.together_s < 0.5 * bzip2.together_s);
        assert_eq!(result.makespan_s, bzip2.together_s);
        assert!(povray.counters.instructions < 1.01e9);
    }

    fn run_once(experiment: &Experiment, work: &[AloneWork]) -> RunResult {
        let options = RunOptions {
            mode: RunMode::Once,
            ..RunOptions::default()
        };
        let linux = Contender::new("linux", "linux").unwrap();
        experiment.run_with(&linux, work, 1, options).unwrap()
    }

    fn run(experiment: &Experiment, policy: &str) -> RunResult {
        let work = experiment.measure_work(1).unwrap();
        let contender = Contender::new(policy, "linux").unwrap();
        experiment.run(&contender, &work, 1, None).unwrap()
    }

    #[test]
    fn counters_are_those_of_the_program_alone() {
        let result = run(&experiment("bulldozer-6282se", 2.0), "linux");
        let [bzip2, povray] = &result.programs[..] else {
            panic!("two programs were run")
        };
        // Only one of them has floating-point operations.
        assert_eq!(bzip2.counters.fpu_busy_cycles, 0.0);
        assert!(povray.counters.fpu_busy() > 0.2);
        for program in [bzip2, povray] {
            let counters = &program.counters;
            assert!(counters.instructions >= program.instructions);
            assert_eq!(counters.instructions / counters.cycles, program.ipc);
            let explained: f64 = counters.stack_cycles.iter().sum();
            assert!((explained / counters.cycles - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn measures_follow_from_the_programs() {
        let result = run(&experiment("bulldozer-6282se", 2.0), "workover");
        let slowdowns: Vec<f64> = result.programs.iter().map(|p| p.slowdown).collect();
        let stp: f64 = slowdowns.iter().map(|s| 1.0 / s).sum();
        assert!((result.stp - stp).abs() < 1e-12);
        let last = result.programs.iter().map(|p| p.together_s);
        assert_eq!(result.makespan_s, last.fold(0.0, f64::max));
        assert!(slowdowns.iter().all(|s| *s > 0.98), "{slowdowns:?}");
    }

    /// bzip2 is three times as long as povray. It has the core to itself once povray has ended, and
    /// does the rest as fast as alone.
    #[test]
    fn rest_of_longer_program_runs_alone() {
        let experiment = experiment("bulldozer-6282se", 1.0);
        let mut work = experiment.measure_work(1).unwrap();
        work[0].instructions *= 3.0;
        work[0].alone_s *= 3.0;
        let linux = Contender::new("linux", "linux").unwrap();
        let once = run_once(&experiment, &work);
        let again = experiment.run(&linux, &work, 1, None).unwrap();
        let [bzip2, povray] = [0, 1].map(|i| once.programs[i].together_s);
        assert!(povray < 0.5 * bzip2 && once.makespan_s == bzip2);
        assert!(once.programs[1].counters.instructions < 1.01 * work[1].instructions);
        assert!(again.programs[1].counters.instructions > 2.0 * work[1].instructions);
        assert!(once.makespan_s <= again.makespan_s);
    }

    /// A helper is there for as long as the others run, and has no row of its own.
    #[test]
    fn run_ends_without_endless_programs() {
        let experiment = experiment("bulldozer-6282se", 1.0);
        let mut work = experiment.measure_work(1).unwrap();
        work[1].instructions = SimulatedProgram::ENDLESS;
        let once = run_once(&experiment, &work);
        let names: Vec<&str> = once.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["bzip2"]);
        assert_eq!(once.makespan_s, once.programs[0].together_s);
    }

    #[test]
    fn same_seed_gives_same_result() {
        let experiment = experiment("power7:smt=2", 1.0);
        let timeless = |mut result: RunResult| {
            (result.host_s, result.simulated_minstr_per_host_s) = (0.0, 0.0);
            result.decision_us = DecisionTime::default();
            result
        };
        let [one, two] = [(); 2].map(|()| timeless(run(&experiment, "workover")));
        assert_eq!(one, two);
    }

    #[test]
    fn copies_have_the_same_work() {
        let mut experiment = experiment("power7", 1.0);
        experiment.workload.entries[1] = experiment.workload.entries[0].clone();
        let work = experiment.measure_work(1).unwrap();
        assert_eq!(work[0], work[1]);
    }

    #[test]
    fn endless_run_is_given_up() {
        let experiment = experiment("power7", 0.1);
        let mut work = experiment.measure_work(1).unwrap();
        work[1].instructions *= 1000.0;
        let contender = Contender::new("linux", "linux").unwrap();
        let error = experiment.run(&contender, &work, 1, None).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("povray had not done its work after 4 s"),
            "{text}"
        );
    }

    /// Instructions of all programs within so many simulated seconds, and the loop that they ran in.
    fn work_within(
        experiment: &Experiment,
        (policy, trial, seed): (&str, Option<Trial>, u64),
        seconds: f64,
    ) -> (f64, SimulatedLoop) {
        let work = experiment.measure_work(1).unwrap();
        let contender = Contender::new(policy, "linux").unwrap();
        let options = RunOptions::default();
        let built = experiment.build_loop(&contender, &work, seed, options);
        let (mut control, _) = built.unwrap();
        control.set_trial(trial);
        let mut instructions = 0.0;
        while (control.machine().inner().time_ns() as f64) < seconds * 1e9 {
            let turn = control.run_turn().unwrap().unwrap();
            let seen = turn.observation.threads.iter();
            let counted = seen.filter_map(|thread| thread.sample.get(Signal::Instructions));
            instructions += counted.sum::<f64>();
        }
        (instructions, control)
    }

    /// A trial finds the effect that two whole runs show: two programs on one module are slower than
    /// where the operating system puts them.
    #[test]
    fn trial_of_stretches_finds_the_effect_of_whole_runs() {
        let mut experiment = experiment("bulldozer-6282se", 1_000.0);
        experiment.quantum = Some(Duration::from_millis(100));
        let policy = "mapping:map=0/1";
        let seconds = 60.0;
        let managed = work_within(&experiment, (policy, None, 1), seconds).0;
        let unmanaged = work_within(&experiment, ("linux", None, 1), seconds).0;
        let truth = managed / unmanaged;
        assert!(truth < 0.99, "{truth}");
        let timing = TrialTiming {
            settle_ns: 200_000_000,
            measure_ns: 800_000_000,
            unmanaged_share: 0.5,
        };
        let mut covered = 0;
        let trials = 12;
        for seed in 0..trials {
            let trial = Trial::new(timing, ProgressMeasure::Instructions, true, seed);
            let (_, control) = work_within(&experiment, (policy, Some(trial), seed), 24.0);
            let effect = control.trial().unwrap().effect().unwrap();
            covered += u64::from((effect.low..=effect.high).contains(&truth));
            assert!(
                (effect.ratio / truth - 1.0).abs() < 0.15,
                "{effect:?}, truth {truth}"
            );
        }
        assert!(covered + 2 >= trials, "{covered} of {trials}");
    }
}
