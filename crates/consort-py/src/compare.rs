//! Comparisons of policies.

use crate::failure::Failure;
use crate::machine::MachineArgument;
use crate::policy::{FirstException, PolicyArgument};
use crate::run::{interruptible, workers};
use crate::table::{Table, pick};
use crate::workload::WorkloadArgument;
use consort_experiment::{
    ComparedRuns, Experiment, ExperimentContext, Scale, compare_runs, find_baseline, long,
};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A workload under several policies, many times.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Comparison {
    compared: ComparedRuns,
    case: String,
}

#[pymethods]
impl Comparison {
    /// A table:
    ///
    /// - "policies": a row for each policy, means over the runs with half widths of 95 percent
    ///   intervals (``_ci95``), and the speedup over the baseline, run by run;
    /// - "runs": a row for each policy and seed;
    /// - "programs": a row for each policy, seed and program: times in s, slowdown, instructions,
    ///   IPC, energy in J;
    /// - "long": a row for each number: case, policy, seed, program, measure, value, unit, as
    ///   ``consort compare --out`` writes it.
    #[pyo3(signature = (name = "policies"))]
    fn table(&self, name: &str) -> PyResult<Table> {
        let (comparison, runs) = (&self.compared.comparison, &self.compared.runs);
        pick(
            name,
            &[
                ("policies", &|| long::comparison_table(comparison)),
                ("runs", &|| long::runs_table(runs)),
                ("programs", &|| long::programs_table(runs)),
                ("long", &|| long::long_table(&self.case, runs)),
            ],
        )
    }

    /// Name of the machine.
    #[getter]
    fn machine(&self) -> &str {
        &self.compared.comparison.machine
    }

    /// The workload.
    #[getter]
    fn workload(&self) -> &str {
        &self.compared.comparison.workload
    }

    /// Runs of each policy.
    #[getter]
    fn runs(&self) -> usize {
        self.compared.comparison.runs
    }

    /// The policy to which speedups refer.
    #[getter]
    fn baseline(&self) -> &str {
        &self.compared.comparison.baseline
    }

    /// Seed of the first run; the others follow it.
    #[getter]
    fn seed(&self) -> u64 {
        self.compared.comparison.seed
    }

    /// The policies, in the order asked for.
    #[getter]
    fn policies(&self) -> Vec<&str> {
        let rows = self.compared.comparison.results.iter();
        rows.map(|row| row.policy.as_str()).collect()
    }

    /// Host time of a decision by policy, µs: mean over the runs. Not the same from call to call.
    #[getter]
    fn decision_us(&self) -> Vec<(String, f64)> {
        let runs = self
            .compared
            .runs
            .chunks(self.compared.comparison.runs.max(1));
        let mean = |runs: &[consort_experiment::RunResult]| {
            let (sum, n) = runs.iter().fold((0.0, 0), |(sum, n), run| {
                let time = run.decision_us;
                (sum + time.mean * time.n as f64, n + time.n)
            });
            (runs[0].policy.clone(), sum / n.max(1) as f64)
        };
        runs.map(mean).collect()
    }

    /// The document that ``consort compare --format json`` prints.
    fn to_json(&self) -> PyResult<String> {
        let text = serde_json::to_string_pretty(&self.compared.comparison);
        Ok(text.map_err(Failure::run)?)
    }

    fn __repr__(&self) -> String {
        let policies = self.policies().join(", ");
        format!(
            "<consort.Comparison of {policies}: {}, {} runs>",
            self.case,
            self.runs()
        )
    }
}

/// Runs a workload under several policies, many times, with successive seeds.
///
/// The same seed gives the same numbers as ``consort compare``, on every host, whatever ``jobs`` is.
///
/// :param machine: a Machine, or its name: "power8:smt=2" :param workload: a Workload, an
/// expression such as "4*hmmer+4*povray", or a list of programs :param policies: names with options
/// ("workover:margin=0.1"), or policies written in Python :param runs: runs of each policy :param
/// seed: seed of all randomness :param baseline: policy to which speedups refer; "linux" if it
/// takes part, else the first :param alone_s: time that each program's work takes alone, s :param
/// quantum_ms: quantum between decisions, ms; each policy's own if None :param os: model of the
/// operating system beneath the policies :param jobs: worker threads; all CPUs if None :raises
/// InputError: what was wrong, with file, line and key where it is in a file :raises RunError: a
/// run that failed
#[pyfunction]
#[pyo3(signature = (machine, workload, policies, *, runs = 10, seed = 1, baseline = None,
    alone_s = 30.0, quantum_ms = None, os = "linux", jobs = None))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn compare(
    py: Python<'_>,
    machine: MachineArgument<'_>,
    workload: WorkloadArgument<'_>,
    policies: Vec<PolicyArgument>,
    runs: usize,
    seed: u64,
    baseline: Option<String>,
    alone_s: f64,
    quantum_ms: Option<f64>,
    os: &str,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Comparison> {
    let (experiment, case) = experiment(machine, workload, alone_s, quantum_ms)?;
    if !(1..=10_000).contains(&runs) {
        let message = format!("runs: is {runs}; expected 1 to 10000");
        return Err(Failure::Input(message).into());
    }
    let (os, workers) = (os.to_owned(), workers(jobs));
    let compared = interruptible(py, move |stop| {
        let first = FirstException::new(stop);
        let contenders = policies.into_iter().map(|p| p.contender(&os, &first));
        let contenders: Vec<_> = contenders.collect::<Result<_, _>>()?;
        if contenders.is_empty() {
            let message = "policies: there are none; expected at least one";
            return Err(Failure::input(message));
        }
        let base = find_baseline(&contenders, baseline.as_deref()).map_err(Failure::Input)?;
        let context = ExperimentContext::new(seed, Scale::Full, workers, &|_| ());
        let compared = compare_runs(&experiment, &contenders, base, runs, &context);
        first.or(compared.map_err(Failure::from))
    })?;
    Ok(Comparison { compared, case })
}

/// The experiment, and its name in tables.
pub(crate) fn experiment(
    machine: MachineArgument<'_>,
    workload: WorkloadArgument<'_>,
    alone_s: f64,
    quantum_ms: Option<f64>,
) -> Result<(Experiment, String), Failure> {
    let machine = machine.get()?;
    let workload = workload.get()?;
    let case = long::case_name(&workload.text, &machine.label());
    let alone = time("alone_s", alone_s, 3600.0)?;
    let experiment = Experiment {
        quantum: match quantum_ms {
            Some(ms) => Some(time("quantum_ms", ms, 3.6e6)?.div_f64(1000.0)),
            None => None,
        },
        ..Experiment::new(&machine.chip(), workload, alone.as_secs_f64())
    };
    Ok((experiment, case))
}

/// A time in its own unit, from 100 µs up to an hour.
fn time(name: &str, value: f64, most: f64) -> Result<Duration, Failure> {
    let least = most / 3.6e7;
    if (least..=most).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(Failure::Input(format!(
        "{name}: is {value}; expected {least} to {most}"
    )))
}
