//! Policies that are written in Python: what arguments name, how they run, and what they decide.

use crate::failure::Failure;
use crate::view::{Topology, View, find_signal};
use consort_core::plan::{self, Placement, Reason};
use consort_core::policy::{self, PolicyRng};
use consort_core::{Observation, ProgramId, PuId, PuSet, Signal, ThreadId, policies as registry};
use consort_experiment::{Contender, CustomPolicy, StopRequest};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyType};
use rand::Rng;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of the policies that run on simulated machines.
#[pyfunction]
pub(crate) fn policies() -> Vec<&'static str> {
    let simulated = registry::REGISTRY.iter().filter(|info| info.simulated);
    simulated.map(|info| info.name).collect()
}

/// The first exception that Python code raised in any run. Raising one stops all runs.
#[derive(Clone)]
pub(crate) struct FirstException {
    error: Arc<Mutex<Option<PyErr>>>,
    stop: StopRequest,
}

impl FirstException {
    /// No exception yet, for runs that `stop` can stop.
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

    /// Returns the first exception, if there is one, in place of a result.
    pub(crate) fn or<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        match first.take() {
            Some(error) => Err(Failure::Python(error)),
            None => result,
        }
    }
}

/// A policy written in Python: each run gets an instance of a class, or a deep copy of an instance.
pub(crate) struct PythonPolicy {
    object: Py<PyAny>,
    name: String,
    needs: Vec<Signal>,
    quantum_ms: u64,
}

impl PythonPolicy {
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
        let needs = needs.iter().map(|name| find_signal(name));
        Ok(Self {
            object: object.clone().unbind(),
            name: name(object, is_class)?,
            needs: needs.collect::<Result<_, _>>()?,
            quantum_ms: object.getattr("quantum_ms")?.extract()?,
        })
    }

    /// The policy for runs that stop when it raises.
    pub(crate) fn custom(self, raised: &FirstException) -> CustomPolicy {
        let (object, raised) = (Arc::new(self.object), raised.clone());
        let name: Arc<str> = self.name.as_str().into();
        CustomPolicy {
            name: self.name,
            needs: self.needs,
            quantum_ms: self.quantum_ms,
            open: Arc::new(move |_, _| Ok(Box::new(RunningPolicy::new(&object, &name, &raised)))),
        }
    }
}

/// Name of the policy itself if it has one, else that of its class.
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

/// A policy written in Python, in one run.
struct RunningPolicy {
    /// `None` if it could not be made.
    object: Option<Py<PyAny>>,
    name: Arc<str>,
    topology: Option<Py<Topology>>,
    raised: FirstException,
}

impl RunningPolicy {
    fn new(object: &Py<PyAny>, name: &Arc<str>, raised: &FirstException) -> Self {
        let made = Python::attach(|py| {
            let object = object.bind(py);
            let made = match object.cast::<PyType>() {
                Ok(class) => class.call0(),
                Err(_) => py.import("copy")?.call_method1("deepcopy", (object,)),
            };
            made.map(Bound::unbind)
        });
        Self {
            object: made.map_err(|error| raised.raise(error)).ok(),
            name: Arc::clone(name),
            topology: None,
            raised: raised.clone(),
        }
    }

    fn call_decide(
        &mut self,
        py: Python<'_>,
        view: policy::View<'_>,
        seed: u64,
    ) -> PyResult<plan::Decision> {
        let Some(object) = &self.object else {
            return Ok(plan::Decision::default());
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
        read_decision(&returned, &self.name, &seen)
    }
}

impl policy::Policy for RunningPolicy {
    fn decide(&mut self, view: policy::View<'_>, rng: &mut PolicyRng) -> plan::Decision {
        let seed = rng.next_u64();
        let decided = Python::attach(|py| self.call_decide(py, view, seed));
        decided.unwrap_or_else(|error| {
            self.raised.raise(error);
            plan::Decision::default()
        })
    }
}

/// A policy as an argument names it.
pub(crate) enum PolicyArgument {
    /// Policy by name, with options.
    Named(String),
    /// Written in Python.
    Python(PythonPolicy),
}

impl<'py> FromPyObject<'_, 'py> for PolicyArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>() {
            Ok(name) => Ok(Self::Named(name)),
            Err(_) => PythonPolicy::read(&object).map(Self::Python),
        }
    }
}

impl PolicyArgument {
    /// The contender, on a model of an operating system.
    pub(crate) fn contender(self, os: &str, raised: &FirstException) -> Result<Contender, Failure> {
        match self {
            Self::Named(name) => Ok(Contender::new(&name, os)?),
            Self::Python(policy) => Ok(Contender::from_policy(policy.custom(raised), os)?),
        }
    }
}

