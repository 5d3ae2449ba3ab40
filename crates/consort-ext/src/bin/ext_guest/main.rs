//! Scenarios that show in a guest what the scheduler does; see `tests/guests.rs`.
//!
//! Usage: `ext-guest CORES WAYS SCENARIO...`. CPUs are numbered as by qemu, way first.

mod endings;
mod load;
mod placing;
mod slots;
mod starting;
mod tasks;

use consort_core::topology::{CoreType, PuFacts};
use consort_core::{PuId, Topology};
use consort_ext::{ExtConfig, ExtPlan, Scheduler};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) type GuestResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Time between observations and between heartbeats of scenarios.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// Quantum of plans. It is long because this program, too, waits for its emulated CPU, and its plan
/// must not go stale meanwhile.
pub(crate) const QUANTUM: Duration = Duration::from_secs(20);

/// Settings with long limits: one host thread emulates all CPUs in turn, a tenth of a second each.
/// With 32 busy ones a CPU is away for three seconds, and longer on a busy host.
pub(crate) fn patient_config() -> ExtConfig {
    ExtConfig {
        relief: Duration::from_secs(10),
        watchdog: Duration::from_secs(30),
        ..ExtConfig::default()
    }
}

pub(crate) fn start(topology: &Topology) -> GuestResult<Scheduler> {
    Ok(Scheduler::start(topology, &patient_config())?)
}

/// Fails with the text if the condition does not hold.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> GuestResult<()> {
    if holds {
        Ok(())
    } else {
        Err(otherwise().into())
    }
}

fn topology(cores: u32, ways: u32) -> GuestResult<Topology> {
    let facts = (0..cores * ways).map(|pu| PuFacts {
        pu: PuId(pu),
        package: 0,
        node: 0,
        core: pu / ways,
        llc: 0,
        l2: Some(pu / ways),
        core_type: 0,
    });
    Ok(Topology::new(facts.collect(), vec![CoreType::uniform()])?)
}

/// Runs one of the scenarios that can follow each other under one scheduler.
fn run_shared_scenario(
    scheduler: &mut Scheduler,
    topology: &Topology,
    name: &str,
) -> GuestResult<()> {
    match name {
        "full" => placing::check_adherence(scheduler, topology, 1),
        "double" => placing::check_adherence(scheduler, topology, 2),
        "mask" => placing::check_own_mask(scheduler),
        "stale" => placing::check_stale_plan(scheduler),
        "moves" => placing::check_moves(scheduler),
        "gangs" => slots::check_gangs(scheduler),
        "forks" => starting::check_forks(scheduler, topology),
        "looks" => starting::check_looks(scheduler, topology),
        "cost" => starting::measure_cost(scheduler, topology),
        other => Err(format!("there is no scenario '{other}'").into()),
    }
}

fn run_in_turn(topology: &Topology, names: &[&str]) -> GuestResult<()> {
    let mut scheduler = start(topology)?;
    for name in names {
        println!("{name}:");
        run_shared_scenario(&mut scheduler, topology, name)
            .map_err(|error| format!("{name}: {error}"))?;
        scheduler.apply(&ExtPlan::unrestricted(QUANTUM))?;
    }
    Ok(())
}

fn run_scenarios(topology: &Topology, names: &[&str]) -> GuestResult<()> {
    match names {
        ["refused"] => endings::provoke_refusals(topology),
        ["relief"] => {
            placing::check_relief(&mut Scheduler::start(topology, &ExtConfig::default())?)
        }
        ["stall"] => slots::stall(topology),
        ["killed"] => endings::kill_owner(topology),
        ["dropped"] => endings::drop_scheduler(topology),
        ["owner"] => endings::own_forever(topology),
        _ => run_in_turn(topology, names),
    }
}

fn run() -> GuestResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["load", load @ ..] => load::run(load),
        [cores, ways, names @ ..] => {
            run_scenarios(&topology(cores.parse()?, ways.parse()?)?, names)
        }
        _ => Err("ext-guest CORES WAYS SCENARIO...".into()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ext-guest: {error}");
            ExitCode::FAILURE
        }
    }
}
