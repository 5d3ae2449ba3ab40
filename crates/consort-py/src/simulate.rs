//! Single runs.

use crate::compare::experiment;
use crate::failure::Failure;
use crate::machine::MachineArgument;
use crate::policy::{FirstException, PolicyArgument};
use crate::run::interruptible;
use crate::table::{Table, pick};
use crate::view::numbers;
use crate::workload::WorkloadArgument;
use consort_core::plan::{Decision, Placement};
use consort_experiment::{Experiment, RunOptions, RunResult, long};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::slice;

/// CPUs of each thread that a decision names; `None` for unrestricted.
type Places = BTreeMap<u32, Option<Vec<u32>>>;

/// One run of a workload under a policy.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Run {
    result: RunResult,
    case: String,
    decisions: Vec<Places>,
}

#[pymethods]
impl Run {
    /// A table: "programs", a row for each: times in s, slowdown, instructions, IPC, energy in J;
    /// "runs", one row about the whole; "long", a row for each number: case, policy, seed, program,
    /// measure, value, unit.
    #[pyo3(signature = (name = "programs"))]
    fn table(&self, name: &str) -> PyResult<Table> {
        let run = slice::from_ref(&self.result);
        pick(
            name,
            &[
                ("programs", &|| long::programs_table(run)),
                ("runs", &|| long::runs_table(run)),
                ("long", &|| long::long_table(&self.case, run)),
            ],
        )
    }

    /// The policy.
    #[getter]
    fn policy(&self) -> &str {
        &self.result.policy
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.result.seed
    }

    /// System throughput: the sum of the inverse slowdowns.
    #[getter]
    fn stp(&self) -> f64 {
        self.result.stp
    }

    /// Average normalised turnaround time: the mean slowdown.
    #[getter]
    fn antt(&self) -> f64 {
        self.result.antt
    }

    /// Largest over smallest slowdown.
    #[getter]
    fn unfairness(&self) -> f64 {
        self.result.unfairness
    }

    /// Time until the last program had done its work once, s.
    #[getter]
    fn makespan_s(&self) -> f64 {
        self.result.makespan_s
    }

    /// Energy of the whole machine over the run, J.
    #[getter]
    fn energy_j(&self) -> f64 {
        self.result.energy_j
    }

    /// Masks that the policy changed.
    #[getter]
    fn moves(&self) -> u64 {
        self.result.moves
    }

    /// Host time of a decision, mean, µs. Not the same from call to call.
    #[getter]
    fn decision_us(&self) -> f64 {
        self.result.decision_us.mean
    }

    /// Decisions in their order, each with the CPUs of every thread that it names, None for
    /// unrestricted. Empty unless they were asked for.
    #[getter]
    fn decisions(&self) -> Vec<Places> {
        self.decisions.clone()
    }

    /// The document that ``consort simulate --format json`` prints.
    fn to_json(&self) -> PyResult<String> {
        Ok(serde_json::to_string_pretty(&self.result).map_err(Failure::run)?)
    }

    fn __repr__(&self) -> String {
        let (policy, stp) = (&self.result.policy, self.result.stp);
        format!(
            "<consort.Run of {} under {policy}: STP {stp:.3}>",
            self.case
        )
    }
}

/// Runs a workload on a simulated machine under a policy, once.
///
/// :param machine: a Machine, or its name: "power8:smt=2"
/// :param workload: a Workload, an expression such as "4*hmmer+4*povray", or a list of programs
/// :param policy: a name with options, or a policy written in Python
/// :param seed: seed of all randomness
/// :param alone_s: time that each program's work takes alone, s
/// :param quantum_ms: quantum between decisions, ms; the policy's own if None
/// :param os: model of the operating system beneath the policy
/// :param decisions: whether every decision is kept
/// :raises InputError: what was wrong, with file, line and key where it is in a file
/// :raises RunError: a run that failed
#[pyfunction]
#[pyo3(signature = (machine, workload, policy = None, *, seed = 1, alone_s = 30.0,
    quantum_ms = None, os = "linux", decisions = false))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn simulate(
    py: Python<'_>,
    machine: MachineArgument<'_>,
    workload: WorkloadArgument<'_>,
    policy: Option<PolicyArgument>,
    seed: u64,
    alone_s: f64,
    quantum_ms: Option<f64>,
    os: &str,
    decisions: bool,
) -> PyResult<Run> {
    let (experiment, case) = experiment(machine, workload, alone_s, quantum_ms)?;
    let policy = policy.unwrap_or_else(|| PolicyArgument::Named("linux".to_owned()));
    let os = os.to_owned();
    let (result, decisions) = interruptible(py, move |stop| {
        let first = FirstException::new(stop);
        first.or(run(&experiment, policy, seed, &os, decisions, &first))
    })?;
    Ok(Run {
        result,
        case,
        decisions,
    })
}

fn run(
    experiment: &Experiment,
    policy: PolicyArgument,
    seed: u64,
    os: &str,
    keep: bool,
    first: &FirstException,
) -> Result<(RunResult, Vec<Places>), Failure> {
    let contender = policy.contender(os, first)?;
    let work = experiment.measure_work(seed)?;
    let kept: Rc<RefCell<Vec<Places>>> = Rc::default();
    let listener = keep.then(|| {
        let kept = Rc::clone(&kept);
        Box::new(move |decision: &Decision| kept.borrow_mut().push(places(decision))) as _
    });
    let options = RunOptions {
        listener,
        ..RunOptions::default()
    };
    let result = experiment.run_with(&contender, &work, seed, options)?;
    Ok((result, kept.take()))
}

fn places(decision: &Decision) -> Places {
    let pairs = decision.placements.iter();
    let pus = |placement: &Placement| match placement {
        Placement::Unrestricted => None,
        Placement::Restricted(pus) => Some(numbers(pus)),
    };
    pairs
        .map(|(thread, placement)| (thread.tid, pus(placement)))
        .collect()
}
