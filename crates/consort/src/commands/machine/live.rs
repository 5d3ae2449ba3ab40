//! The machine that this runs on, and the check of its events.

use super::{
    FACILITY_COLUMNS, FacilityRow, MachineArgs, MachineReport, OWNER_COLUMNS, PU_COLUMNS,
    TIER_COLUMNS, TierRow, TopologyReport,
};
use crate::commands::manage::{detect_host, emulate_asymmetry};
use crate::output::file::write_list;
use crate::output::{self, OutputColumn, number, or_dash, percent, text};
use anyhow::Result;
use consort_kernels::counted::LOOPS;
use consort_linux::cgroup::CpuLimit;
use consort_linux::counters::{CheckKernel, EventVerdict, ExpectedCounts, TierStatus, check};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::Host;
use consort_linux::topology::draw;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn execute(args: &MachineArgs) -> Result<ExitCode> {
    let host = detect_host(args.topology.as_deref())?;
    let host = emulate_asymmetry(host, args.emulate_asymmetry.as_ref())?;
    if args.check {
        return check_events(args, &host);
    }
    let facts = host.discovery.topology.facts();
    write_list(args.list_out.out.as_deref(), PU_COLUMNS, &facts)?;
    output::print(args.format, PU_COLUMNS, &facts, &report(&host), || {
        describe(&host)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Model, clock and caches as the kernel names them. Keys are a contract: add, never rename.
#[derive(Serialize)]
pub(super) struct ProcessorFacts {
    model: Option<String>,
    /// Highest clock if the kernel names one, else the present one, MHz.
    clock_mhz: Option<f64>,
    /// Caches of the first CPU, as `L1d 32 KiB`.
    caches: Vec<String>,
}

impl ProcessorFacts {
    fn read(root: &Path) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let cpuinfo = text("proc/cpuinfo");
        let field = |keys: &[&str]| {
            let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            let mut found = pairs.filter(|(key, _)| keys.contains(&key.trim()));
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        let highest = text("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
        let highest = highest.trim().parse::<f64>().map(|khz| khz / 1e3);
        let present = || {
            field(&["cpu MHz", "clock"])?
                .trim_end_matches("MHz")
                .parse()
                .ok()
        };
        let cache = |index: usize| {
            let of = |name| {
                text(&format!(
                    "sys/devices/system/cpu/cpu0/cache/index{index}/{name}"
                ))
            };
            let (level, kind, size) = (of("level"), of("type"), of("size"));
            let size = size.trim().strip_suffix('K')?.to_owned();
            let kind = match kind.trim() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            Some(format!("L{}{kind} {size} KiB", level.trim()))
        };
        Self {
            // x86 and RISC-V, POWER, Arm.
            model: field(&["model name", "cpu", "Hardware"]),
            clock_mhz: highest.ok().or_else(present),
            caches: (0..).map_while(cache).collect(),
        }
    }

    fn text(&self) -> Option<String> {
        let clock = self.clock_mhz.map(|mhz| format!("{:.2} GHz", mhz / 1e3));
        let caches = (!self.caches.is_empty()).then(|| self.caches.join(", "));
        let parts = [self.model.clone(), clock, caches];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("processor: {}", parts.join("; ")))
    }
}

fn describe(host: &Host) -> String {
    let mut lines: Vec<String> = ProcessorFacts::read(&host.root)
        .text()
        .into_iter()
        .collect();
    lines.extend(draw(&host.discovery.topology));
    for note in &host.discovery.notes {
        lines.push(format!("note: {note}"));
    }
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
        processor: Some(ProcessorFacts::read(&host.root)),
        tier: host.best_tier().to_string(),
        tiers: host.tiers.iter().map(tier_row).collect(),
        topology: TopologyReport::new(topology),
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

/// One row of the check of events.
#[derive(Serialize)]
struct EventCheckRow {
    event: String,
    kernel: String,
    expected: Option<f64>,
    measured: Option<f64>,
    relative_error: Option<f64>,
    /// `ok`, `wrong` or `skipped`.
    verdict: &'static str,
    /// Reason why it is wrong or was skipped; `None` if `ok`.
    reason: Option<String>,
}

const CHECK_COLUMNS: &[OutputColumn<EventCheckRow>] = &[
    text("event", |r| r.event.clone()),
    text("kernel", |r| r.kernel.clone()),
    number("expected", |r| or_dash(r.expected, |v| format!("{v:.0}"))),
    number("measured", |r| or_dash(r.measured, |v| format!("{v:.0}"))),
    number("error %", |r| or_dash(r.relative_error, |e| percent(e, 2))),
    text("verdict", |r| r.verdict.to_owned()),
    text("why", |r| r.reason.clone().unwrap_or_default()),
];

/// Compares every event with kernels of known counts; exit code 1 if an event is wrong, because its
/// tier must not be trusted then.
fn check_events(args: &MachineArgs, host: &Host) -> Result<ExitCode> {
    let runs: Vec<_> = LOOPS.iter().map(|l| move |n: u64| _ = l.run(n)).collect();
    let counts: Vec<_> = LOOPS
        .iter()
        .map(|counted| {
            move |iterations: u64| {
                let known = counted.counts(iterations);
                ExpectedCounts {
                    instructions: known.instructions,
                    fp_ops: known.fp_ops,
                    fp_scalar_instructions: known.fp_scalar_instructions,
                    fp_packed_instructions: known.fp_packed_instructions,
                    branches: known.branches,
                }
            }
        })
        .collect();
    let kernels: Vec<CheckKernel<'_>> = LOOPS
        .iter()
        .zip(runs.iter().zip(&counts))
        .map(|(counted, (run, counts))| CheckKernel {
            name: counted.name,
            run,
            counts,
        })
        .collect();
    let mut rows = Vec::new();
    for row in check(&host.root, host.event_file().as_ref(), &kernels) {
        let (verdict, reason) = match row.verdict {
            EventVerdict::Ok => ("ok", None),
            EventVerdict::Wrong(why) => ("wrong", Some(why)),
            EventVerdict::Skipped(why) => ("skipped", Some(why)),
        };
        rows.push(EventCheckRow {
            event: row.event,
            kernel: row.kernel,
            expected: row.expected,
            measured: row.measured,
            relative_error: row.relative_error,
            verdict,
            reason,
        });
    }
    output::print_list(
        args.list_out.out.as_deref(),
        args.format,
        CHECK_COLUMNS,
        &rows,
    )?;
    let wrong = rows.iter().any(|row| row.verdict == "wrong");
    Ok(ExitCode::from(u8::from(wrong)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_is_named_with_clock_and_caches() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(ProcessorFacts::read(root.path()).text(), None);
        write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t\t: 2596.1\n",
        );
        let cache = "sys/devices/system/cpu/cpu0/cache/index0";
        for (name, value) in [("level", "1\n"), ("type", "Data\n"), ("size", "32K\n")] {
            write(&format!("{cache}/{name}"), value);
        }
        let text = ProcessorFacts::read(root.path()).text().unwrap();
        assert_eq!(text, "processor: AMD EPYC; 2.60 GHz; L1d 32 KiB");
        write(
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
            "3700000\n",
        );
        let facts = ProcessorFacts::read(root.path());
        assert_eq!(facts.clock_mhz, Some(3700.0));
    }
}
