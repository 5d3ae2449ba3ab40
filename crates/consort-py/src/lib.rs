//! `consort._consort`: the Rust part of the Python package `consort`.
//!
//! Purpose: machines, programs, policies and studies of Consort for Python. Nothing is computed
//! here: arguments are read, the lab runs with the interpreter lock released ([`run`]), and results
//! become tables that data frames read through the Arrow C stream interface ([`table`]). Usage:
//! docs/research/python.md. Pitfall: a policy written in Python takes the interpreter lock for each decision,
//! so runs under it do not gain from more workers.

mod compare;
mod failure;
mod machine;
mod policy;
mod program;
mod run;
mod simulate;
mod studies;
mod table;
mod train;
mod view;
mod workload;

use pyo3::prelude::*;

/// The Rust part of the package `consort`.
#[pymodule]
mod _consort {
    #[pymodule_export]
    use super::{
        compare::{Comparison, compare},
        machine::{Machine, machines},
        policy::{Decision, policies},
        program::{Program, profile, programs},
        simulate::{Run, simulate},
        studies::{Study, Validation, map, reproduce, studies, validate},
        table::Table,
        train::{Model, train},
        view::{Core, Thread, Topology, View},
        workload::Workload,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