/// Places of threads in the next quantum, paused programs, numbers of threads of programs.
///
/// Threads that are not named are unrestricted. A policy may as well return a dict of thread ids
/// with a CPU, a list of CPUs, or None for unrestricted, or None for no restrictions at all.
#[pyclass(module = "consort")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    places: BTreeMap<u32, (Option<Vec<u32>>, String)>,
    paused: Vec<u32>,
    teams: BTreeMap<u32, u32>,
    notes: Vec<String>,
    /// Length of the next quantum, ms, where it is to differ from the others.
    #[pyo3(get, set)]
    quantum_ms: Option<f64>,
}

#[pymethods]
impl Decision {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Restricts a thread to CPUs, or leaves it unrestricted with None; the reason is for reports.
    #[pyo3(signature = (thread, pus, reason = String::new()))]
    fn place(&mut self, thread: u32, pus: Option<PuArgument>, reason: String) {
        self.places
            .insert(thread, (pus.map(PuArgument::to_list), reason));
    }

    /// Pauses a program for the next quantum; others that were paused go on.
    fn pause(&mut self, program: u32) {
        self.paused.push(program);
    }

    /// Gives a malleable program so many threads.
    fn team(&mut self, program: u32, threads: u32) {
        self.teams.insert(program, threads);
    }

    /// Adds a sentence that holds for the plan as a whole.
    fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// CPUs of each placed thread, None for unrestricted.
    #[getter]
    fn placements(&self) -> BTreeMap<u32, Option<Vec<u32>>> {
        let pairs = self.places.iter();
        pairs
            .map(|(thread, (pus, _))| (*thread, pus.clone()))
            .collect()
    }

    fn __repr__(&self) -> String {
        format!("<consort.Decision for {} threads>", self.places.len())
    }
}

#[derive(FromPyObject)]
enum PuArgument {
    One(u32),
    Several(Vec<u32>),
}

impl PuArgument {
    fn to_list(self) -> Vec<u32> {
        match self {
            Self::One(pu) => vec![pu],
            Self::Several(pus) => pus,
        }
    }
}

/// Reads the value that `decide` returned.
///
/// # Errors
/// Another type than expected; threads that are not observed, CPUs that a thread may not use.
fn read_decision(
    returned: &Bound<'_, PyAny>,
    policy: &dyn Display,
    seen: &Observation,
) -> PyResult<plan::Decision> {
    if returned.is_none() {
        return Ok(plan::Decision::default());
    }
    if let Ok(decision) = returned.cast::<Decision>() {
        return Ok(to_plan_decision(&decision.borrow(), policy, seen)?);
    }
    let places = returned.cast::<PyDict>().ok().and_then(|dict| {
        let pairs = dict.iter();
        let place = |(thread, pus): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let pus = pus.extract::<Option<PuArgument>>().ok()?;
            Some((
                thread.extract().ok()?,
                (pus.map(PuArgument::to_list), String::new()),
            ))
        };
        pairs.map(place).collect::<Option<_>>()
    });
    let Some(places) = places else {
        let kind = returned.get_type().name()?;
        let message = format!(
            "policy {policy}: decide returned a {kind}; expected a Decision, None, or a dict of \
             thread ids with a CPU, a list of CPUs, or None"
        );
        return Err(Failure::Input(message).into());
    };
    let decision = Decision {
        places,
        ..Decision::default()
    };
    Ok(to_plan_decision(&decision, policy, seen)?)
}

fn to_plan_decision(
    decision: &Decision,
    policy: &dyn Display,
    seen: &Observation,
) -> Result<plan::Decision, Failure> {
    let quantum_ns = decision.quantum_ms.map(|ms| (ms * 1e6) as u64);
    let programs = decision.paused.iter().copied().map(ProgramId);
    let teams = decision.teams.iter();
    let mut planned = plan::Decision {
        quantum_ns,
        paused: programs.collect(),
        teams: teams
            .map(|(program, threads)| (ProgramId(*program), *threads))
            .collect(),
        ..plan::Decision::default()
    };
    planned.report.notes.clone_from(&decision.notes);
    let refused = |message: String| Failure::Input(format!("policy {policy}: {message}"));
    for (thread, (pus, reason)) in &decision.places {
        let (id, placement) = place(*thread, pus.as_deref(), seen).map_err(refused)?;
        let reason = Reason {
            chosen: reason.clone(),
            ..Reason::default()
        };
        planned.place(id, placement, reason);
    }
    Ok(planned)
}

fn place(
    thread: u32,
    pus: Option<&[u32]>,
    seen: &Observation,
) -> Result<(ThreadId, Placement), String> {
    let found = seen.threads.iter().find(|known| known.id.tid == thread);
    let found = found.ok_or_else(|| format!("there is no thread {thread}"))?;
    let Some(pus) = pus else {
        return Ok((found.id, Placement::Unrestricted));
    };
    let pus: PuSet = pus.iter().copied().map(PuId).collect();
    if pus.is_empty() || !pus.is_subset(&found.original) {
        let original = &found.original;
        return Err(format!(
            "thread {thread} cannot be on CPU {pus}; expected some of CPU {original}"
        ));
    }
    Ok((found.id, Placement::Restricted(pus)))
}
