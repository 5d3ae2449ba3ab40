//! Observations and machines as policies that are written in Python see them.

use crate::failure::Failure;
use consort_core::topology::{self, Domain};
use consort_core::{Mix, Observation, PuSet, Signal, ThreadObservation};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A machine and the activity of its threads in the last quantum.
#[pyclass(frozen, module = "consort")]
pub(crate) struct View {
    topology: Py<Topology>,
    observation: Arc<Observation>,
    seed: u64,
}

impl View {
    pub(crate) fn new(topology: Py<Topology>, observation: Arc<Observation>, seed: u64) -> Self {
        Self {
            topology,
            observation,
            seed,
        }
    }
}

#[pymethods]
impl View {
    /// CPUs, cores and domains of the machine.
    #[getter]
    fn topology(&self, py: Python<'_>) -> Py<Topology> {
        self.topology.clone_ref(py)
    }

    /// Live threads, by id; place those that are ``managed``.
    #[getter]
    fn threads(&self) -> Vec<Thread> {
        let count = self.observation.threads.len();
        let thread = |at| Thread {
            observation: Arc::clone(&self.observation),
            at,
        };
        (0..count).map(thread).collect()
    }

    /// End of the quantum, s since the start of the run.
    #[getter]
    fn time_s(&self) -> f64 {
        self.observation.time_ns as f64 / 1e9
    }

    /// Length of the quantum, s.
    #[getter]
    fn interval_s(&self) -> f64 {
        self.observation.interval_ns as f64 / 1e9
    }

    /// 64 bits drawn for this decision, the only randomness that a policy may use:
    /// ``random.Random(view.seed)``. The run's seed decides them.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    fn __repr__(&self) -> String {
        let count = self.observation.threads.len();
        format!("<consort.View of {count} threads at {} s>", self.time_s())
    }
}

/// Activity of a software thread in the last quantum.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Thread {
    observation: Arc<Observation>,
    at: usize,
}

impl Thread {
    fn seen(&self) -> &ThreadObservation {
        &self.observation.threads[self.at]
    }
}

#[pymethods]
impl Thread {
    /// Its id, by which decisions name it.
    #[getter]
    fn id(&self) -> u32 {
        self.seen().id.tid
    }

    /// Id of the program that it belongs to.
    #[getter]
    fn program(&self) -> u32 {
        self.observation.program_of(self.seen().id).0
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.seen().name
    }

    /// True for a thread that may be placed.
    #[getter]
    fn managed(&self) -> bool {
        self.seen().managed
    }

    /// CPUs that it may use by its own affinity, ascending; plans stay inside.
    #[getter]
    fn original(&self) -> Vec<u32> {
        numbers(&self.seen().original)
    }

    /// The CPU that it was last seen on.
    #[getter]
    fn last_pu(&self) -> Option<u32> {
        self.seen().last_pu.map(|pu| pu.0)
    }

    /// CPU time in the quantum, ns.
    #[getter]
    fn cpu_time_ns(&self) -> f64 {
        self.seen().sample.cpu_time_ns()
    }

    /// Share of one CPU that it had over the quantum, 0 to 1.
    #[getter]
    fn cpu_share(&self) -> f64 {
        self.observation.cpu_share(self.seen())
    }

    /// Share of the quantum in which it ran or waited for a CPU, 0 to 1.
    #[getter]
    fn wanted_share(&self) -> f64 {
        self.observation.wanted_share(self.seen())
    }

    /// Value of a signal over the quantum, scaled where counters took turns; None where the machine
    /// does not tell it. Names and units are those of ``consort policies``: "cycles",
    /// "instructions", "fp-usage" (0 to 1), "llc-misses", "energy" (J), times in ns.
    fn get(&self, signal: &str) -> PyResult<Option<f64>> {
        Ok(self.seen().sample.get(find_signal(signal)?))
    }

