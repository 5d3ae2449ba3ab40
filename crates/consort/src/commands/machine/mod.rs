//! `consort machine`: this processor or a described one, and what Consort can observe on it.

mod described;
mod live;
mod probe;
mod sheet;

use crate::options::{LIVE, ListOut, NamedListArgs};
use crate::output::{self, OutputColumn, OutputFormat, number, text};
use crate::{descriptions, values};
use anyhow::Result;
use clap::{Args, Subcommand};
use consort_core::topology::{Domain, PuFacts};
use consort_core::{PuSet, Topology};
use consort_linux::cgroup::CpuLimit;
use consort_linux::cookies::CookieStatus;
use consort_linux::energy::EnergyStatus;
use consort_linux::enforce::EnactorStatus;
use consort_linux::owners::PlacementOwner;
use consort_linux::pause::PauseSupport;
use consort_linux::topology::core_type_members;
use probe::ProbeArgs;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MachineArgs {
    #[command(subcommand)]
    pub(crate) task: Option<MachineTask>,
    #[command(flatten)]
    pub(crate) list_out: ListOut,
    /// Output format; csv lists the CPUs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// Machine to show: NAME or FILE.toml of a described one, with `:smt=N,memory=NODE+NODE,prefetch=off` if wanted; or `live`, this one
    #[arg(value_name = "MACHINE", conflicts_with_all = ["named", "check"], add = values::machines_and_live())]
    pub(crate) machine: Option<String>,
    /// The same, as other verbs name a machine
    #[arg(short, long = "machine", value_name = "MACHINE", hide = true, conflicts_with = "check", add = values::machines_and_live())]
    pub(crate) named: Option<String>,
    /// List the described machines, as `consort list machines` does
    #[arg(long, hide = true, conflicts_with_all = ["machine", "named", "check"])]
    pub(crate) list: bool,
    /// CPUs that count as large cores, all others as small, as in `run`
    #[arg(long, value_name = "CPUS", conflicts_with_all = ["machine", "named", "list"])]
    pub(crate) emulate_asymmetry: Option<PuSet>,
    /// Run built-in kernels under every event and compare the counts with the known ones
    #[arg(long)]
    pub(crate) check: bool,
    /// Read from FILE which CPUs share cores and caches; `consort machine probe --out FILE` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "named", "list"])]
    pub(crate) topology: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineTask {
    /// Measure which CPUs share a core, a level 2 cache or an LLC domain, in case a hypervisor hides it
    #[command(after_help = "Example: consort machine probe --out cores.toml && \
                            consort run --topology cores.toml -- ./solver input")]
    Probe(ProbeArgs),
}

pub(crate) fn execute(args: &MachineArgs) -> Result<ExitCode> {
    if let Some(MachineTask::Probe(args)) = &args.task {
        return probe::execute(args);
    }
    let out = args.list_out.out.as_deref();
    let named = args.machine.as_deref().or(args.named.as_deref());
    match named.filter(|name| *name != LIVE) {
        _ if args.list => print_list(out, args.format)?,
        Some(name) => described::print(name, out, args.format)?,
        None => return live::execute(args),
    }
    Ok(ExitCode::SUCCESS)
}

/// `consort list machines`: all described machines, or one.
pub(crate) fn show_described(args: &NamedListArgs) -> Result<()> {
    let out = args.list.out.as_deref();
    match &args.name {
        Some(name) => described::print(name, out, args.format),
        None => print_list(out, args.format),
    }
}

fn print_list(out: Option<&Path>, format: OutputFormat) -> Result<()> {
    let mut rows = Vec::new();
    for name in descriptions::machines() {
        let (chip, origin) = descriptions::full_chip(&name)?;
        rows.push(MachineRow {
            title: chip.spec().title.clone(),
            cores: chip.topology().cores().len(),
            pus: chip.topology().pus().len(),
            name,
            origin,
        });
    }
    output::print_list(out, format, MACHINES, &rows)
}

/// The JSON document of `consort machine`. Keys are a contract: add, never rename.
#[derive(Serialize)]
struct MachineReport {
    /// `None` for a described machine, whose `name` and `title` say it.
    processor: Option<live::ProcessorFacts>,
    tier: String,
    tiers: Vec<TierRow>,
    #[serde(flatten)]
    topology: TopologyReport,
    counters: Vec<String>,
    hypervisor: Option<String>,
    hidden_topology: bool,
    allowed_pus: PuSet,
    /// Online CPUs that the kernel does not balance.
    isolated: PuSet,
    /// Online CPUs that the kernel interrupts by no tick while one thread runs there.
    nohz_full: PuSet,
    /// Limit of CPU time that holds Consort's own control group most often; `None` if none is set.
    cpu_limit: Option<CpuLimit>,
    notes: Vec<String>,
    /// State of the energy counters.
    energy: EnergyStatus,
    /// Enactors, which keep threads in their places, each with its state.
    enactors: Vec<EnactorStatus>,
    /// State of core scheduling, which keeps cores to the threads that plans seat on them.
    cookies: CookieStatus,
    /// Mechanisms that pause programs, best first, each with its state.
    pausing: Vec<PauseSupport>,
    /// Other programs that place threads, and the effect that each has on Consort.
    owners: Vec<PlacementOwner>,
}

#[derive(Serialize)]
struct TopologyReport {
    packages: usize,
    nodes: usize,
    cores: usize,
    pus: usize,
    smt: usize,
    llc_domains: Vec<DomainRow>,
    /// Level 2 caches; empty if the kernel shows none.
    l2_domains: Vec<DomainRow>,
    core_types: Vec<CoreTypeRow>,
}

impl TopologyReport {
    fn new(topology: &Topology) -> Self {
        Self {
            packages: topology.packages().len(),
            nodes: topology.nodes().len(),
            cores: topology.cores().len(),
            pus: topology.pus().len(),
            smt: topology.smt(),
            llc_domains: domain_rows(topology.llcs()),
            l2_domains: domain_rows(topology.l2s()),
            core_types: core_types(topology),
        }
    }
}

/// A facility, or the reason why it is missing.
struct FacilityRow {
    name: String,
    available: bool,
    reason: String,
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

const PU_COLUMNS: &[OutputColumn<PuFacts>] = &[
    number("pu", |f| f.pu.to_string()),
    number("core", |f| f.core.to_string()),
    number("llc", |f| f.llc.to_string()),
    number("node", |f| f.node.to_string()),
    number("package", |f| f.package.to_string()),
    number("core type", |f| f.core_type.to_string()),
];

const TIER_COLUMNS: &[OutputColumn<TierRow>] = &[
    text("tier", |t| t.name.to_owned()),
    text("available", |t| yes_or_no(t.available)),
    text("why", |t| t.reason.clone()),
];

const FACILITY_COLUMNS: &[OutputColumn<FacilityRow>] = &[
    text("facility", |f| f.name.clone()),
    text("available", |f| yes_or_no(f.available)),
    text("why", |f| f.reason.clone()),
];

fn yes_or_no(is_available: bool) -> String {
    if is_available { "yes" } else { "no" }.to_owned()
}

const OWNER_COLUMNS: &[OutputColumn<PlacementOwner>] = &[
    text("also places threads", |o| o.name.clone()),
    text("effect", |o| o.effect.clone()),
];

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

fn domain_rows(domains: &[Domain]) -> Vec<DomainRow> {
    let row = |domain: &Domain| DomainRow {
        id: domain.key,
        pus: domain.pus.clone(),
        size_bytes: domain.size_bytes,
    };
    domains.iter().map(row).collect()
}

#[derive(Serialize)]
struct MachineRow {
    name: String,
    title: String,
    cores: usize,
    pus: usize,
    origin: String,
}

const MACHINES: &[OutputColumn<MachineRow>] = &[
    text("name", |r| r.name.clone()),
    text("title", |r| r.title.clone()),
    number("cores", |r| r.cores.to_string()),
    number("CPUs", |r| r.pus.to_string()),
    text("origin", |r| r.origin.clone()),
];
