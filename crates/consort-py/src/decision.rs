//! Decisions of policies that are written in Python.

use crate::failure::Failure;
use consort_core::Observation;
use consort_core::plan::{self, Placement, Reason};
use consort_core::{ProgramId, PuId, PuSet, ThreadId};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Places of threads in the next quantum, paused programs, numbers of threads of programs.
///
/// Threads that are not named are unrestricted. A policy may as well return a dict of thread ids
/// with a PU, a list of PUs, or None for unrestricted, or None for no restrictions at all.
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

    /// Restricts a thread to PUs, or leaves it unrestricted with None; the reason is for reports.
    #[pyo3(signature = (thread, pus, reason = String::new()))]
    fn place(&mut self, thread: u32, pus: Option<Pus>, reason: String) {
        self.places.insert(thread, (pus.map(Pus::list), reason));
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

    /// PUs of each placed thread, None for unrestricted.
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

/// One PU, or several.
#[derive(FromPyObject)]
enum Pus {
    /// One.
    One(u32),
    /// Several.
    Several(Vec<u32>),
}

impl Pus {
    fn list(self) -> Vec<u32> {
        match self {
            Self::One(pu) => vec![pu],
            Self::Several(pus) => pus,
        }
    }
}

/// Reads the value that `decide` returned.
///
/// # Errors
/// Another type than expected; threads that are not observed, PUs that a thread may not use.
pub(crate) fn read(
    returned: &Bound<'_, PyAny>,
    policy: &dyn Display,
    seen: &Observation,
) -> PyResult<plan::Decision> {
    if returned.is_none() {
        return Ok(plan::Decision::default());
    }
    if let Ok(decision) = returned.cast::<Decision>() {
        return Ok(whole(&decision.borrow(), policy, seen)?);
    }
    let places = returned.cast::<PyDict>().ok().and_then(|dict| {
        let pairs = dict.iter();
        let place = |(thread, pus): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let pus = pus.extract::<Option<Pus>>().ok()?;
            Some((thread.extract().ok()?, (pus.map(Pus::list), String::new())))
        };
        pairs.map(place).collect::<Option<_>>()
    });
    let Some(places) = places else {
        let kind = returned.get_type().name()?;
        let message = format!(
            "policy {policy}: decide returned a {kind}; expected a Decision, None, or a dict of \
             thread ids with a PU, a list of PUs, or None"
        );
        return Err(Failure::Input(message).into());
    };
    let decision = Decision {
        places,
        ..Decision::default()
    };
    Ok(whole(&decision, policy, seen)?)
}

fn whole(
    decision: &Decision,
    policy: &dyn Display,
    seen: &Observation,
) -> Result<plan::Decision, Failure> {
    let quantum_ns = decision.quantum_ms.map(|ms| (ms * 1e6) as u64);
    let programs = decision.paused.iter().copied().map(ProgramId);
    let teams = decision.teams.iter();
    let mut whole = plan::Decision {
        quantum_ns,
        paused: programs.collect(),
        teams: teams
            .map(|(program, threads)| (ProgramId(*program), *threads))
            .collect(),
        ..plan::Decision::default()
    };
    whole.report.notes.clone_from(&decision.notes);
    let refused = |message: String| Failure::Input(format!("policy {policy}: {message}"));
    for (thread, (pus, reason)) in &decision.places {
        let (id, placement) = place(*thread, pus.as_deref(), seen).map_err(refused)?;
        let reason = Reason {
            chosen: reason.clone(),
            ..Reason::default()
        };
        whole.place(id, placement, reason);
    }
    Ok(whole)
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
            "thread {thread} cannot be on PU {pus}; expected some of PU {original}"
        ));
    }
    Ok((found.id, Placement::Restricted(pus)))
}
