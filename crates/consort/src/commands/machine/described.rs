//! A described machine: the same report as of a live one, and the description itself.

use super::{MachineReport, PU_COLUMNS, TIER_COLUMNS, TierRow, TopologyReport, sheet};
use crate::descriptions;
use crate::failure::bad_input;
use crate::output::file::write_list;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use consort_core::{PuSet, SignalOffers, Tier};
use consort_linux::cookies::CookieStatus;
use consort_linux::energy::EnergyStatus;
use consort_linux::enforce::{EnactorKind, EnactorStatus};
use consort_linux::pause::{PauseKind, PauseSupport};
use consort_sim::chip::Chip;
use consort_sim::machine::MachineSpec;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use serde::Serialize;
use std::path::Path;

/// The report with the keys of the machine file (`name`, `title`, `sources`, `memory`, ...).
#[derive(Serialize)]
struct DescribedReport<'a> {
    #[serde(flatten)]
    report: MachineReport,
    #[serde(flatten)]
    description: &'a MachineSpec,
}

pub(super) fn print(name: &str, out: Option<&Path>, format: OutputFormat) -> Result<()> {
    let chip = descriptions::chip(name)?;
    let pmu = SimulatedPmu::new(chip.spec(), &PmuRequest::default(), 0).map_err(bad_input)?;
    let facts = chip.topology().facts();
    write_list(out, PU_COLUMNS, &facts)?;
    let document = DescribedReport {
        report: report(&chip, pmu.offers()),
        description: chip.spec(),
    };
    output::print(format, PU_COLUMNS, &facts, &document, || {
        let spec = chip.spec();
        let mut lines = vec![format!("{}: {}", spec.name, spec.title)];
        lines.extend(sheet::draw_tree(&chip));
        lines.push(String::new());
        lines.extend(sheet::lines(&chip));
        let drawn: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let tiers = output::table(TIER_COLUMNS, &document.report.tiers);
        let events = sheet::events(spec);
        let sources = output::sources(&spec.sources);
        format!("{drawn}\n{events}\n{tiers}\n{sources}")
    })
}

fn report(chip: &Chip, offers: &SignalOffers) -> MachineReport {
    let topology = chip.topology();
    let best = offers.iter().map(|(_, tier)| tier).max();
    MachineReport {
        processor: None,
        tier: best.unwrap_or(Tier::Proc).to_string(),
        tiers: { Tier::ALL.into_iter().rev() }
            .map(|tier| tier_row(tier, offers))
            .collect(),
        topology: TopologyReport::new(topology),
        counters: chip
            .spec()
            .pmu
            .events
            .iter()
            .map(|e| e.name.clone())
            .collect(),
        hypervisor: None,
        hidden_topology: false,
        allowed_pus: topology.pus().clone(),
        isolated: topology.unbalanced_pus().clone(),
        nohz_full: PuSet::new(),
        cpu_limit: None,
        notes: Vec::new(),
        energy: EnergyStatus {
            available: true,
            reason: "simulated: from the power of its description".to_owned(),
        },
        enactors: vec![EnactorStatus {
            name: EnactorKind::Pin,
            available: true,
            reason: "simulated: threads stay where they are put".to_owned(),
        }],
        cookies: CookieStatus {
            available: false,
            reason: "simulated: threads have no core-scheduling cookies".to_owned(),
        },
        owners: Vec::new(),
        pausing: vec![PauseSupport {
            kind: PauseKind::FreezerV2,
            available: true,
            reason: "simulated: programs stop as in a freezer".to_owned(),
        }],
    }
}

fn tier_row(tier: Tier, offers: &SignalOffers) -> TierRow {
    let of_tier = offers.iter().filter(|(_, from)| *from == tier);
    let signals: Vec<&'static str> = of_tier.map(|(signal, _)| signal.name()).collect();
    let available = !signals.is_empty();
    let reason = match (tier, available) {
        (Tier::Counters, true) => "simulated: the events of the description",
        (Tier::Counters, false) => "simulated: the description has no events that give a signal",
        (Tier::Software, _) => "simulated: counts of the operating system, exact",
        (Tier::Sampling, _) => "simulated programs have no instructions to sample",
        (Tier::Proc, _) => "simulated threads are not in /proc; the software tier has its signals",
    };
    TierRow {
        name: tier.name(),
        available,
        reason: reason.to_owned(),
        signals,
    }
}
