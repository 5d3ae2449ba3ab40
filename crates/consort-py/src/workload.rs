//! Workloads.

use crate::failure::Failure;
use crate::program::Program;
use consort_lab::Descriptions;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::{
    self, DescriptionFile, LoadError, ProgramSource, WorkloadExpr, WorkloadItem, WorkloadTerm,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// Programs that run together.
#[pyclass(frozen, module = "consort")]
#[derive(Clone)]
pub(crate) struct Workload(workload::Workload);

#[pymethods]
impl Workload {
    /// Reads a workload: ``4*hmmer+4*povray``, ``streamcluster@4`` (threads),
    /// ``mix:spec2006/10?seed=7`` (a seeded draw), or a file. Quotes let a path contain ``+``, ``*``
    /// and ``@``: ``"./c++.toml"+hmmer``.
    ///
    /// Raises InputError that says what is wrong where.
    #[staticmethod]
    fn load(text: &str) -> PyResult<Self> {
        Ok(Self::read(text)?)
    }

    /// A workload of programs: each alone, or as (program, threads), or (program, threads, copies).
    #[staticmethod]
    fn of(members: Vec<Member>) -> PyResult<Self> {
        Ok(Self::made(members)?)
    }

    /// The workload as it was asked for.
    #[getter]
    fn text(&self) -> String {
        self.0.text.clone()
    }

    /// Names of its programs, numbered where there are several of a name.
    #[getter]
    fn programs(&self) -> Vec<String> {
        self.0
            .entries
            .iter()
            .map(|entry| entry.name.clone())
            .collect()
    }

    /// Threads of each program.
    #[getter]
    fn threads(&self) -> Vec<u32> {
        self.0.entries.iter().map(|entry| entry.threads).collect()
    }

    fn __repr__(&self) -> String {
        format!("<consort.Workload {}>", self.0.text)
    }
}

impl Workload {
    fn read(text: &str) -> Result<Self, Failure> {
        Descriptions::resolve_workload(text)
            .map(Self)
            .map_err(Failure::input)
    }

    fn made(members: Vec<Member>) -> Result<Self, Failure> {
        let mut given = GivenPrograms::default();
        let terms = members.into_iter().map(|member| given.term(member));
        let terms: Vec<WorkloadTerm> = terms.collect::<Result<_, _>>()?;
        if terms.is_empty() {
            let message = "the workload is empty; expected at least one program";
            return Err(Failure::Input(message.to_owned()));
        }
        let workload = WorkloadExpr { terms }.resolve(&given);
        workload.map(Self).map_err(Failure::input)
    }
}

/// A member of a workload.
#[derive(FromPyObject)]
pub(crate) enum Member {
    /// A program with its usual threads.
    Program(Py<Program>),
    /// Program with so many threads.
    Threads(Py<Program>, u32),
    /// Program with so many threads, in so many copies.
    Copies(Py<Program>, u32, u32),
}

/// A workload as arguments name it.
#[derive(FromPyObject)]
pub(crate) enum WorkloadArgument<'py> {
    /// One that is there.
    Workload(PyRef<'py, Workload>),
    /// Workload as an expression or a file.
    Text(String),
    /// Workload as a list of programs.
    Members(Vec<Member>),
}

impl WorkloadArgument<'_> {
    /// The workload.
    pub(crate) fn get(self) -> Result<workload::Workload, Failure> {
        let workload = match self {
            Self::Workload(workload) => workload.clone(),
            Self::Text(text) => Workload::read(&text)?,
            Self::Members(members) => Workload::made(members)?,
        };
        Ok(workload.0)
    }
}

/// Programs that are there, by name.
#[derive(Default)]
struct GivenPrograms(Vec<Arc<ProgramSpec>>);

impl GivenPrograms {
    /// The member as part of an expression.
    fn term(&mut self, member: Member) -> Result<WorkloadTerm, Failure> {
        let (program, threads, copies) = match member {
            Member::Program(program) => (program, None, 1),
            Member::Threads(program, threads) => (program, Some(threads), 1),
            Member::Copies(program, threads, copies) => (program, Some(threads), copies),
        };
        let program = program.get();
        let name = &program.spec().name;
        match self.0.iter().find(|known| known.name == *name) {
            Some(known) if **known != **program.spec() => {
                let message = format!("two unlike programs have the name '{name}'; rename one");
                return Err(Failure::Input(message));
            }
            Some(_) => {}
            None => self.0.push(Arc::clone(program.spec())),
        }
        if copies == 0 {
            let message = format!("'{name}' has 0 copies; expected at least 1");
            return Err(Failure::Input(message));
        }
        let item = WorkloadItem::Program {
            name: name.clone(),
            threads: Some(threads.unwrap_or(program.default_threads())),
        };
        Ok(WorkloadTerm {
            count: copies,
            item,
        })
    }
}

impl ProgramSource for GivenPrograms {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        Ok(self
            .0
            .iter()
            .find(|program| program.name == name)
            .map(Arc::clone))
    }

    fn suite(&self, _: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError> {
        Ok(Vec::new())
    }

    fn is_file(&self, path: &str) -> bool {
        Descriptions.is_file(path)
    }

    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError> {
        Descriptions.load(path)
    }

    fn programs(&self) -> Vec<String> {
        self.0.iter().map(|program| program.name.clone()).collect()
    }

    fn suites(&self) -> Vec<String> {
        Vec::new()
    }
}
