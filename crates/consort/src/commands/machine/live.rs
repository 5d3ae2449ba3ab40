//! The machine that this runs on.

use super::report::{
    FACILITY_COLUMNS, FacilityRow, MachineReport, OWNER_COLUMNS, PU_COLUMNS, TIER_COLUMNS, TierRow,
    core_types, domain_rows,
};
use crate::cli::{MachineArgs, OutputFormat};
use crate::output;
use crate::table_file;
use anyhow::Result;
use consort_linux::cgroup::CpuLimit;
use consort_linux::counters::TierStatus;
use consort_linux::enforce::EnactChoice;
use consort_linux::live::Host;
use consort_linux::topology::draw;
use std::process::ExitCode;

pub(super) fn execute(args: &MachineArgs) -> Result<ExitCode> {
    let host = crate::host::discover_host(args.topology.as_deref())?;
    let host = crate::host::emulate_asymmetry(host, args.emulate_asymmetry.as_ref())?;
    if args.check {
        return crate::commands::check::execute(args, &host);
    }
    let facts = host.discovery.topology.facts();
    table_file::write_list(args.list_out.out.as_deref(), PU_COLUMNS, &facts)?;
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Json => output::write_json(&mut out, &report(&host))?,
        OutputFormat::Csv => output::write_csv(&mut out, PU_COLUMNS, &facts)?,
        OutputFormat::Table => output::print_text(&mut out, &describe(&host))?,
    }
    Ok(ExitCode::SUCCESS)
}

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
    let isolated = &host.discovery.isolated;
    if !isolated.is_empty() {
        lines.push(format!(
            "isolated: {isolated} (the kernel balances no threads there, so a place there is one CPU)"
        ));
    }
    let nohz_full = &host.discovery.nohz_full;
    if !nohz_full.is_empty() {
        lines.push(format!(
            "nohz_full: {nohz_full} (no tick interrupts a thread that runs there alone)"
        ));
    }
    lines.extend(CpuLimit::read_own(&host.root).map(|limit| limit.to_string()));
    let drawn: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut tiers = host.tiers.clone();
    tiers.sort_by_key(|tier| std::cmp::Reverse(tier.tier));
    let tiers: Vec<TierRow> = tiers.iter().map(tier_row).collect();
    let tiers = output::table(TIER_COLUMNS, &tiers);
    let facilities = output::table(FACILITY_COLUMNS, &facilities(host));
    let owners = match &host.owners[..] {
        [] => String::new(),
        owners => format!("\n{}", output::table(OWNER_COLUMNS, owners)),
    };
    format!("{drawn}\n{tiers}\n{facilities}{owners}")
}

/// Returns the facilities besides the tiers: energy, enactors, core cookies, pausing.
fn facilities(host: &Host) -> Vec<FacilityRow> {
    let energy = FacilityRow {
        name: "energy".to_owned(),
        available: host.energy.available,
        reason: host.energy.reason.clone(),
    };
    let pausing = host.pausing.iter().map(|mechanism| FacilityRow {
        name: format!("pausing: {}", mechanism.kind),
        available: mechanism.available,
        reason: mechanism.reason.clone(),
    });
    let default = EnactChoice::default().first();
    let enactors = host.enactors.iter().map(|enactor| FacilityRow {
        name: format!("enactor: {}", enactor.name),
        available: enactor.available,
        reason: match enactor.name == default {
            true => format!("used by default; {}", enactor.reason),
            false => enactor.reason.clone(),
        },
    });
    let cookies = FacilityRow {
        name: "core cookies".to_owned(),
        available: host.cookies.available,
        reason: host.cookies.reason.clone(),
    };
    std::iter::once(energy)
        .chain(enactors)
        .chain([cookies])
        .chain(pausing)
        .collect()
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
        llc_domains: domain_rows(topology.llcs()),
        l2_domains: domain_rows(topology.l2s()),
        core_types: core_types(topology),
        counters: host.counter_events(),
        hypervisor: host.discovery.hypervisor.as_ref().map(|h| h.name.clone()),
        hidden_topology: host.discovery.hidden_topology,
        allowed_pus: topology.pus().clone(),
        isolated: host.discovery.isolated.clone(),
        nohz_full: host.discovery.nohz_full.clone(),
        cpu_limit: CpuLimit::read_own(&host.root),
        notes: host.discovery.notes.clone(),
        energy: host.energy.clone(),
        enactors: host.enactors.clone(),
        cookies: host.cookies.clone(),
        pausing: host.pausing.clone(),
        owners: host.owners.clone(),
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
