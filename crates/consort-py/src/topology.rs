//! Topologies as policies see them: PUs and the parts that they share.

use consort_core::PuSet;
use consort_core::topology::{self, Domain};
use pyo3::prelude::*;
use std::sync::Arc;

/// A core: the PUs that share execution units.
#[pyclass(frozen, get_all, module = "consort")]
#[derive(Clone)]
pub(crate) struct Core {
    /// Its PUs, ascending; the position is the SMT way.
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
        format!("<consort.Core of PUs {:?}>", self.pus)
    }
}

/// A machine's PUs and how they share hardware.
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

/// The numbers of PUs, ascending.
pub(crate) fn numbers(pus: &PuSet) -> Vec<u32> {
    pus.iter().map(|pu| pu.0).collect()
}

fn members(domains: &[Domain]) -> Vec<Vec<u32>> {
    domains.iter().map(|domain| numbers(&domain.pus)).collect()
}

#[pymethods]
impl Topology {
    /// All PUs, ascending.
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

    /// PUs of each package.
    #[getter]
    fn packages(&self) -> Vec<Vec<u32>> {
        members(self.0.packages())
    }

    /// PUs of each NUMA node.
    #[getter]
    fn nodes(&self) -> Vec<Vec<u32>> {
        members(self.0.nodes())
    }

    /// PUs of each LLC domain.
    #[getter]
    fn llcs(&self) -> Vec<Vec<u32>> {
        members(self.0.llcs())
    }

    /// Most PUs of a core.
    #[getter]
    fn smt(&self) -> usize {
        self.0.smt()
    }

    fn __repr__(&self) -> String {
        let (pus, cores) = (self.0.pus().len(), self.0.cores().len());
        format!("<consort.Topology of {pus} PUs on {cores} cores>")
    }
}
