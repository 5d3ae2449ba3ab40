//! Availability of each tier on this host, with the obstacle where one is missing.

use super::plan::{CounterBudget, PlanInput, core_pmus, event_spec, is_nmi_watchdog_on, plan};
use super::software::SoftwareEvents;
use crate::events::{EventFile, EventUnit, event_file_for};
use crate::perf::{CounterGroup, PerfError, PerfTarget, open, paranoid_level};
use crate::topology::{CpuIdentity, hypervisor};
use consort_core::{Signal, Tier};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use perf_event_open_sys::bindings;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::path::Path;

/// Availability of one tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TierStatus {
    /// The tier.
    pub tier: Tier,
    /// True if it can be used.
    pub available: bool,
    /// One sentence: the source of its values, or the obstacle.
    pub reason: String,
    /// Signals that it gives on this host.
    pub signals: Vec<Signal>,
}

impl TierStatus {
    fn missing(tier: Tier, reason: String) -> Self {
        Self {
            tier,
            available: false,
            reason,
            signals: Vec::new(),
        }
    }
}

/// The tiers of a host, and what was found out on the way.
#[derive(Clone, Debug)]
pub struct Tiers {
    /// Availability of each tier; richest first.
    pub status: Vec<TierStatus>,
    /// Events of the software tier, where it is available.
    pub software: Option<SoftwareEvents>,
}

/// Tries every tier on the caller. Files are read below `root`, which is `/` except in tests.
pub fn probe(root: &Path, identity: &CpuIdentity) -> Tiers {
    let software = SoftwareEvents::probe(root);
    let status = vec![
        probe_counters(root, identity),
        probe_sampling(root),
        status_of(&software),
        probe_proc(root),
    ];
    Tiers {
        status,
        software: software.ok(),
    }
}

fn probe_counters(root: &Path, identity: &CpuIdentity) -> TierStatus {
    match probe_hardware(root, identity) {
        Ok((file, signals)) => TierStatus {
            tier: Tier::Counters,
            available: true,
            reason: format!("events of {}", file.title),
            signals,
        },
        Err(reason) => TierStatus::missing(Tier::Counters, append_paranoid_level(root, &reason)),
    }
}

/// Appends to a reason the level of `perf_event_paranoid`, which often explains it.
fn append_paranoid_level(root: &Path, reason: &str) -> String {
    match paranoid_level(root) {
        Some(level) => format!("{reason}; perf_event_paranoid={level}"),
        None => reason.to_owned(),
    }
}

fn probe_hardware(root: &Path, identity: &CpuIdentity) -> Result<(EventFile, Vec<Signal>), String> {
    let pmus = core_pmus(root);
    if pmus.is_empty() {
        let guest = hypervisor(root).map(|h| format!(" ({} guest)", h.name));
        let guest = guest.unwrap_or_default();
        return Err(format!("no hardware PMU on this host{guest}"));
    }
    let file = event_file_for(identity).map_err(|e| e.to_string())?;
    let file = file.ok_or("there is no event file for this CPU")?;
    let mut signals = BTreeSet::new();
    for pmu in &pmus {
        let Some(events) = file.pmus.iter().find(|e| e.is_named(&pmu.name)) else {
            continue;
        };
        let cycles = events.event_of(EventUnit::Cycles);
        let specs: Vec<_> = cycles
            .map(|e| event_spec(pmu.kind, e))
            .into_iter()
            .collect();
        let opened = CounterGroup::open(&specs, PerfTarget::Thread { tid: 0 });
        opened.map_err(|e| format!("PMU {}: {e}", pmu.name))?;
        let input = PlanInput {
            pmu: pmu.name.clone(),
            events,
            budget: CounterBudget::from_pmu(events, is_nmi_watchdog_on(root)),
        };
        // A policy may wish for accesses of the L1D, which are not counted otherwise.
        for l1d in [false, true] {
            let planned = plan(&events.wanted(l1d), std::slice::from_ref(&input)).planned;
            signals.extend(planned.into_iter().map(|(_, s)| s));
        }
    }
    if signals.is_empty() {
        return Err(format!("no PMU on this host is one of {}", file.title));
    }
    Ok((file, signals.into_iter().collect()))
}

fn probe_sampling(root: &Path) -> TierStatus {
    let gives = [
        Signal::FpUsage,
        Signal::MemoryStall,
        Signal::CodeFootprint,
        Signal::Mix,
        Signal::CycleStack,
    ];
    match try_sample_event()
        .map_err(|e| e.to_string())
        .and_then(|()| read_own_memory())
    {
        Ok(()) => TierStatus {
            tier: Tier::Sampling,
            available: true,
            reason: "software clock samples of the instruction pointer".to_owned(),
            signals: gives.to_vec(),
        },
        Err(reason) => TierStatus::missing(Tier::Sampling, append_paranoid_level(root, &reason)),
    }
}

/// Opens and closes the event that the sampling tier samples with.
fn try_sample_event() -> Result<(), PerfError> {
    let mut attr = bindings::perf_event_attr {
        type_: bindings::PERF_TYPE_SOFTWARE,
        config: u64::from(bindings::PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(bindings::PERF_SAMPLE_IP | bindings::PERF_SAMPLE_TID),
        ..Default::default()
    };
    // The lowest rate: whether sampling is allowed does not depend on how often, and a host with
    // a low `kernel.perf_event_max_sample_rate` refuses higher ones.
    attr.__bindgen_anon_1.sample_freq = 1;
    attr.set_freq(1);
    attr.set_disabled(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    open(&mut attr, PerfTarget::Thread { tid: 0 }, None).map(drop)
}

/// Reads a word of the caller through the call that reads other processes.
fn read_own_memory() -> Result<(), String> {
    let word = [7_u8; 8];
    let mut copy = [0_u8; 8];
    let remote = RemoteIoVec {
        base: word.as_ptr() as usize,
        len: word.len(),
    };
    let mut local = [IoSliceMut::new(&mut copy)];
    let read = process_vm_readv(Pid::this(), &mut local, &[remote]);
    let whole = read.map_err(|e| format!("process_vm_readv is refused: {e}"))? == word.len();
    if whole && copy == word {
        Ok(())
    } else {
        Err("process_vm_readv reads short".to_owned())
    }
}

fn status_of(software: &Result<SoftwareEvents, PerfError>) -> TierStatus {
    match software {
        Ok(events) => {
            let mut reason = vec!["perf software events".to_owned()];
            reason.extend(events.notes.iter().cloned());
            TierStatus {
                tier: Tier::Software,
                available: true,
                reason: reason.join("; "),
                signals: events.signals(),
            }
        }
        Err(error) => TierStatus::missing(Tier::Software, error.to_string()),
    }
}

fn probe_proc(root: &Path) -> TierStatus {
    let has = |file: &str| root.join("proc/self").join(file).exists();
    if !has("stat") {
        return TierStatus::missing(Tier::Proc, "/proc is not mounted".to_owned());
    }
    let mut signals = vec![Signal::CpuTime, Signal::Runnable];
    if has("schedstat") {
        signals.extend([Signal::WaitTime, Signal::Runs]);
    }
    TierStatus {
        tier: Tier::Proc,
        available: true,
        reason: "/proc".to_owned(),
        signals,
    }
}
