//! Observations and machines as policies that are written in Python see them.

use crate::failure::Failure;
use crate::topology::{Topology, numbers};
use consort_core::{Mix, Signal};
use consort_core::{Observation, ThreadObservation};
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
    /// PUs, cores and domains of the machine.
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
    /// ``random.RandomModel(view.seed)``. The run's seed decides them.
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

    /// PUs that it may use by its own affinity, ascending; plans stay inside.
    #[getter]
    fn original(&self) -> Vec<u32> {
        numbers(&self.seen().original)
    }

    /// The PU that it was last seen on.
    #[getter]
    fn last_pu(&self) -> Option<u32> {
        self.seen().last_pu.map(|pu| pu.0)
    }

    /// CPU time in the quantum, ns.
    #[getter]
    fn cpu_time_ns(&self) -> f64 {
        self.seen().sample.cpu_time_ns()
    }

    /// Share of one PU that it had over the quantum, 0 to 1.
    #[getter]
    fn cpu_share(&self) -> f64 {
        self.observation.cpu_share(self.seen())
    }

    /// Share of the quantum in which it ran or waited for a PU, 0 to 1.
    #[getter]
    fn wanted_share(&self) -> f64 {
        self.observation.wanted_share(self.seen())
    }

    /// Value of a signal over the quantum, scaled where counters took turns; None where the machine
    /// does not tell it. Names and units are those of ``consort policies``: "cycles",
    /// "instructions", "fp-usage" (0 to 1), "llc-misses", "energy" (J), times in ns.
    fn get(&self, signal: &str) -> PyResult<Option<f64>> {
        Ok(self.seen().sample.get(named(signal)?))
    }

    /// Shares of instruction classes by time, 0 to 1, by class; None where nothing tells.
    #[getter]
    fn mix<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let shares = self.seen().sample.mix.map(Mix::to_array);
        let pairs = shares.map(|shares| Mix::NAMES.into_iter().zip(shares));
        pairs.map(|pairs| dict(py, pairs)).transpose()
    }

    /// Shares of its cycles by cause, 0 to 1; None where nothing tells.
    #[getter]
    fn stack<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let stack = self.seen().sample.stack.as_ref();
        let pairs = stack.map(|(stack, _)| {
            let components = stack.components().iter();
            components.map(|component| (component.name.as_ref(), component.share))
        });
        pairs.map(|pairs| dict(py, pairs)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<consort.Thread {} {}>", self.id(), self.name())
    }
}

fn dict<'py, 'a>(
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
pub(crate) fn named(name: &str) -> Result<Signal, Failure> {
    serde_json::from_value(name.into()).map_err(|error: serde_json::Error| {
        // Serde names the known ones in backticks, after the unknown one.
        let error = error.to_string();
        let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        let hint = consort_core::hint(name, known.into_iter());
        Failure::Input(format!("unknown signal '{name}'; {hint}"))
    })
}
