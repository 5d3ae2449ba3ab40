//! Parts that live and described machines have in common.

use crate::output::{OutputColumn, number, text};
use consort_core::topology::{Domain, PuFacts};
use consort_core::{PuSet, Topology};
use consort_linux::cgroup::CpuLimit;
use consort_linux::cookies::CookieStatus;
use consort_linux::energy::EnergyStatus;
use consort_linux::enforce::EnactorStatus;
use consort_linux::owners::PlacementOwner;
use consort_linux::pause::PauseSupport;
use consort_linux::topology::core_type_members;
use serde::Serialize;

/// The JSON document of `consort machine`. Keys are a contract: add, never rename.
#[derive(Serialize)]
pub(super) struct MachineReport {
    pub(super) tier: String,
    pub(super) tiers: Vec<TierRow>,
    pub(super) packages: usize,
    pub(super) nodes: usize,
    pub(super) cores: usize,
    pub(super) pus: usize,
    pub(super) smt: usize,
    pub(super) llc_domains: Vec<DomainRow>,
    /// Level 2 caches; empty if the kernel shows none.
    pub(super) l2_domains: Vec<DomainRow>,
    pub(super) core_types: Vec<CoreTypeRow>,
    pub(super) counters: Vec<String>,
    pub(super) hypervisor: Option<String>,
    pub(super) hidden_topology: bool,
    pub(super) allowed_pus: PuSet,
    /// Online PUs that the kernel does not balance.
    pub(super) isolated: PuSet,
    /// Online PUs that the kernel interrupts by no tick while one thread runs there.
    pub(super) nohz_full: PuSet,
    /// Limit of CPU time that holds Consort's own control group most often; `None` if none is set.
    pub(super) cpu_limit: Option<CpuLimit>,
    pub(super) notes: Vec<String>,
    /// State of the energy counters.
    pub(super) energy: EnergyStatus,
    /// Enactors, which keep threads in their places, each with its state.
    pub(super) enactors: Vec<EnactorStatus>,
    /// State of core scheduling, which keeps cores to the threads that plans seat on them.
    pub(super) cookies: CookieStatus,
    /// Mechanisms that pause programs, best first, each with its state.
    pub(super) pausing: Vec<PauseSupport>,
    /// Others that place threads, and what Consort does about each.
    pub(super) owners: Vec<PlacementOwner>,
}

/// A facility, or why it is missing.
pub(super) struct FacilityRow {
    pub(super) name: String,
    pub(super) available: bool,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct TierRow {
    pub(super) name: &'static str,
    pub(super) available: bool,
    pub(super) reason: String,
    pub(super) signals: Vec<&'static str>,
}

#[derive(Serialize)]
pub(super) struct DomainRow {
    pub(super) id: u32,
    pub(super) pus: PuSet,
    pub(super) size_bytes: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct CoreTypeRow {
    pub(super) name: String,
    pub(super) capacity: u32,
    pub(super) cores: usize,
    pub(super) pus: PuSet,
}

pub(super) const PU_COLUMNS: &[OutputColumn<PuFacts>] = &[
    number("pu", |f| f.pu.to_string()),
    number("core", |f| f.core.to_string()),
    number("llc", |f| f.llc.to_string()),
    number("node", |f| f.node.to_string()),
    number("package", |f| f.package.to_string()),
    number("core type", |f| f.core_type.to_string()),
];

pub(super) const TIER_COLUMNS: &[OutputColumn<TierRow>] = &[
    text("tier", |t| t.name.to_owned()),
    text("available", |t| {
        if t.available { "yes" } else { "no" }.to_owned()
    }),
    text("why", |t| t.reason.clone()),
];

pub(super) const FACILITY_COLUMNS: &[OutputColumn<FacilityRow>] = &[
    text("facility", |f| f.name.clone()),
    text("available", |f| {
        if f.available { "yes" } else { "no" }.to_owned()
    }),
    text("why", |f| f.reason.clone()),
];

pub(super) const OWNER_COLUMNS: &[OutputColumn<PlacementOwner>] = &[
    text("also places threads", |o| o.name.clone()),
    text("effect", |o| o.effect.clone()),
];

pub(super) fn core_types(topology: &Topology) -> Vec<CoreTypeRow> {
    let cores_in = |pus: &PuSet| {
        let cores = topology.cores().iter();
        cores
            .filter(|core| core.pus.iter().all(|pu| pus.contains(*pu)))
            .count()
    };
    let members = core_type_members(topology).into_iter();
    let rows = members.map(|(kind, pus)| CoreTypeRow {
        name: kind.name.clone(),
        capacity: kind.capacity,
        cores: cores_in(&pus),
        pus,
    });
    rows.collect()
}

pub(super) fn domain_rows(domains: &[Domain]) -> Vec<DomainRow> {
    let row = |domain: &Domain| DomainRow {
        id: domain.key,
        pus: domain.pus.clone(),
        size_bytes: domain.size_bytes,
    };
    domains.iter().map(row).collect()
}