    /// Shares of instruction classes by time, 0 to 1, by class; None where nothing tells.
    #[getter]
    fn mix<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let shares = self.seen().sample.mix.map(Mix::to_array);
        let pairs = shares.map(|shares| Mix::NAMES.into_iter().zip(shares));
        pairs.map(|pairs| shares_dict(py, pairs)).transpose()
    }

    /// Shares of its cycles by cause, 0 to 1; None where nothing tells.
    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let stack = self.seen().sample.stack.as_ref();
        let pairs = stack.map(|(stack, _)| {
            let components = stack.components().iter();
            components.map(|component| (component.name.as_ref(), component.share))
        });
        pairs.map(|pairs| shares_dict(py, pairs)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<consort.Thread {} {}>", self.id(), self.name())
    }
}

fn shares_dict<'py, 'a>(
    py: Python<'py>,
    pairs: impl Iterator<Item = (&'a str, f64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, share) in pairs {
        dict.set_item(name, share)?;
    }
    Ok(dict)
}

/// The signal of a name.
///
/// # Errors
/// A name that no signal has.
pub(crate) fn find_signal(name: &str) -> Result<Signal, Failure> {
    serde_json::from_value(name.into()).map_err(|error: serde_json::Error| {
        // Serde names the known ones in backticks, after the unknown one.
        let error = error.to_string();
        let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        let hint = consort_core::hint(name, known.into_iter());
        Failure::Input(format!("unknown signal '{name}'; {hint}"))
    })
}

/// A core: the CPUs that share execution units.
#[pyclass(frozen, get_all, module = "consort")]
#[derive(Clone)]
pub(crate) struct Core {
    /// Its CPUs, ascending; the position is the SMT way.
    pus: Vec<u32>,
    /// Position of its package in ``Topology.packages``.
    package: usize,
    /// Position of its node in ``Topology.nodes``.
    node: usize,
    /// Position of its LLC domain in ``Topology.llcs``.
    llc: usize,
    /// Name of its type; "uniform" where all cores are alike.
    core_type: String,
    /// Capacity relative to the largest type, which has 1024.
    capacity: u32,
}

#[pymethods]
impl Core {
    fn __repr__(&self) -> String {
        format!("<consort.Core of CPUs {:?}>", self.pus)
    }
}

/// A machine's CPUs and how they share hardware.
#[pyclass(frozen, module = "consort")]
#[derive(Clone)]
pub(crate) struct Topology(Arc<topology::Topology>);

impl From<&topology::Topology> for Topology {
    fn from(topology: &topology::Topology) -> Self {
        Self(Arc::new(topology.clone()))
    }
}

impl Topology {
    /// Returns true where this is the topology of a machine.
    pub(crate) fn is(&self, topology: &topology::Topology) -> bool {
        *self.0 == *topology
    }
}

/// The numbers of CPUs, ascending.
pub(crate) fn numbers(pus: &PuSet) -> Vec<u32> {
    pus.iter().map(|pu| pu.0).collect()
}

fn members(domains: &[Domain]) -> Vec<Vec<u32>> {
    domains.iter().map(|domain| numbers(&domain.pus)).collect()
}

#[pymethods]
impl Topology {
    /// All CPUs, ascending.
    #[getter]
    fn pus(&self) -> Vec<u32> {
        numbers(self.0.pus())
    }

    /// The cores.
    #[getter]
    fn cores(&self) -> Vec<Core> {
        let types = self.0.core_types();
        let core = |core: &topology::Core| Core {
            pus: core.pus.iter().map(|pu| pu.0).collect(),
            package: core.package,
            node: core.node,
            llc: core.llc,
            core_type: types[core.core_type].name.clone(),
            capacity: types[core.core_type].capacity,
        };
        self.0.cores().iter().map(core).collect()
    }

    /// CPUs of each package.
    #[getter]
    fn packages(&self) -> Vec<Vec<u32>> {
        members(self.0.packages())
    }

    /// CPUs of each NUMA node.
    #[getter]
    fn nodes(&self) -> Vec<Vec<u32>> {
        members(self.0.nodes())
    }

    /// CPUs of each LLC domain.
    #[getter]
    fn llcs(&self) -> Vec<Vec<u32>> {
        members(self.0.llcs())
    }

    /// Most CPUs of a core.
    #[getter]
    fn smt(&self) -> usize {
        self.0.smt()
    }

    fn __repr__(&self) -> String {
        let (pus, cores) = (self.0.pus().len(), self.0.cores().len());
        format!("<consort.Topology of {pus} CPUs on {cores} cores>")
    }
}
