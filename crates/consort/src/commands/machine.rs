//! `consort machine`: the processor, and what can be seen of threads on it.

use crate::cli::{Format, MachineArgs};
use crate::output::{self, Column, number, text};
use anyhow::{Context, Result};
use consort_core::topology::{Domain, PuFacts};
use consort_core::{PuSet, Topology};
use consort_linux::counters::TierStatus;
use consort_linux::live::Host;
use consort_linux::topology::{core_type_members, draw};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The JSON document of `consort machine`. Keys are a contract: add, never rename.
#[derive(Serialize)]
struct MachineReport {
    tier: String,
    tiers: Vec<TierRow>,
    packages: usize,
    nodes: usize,
    cores: usize,
    pus: usize,
    smt: usize,
    llc_domains: Vec<DomainRow>,
    core_types: Vec<CoreTypeRow>,
    counters: Vec<String>,
    hypervisor: Option<String>,
    hidden_topology: bool,
    allowed_pus: PuSet,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct TierRow {
    name: &'static str,
    available: bool,
    reason: String,
    signals: Vec<&'static str>,
}

#[derive(Serialize)]
struct DomainRow {
    id: u32,
    pus: PuSet,
    size_bytes: Option<u64>,
}

#[derive(Serialize)]
struct CoreTypeRow {
    name: String,
    capacity: u32,
    cores: usize,
    pus: PuSet,
}

pub(crate) fn execute(args: &MachineArgs) -> Result<ExitCode> {
    let host = Host::look(Path::new("/")).context("cannot see the processor")?;
    if args.check {
        return super::check::execute(args, &host);
    }
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Json => output::json(&mut out, &report(&host))?,
        Format::Csv => output::csv(&mut out, PU_COLUMNS, &host.discovery.topology.facts())?,
        Format::Table => out.write_all(describe(&host).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

const PU_COLUMNS: &[Column<PuFacts>] = &[
    number("pu", |f| f.pu.to_string()),
    number("core", |f| f.core.to_string()),
    number("llc", |f| f.llc.to_string()),
    number("node", |f| f.node.to_string()),
    number("package", |f| f.package.to_string()),
    number("core type", |f| f.core_type.to_string()),
];

const TIER_COLUMNS: &[Column<TierStatus>] = &[
    text("tier", |t| t.tier.to_string()),
    text("available", |t| {
        if t.available { "yes" } else { "no" }.to_owned()
    }),
    text("why", |t| t.reason.clone()),
];

fn describe(host: &Host) -> String {
    let mut lines = draw(&host.discovery.topology);
    lines.extend(
        host.discovery
            .notes
            .iter()
            .map(|note| format!("note: {note}")),
    );
    if let Some(hypervisor) = &host.discovery.hypervisor {
        lines.push(format!("hypervisor: {}", hypervisor.name));
    }
    let drawn: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut tiers = host.tiers.clone();
    tiers.sort_by_key(|tier| std::cmp::Reverse(tier.tier));
    format!("{drawn}\n{}", output::table(TIER_COLUMNS, &tiers))
}

fn report(host: &Host) -> MachineReport {
    let topology = &host.discovery.topology;
    MachineReport {
        tier: host.best_tier().to_string(),
        tiers: host.tiers.iter().map(tier_row).collect(),
        packages: topology.packages().len(),
        nodes: topology.nodes().len(),
        cores: topology.cores().len(),
        pus: topology.pus().len(),
        smt: topology.smt(),
        llc_domains: topology
            .llcs()
            .iter()
            .map(|d| domain_row(host, d))
            .collect(),
        core_types: core_types(topology),
        counters: host.counter_events(),
        hypervisor: host.discovery.hypervisor.as_ref().map(|h| h.name.clone()),
        hidden_topology: host.discovery.hidden_topology,
        allowed_pus: topology.pus().clone(),
        notes: host.discovery.notes.clone(),
    }
}

fn tier_row(status: &TierStatus) -> TierRow {
    TierRow {
        name: status.tier.name(),
        available: status.available,
        reason: status.reason.clone(),
        signals: status.signals.iter().map(|signal| signal.name()).collect(),
    }
}

fn domain_row(host: &Host, domain: &Domain) -> DomainRow {
    let caches = host.discovery.caches.iter();
    let shared = caches.filter(|cache| domain.pus.is_subset(&cache.pus));
    let largest = shared.max_by_key(|cache| cache.level);
    DomainRow {
        id: domain.key,
        pus: domain.pus.clone(),
        size_bytes: largest.and_then(|cache| cache.size_bytes),
    }
}

fn core_types(topology: &Topology) -> Vec<CoreTypeRow> {
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
