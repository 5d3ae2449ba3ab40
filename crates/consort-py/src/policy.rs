//! Policies that are written in Python.

use crate::decision;
use crate::failure::Failure;
use crate::topology::Topology;
use crate::view::{View, named};
use consort_core::plan::Decision;
use consort_core::policy::{self, PolicyRng};
use consort_core::{Signal, policies as registry};
use consort_experiment::CustomPolicy;
use consort_experiment::StopRequest;
use pyo3::prelude::*;
use pyo3::types::PyType;
use rand::Rng;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of the policies that run on simulated machines.
#[pyfunction]
pub(crate) fn policies() -> Vec<&'static str> {
    let simulated = registry::REGISTRY.iter().filter(|info| info.simulated);
    simulated.map(|info| info.name).collect()
}

/// The first exception that Python code raised, in any run; whichever raises asks all runs to stop.
#[derive(Clone)]
pub(crate) struct Raised {
    error: Arc<Mutex<Option<PyErr>>>,
    stop: StopRequest,
}

impl Raised {
    /// Makes one with no exception yet, for runs that can be stopped by `stop`.
    pub(crate) fn new(stop: &StopRequest) -> Self {
        Self {
            error: Arc::default(),
            stop: stop.clone(),
        }
    }

    fn raise(&self, error: PyErr) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.stop.request();
    }

    /// Returns the first exception in place of a result that has come about without it.
    pub(crate) fn or<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match first.take() {
            Some(error) => Err(Failure::Python(error)),
            None => result,
        }
    }
}

/// A policy of Python: a class, of which each run gets an instance, or an instance, of which each
/// run gets a deep copy.
pub(crate) struct Written {
    object: Py<PyAny>,
    name: String,
    needs: Vec<Signal>,
    quantum_ms: u64,
}

impl Written {
    /// Reads name, needs and quantum.
    ///
    /// # Errors
    /// What is neither a policy nor a class of policies; needs that are no signals.
    pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let base = py.import("consort._policy")?.getattr("Policy")?;
        let base = base.cast::<PyType>()?;
        let is_class = object
            .cast::<PyType>()
            .is_ok_and(|c| c.is_subclass(base).unwrap_or(false));
        if !is_class && !object.is_instance(base)? {
            let message = format!(
                "policy {}: expected a name, a class derived from consort.Policy, or an instance of one",
                object.repr()?
            );
            return Err(Failure::Input(message).into());
        }
        let needs: Vec<String> = object.getattr("needs")?.extract()?;
        let needs = needs.iter().map(|name| named(name));
        Ok(Self {
            object: object.clone().unbind(),
            name: name(object, is_class)?,
            needs: needs.collect::<Result<_, _>>()?,
            quantum_ms: object.getattr("quantum_ms")?.extract()?,
        })
    }

    /// The policy for runs that stop when it raises.
    pub(crate) fn custom(self, raised: &Raised) -> CustomPolicy {
        let (object, raised) = (Arc::new(self.object), raised.clone());
        let name: Arc<str> = self.name.as_str().into();
        CustomPolicy {
            name: self.name,
            needs: self.needs,
            quantum_ms: self.quantum_ms,
            open: Arc::new(move |_, _| Ok(Box::new(Deciding::new(&object, &name, &raised)))),
        }
    }
}

/// Name of the policy itself where it has one, else that of its class.
fn name(object: &Bound<'_, PyAny>, is_class: bool) -> PyResult<String> {
    if let Some(name) = object.getattr("name")?.extract::<Option<String>>()? {
        return Ok(name);
    }
    let class = if is_class {
        object.clone()
    } else {
        object.get_type().into_any()
    };
    class.getattr("__name__")?.extract()
}

/// A policy of Python in one run.
struct Deciding {
    /// None where it could not be made.
    object: Option<Py<PyAny>>,
    name: Arc<str>,
    topology: Option<Py<Topology>>,
    raised: Raised,
}

impl Deciding {
    fn new(object: &Py<PyAny>, name: &Arc<str>, raised: &Raised) -> Self {
        let made = Python::attach(|py| instance(object.bind(py)).map(Bound::unbind));
        Self {
            object: made.map_err(|error| raised.raise(error)).ok(),
            name: Arc::clone(name),
            topology: None,
            raised: raised.clone(),
        }
    }

    fn ask(&mut self, py: Python<'_>, view: policy::View<'_>, seed: u64) -> PyResult<Decision> {
        let Some(object) = &self.object else {
            return Ok(Decision::default());
        };
        let known = self
            .topology
            .take()
            .filter(|known| known.get().is(view.topology));
        let topology = match known {
            Some(known) => known,
            None => Py::new(py, Topology::from(view.topology))?,
        };
        let seen = Arc::new(view.observation.clone());
        let shown = View::new(topology.clone_ref(py), Arc::clone(&seen), seed);
        self.topology = Some(topology);
        let returned = object.bind(py).call_method1("decide", (shown,))?;
        decision::read(&returned, &self.name, &seen)
    }
}

fn instance<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match object.cast::<PyType>() {
        Ok(class) => class.call0(),
        Err(_) => object
            .py()
            .import("copy")?
            .call_method1("deepcopy", (object,)),
    }
}

impl policy::Policy for Deciding {
    fn decide(&mut self, view: policy::View<'_>, rng: &mut PolicyRng) -> Decision {
        let seed = rng.next_u64();
        let decided = Python::attach(|py| self.ask(py, view, seed));
        decided.unwrap_or_else(|error| {
            self.raised.raise(error);
            Decision::default()
        })
    }
}
