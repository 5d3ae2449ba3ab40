//! Scenarios that show in a guest what the scheduler does; see `tests/guests.rs`.
//!
//! Usage: `ext-guest CORES WAYS SCENARIO`. PUs are numbered as qemu does, way first.

mod load;
mod placing;
mod slots;
mod endings;
mod starting;
mod tasks;

use consort_core::topology::{CoreType, PuFacts};
use consort_core::{PuId, Topology};
use consort_ext::{Config, Scheduler};
use std::process::ExitCode;
use std::time::Duration;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How often scenarios look and beat.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// The quantum that plans tell.
pub(crate) const QUANTUM: Duration = Duration::from_secs(1);

/// One host thread emulates all PUs in turn, so a PU may be away for longer than on a real machine.
pub(crate) fn patient() -> Config {
    Config {
        relief: Duration::from_secs(2),
        ..Config::default()
    }
}

pub(crate) fn start(topology: &Topology) -> Outcome<Scheduler> {
    Ok(Scheduler::start(topology, &patient())?)
}

/// Fails with the words where the condition does not hold.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

fn topology(cores: u32, ways: u32) -> Outcome<Topology> {
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

fn scenario(topology: &Topology, name: &str) -> Outcome<()> {
    match name {
        "refused" => endings::refused(topology),
        "full" => placing::cores(topology, 1),
        "double" => placing::cores(topology, 2),
        "mask" => placing::own_mask_first(topology),
        "relief" => placing::relief(topology),
        "stale" => placing::stale(topology),
        "moves" => placing::moves(topology),
        "gangs" => slots::gangs(topology),
        "stall" => slots::stall(topology),
        "killed" => endings::killed(topology),
        "dropped" => endings::dropped(topology),
        "owner" => endings::own_forever(topology),
        "forks" => starting::forks(topology),
        "looks" => starting::looks(topology),
        "cost" => starting::cost(topology),
        other => Err(format!("there is no scenario '{other}'").into()),
    }
}

fn run() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["load", load @ ..] => load::run(load),
        [cores, ways, name] => scenario(&topology(cores.parse()?, ways.parse()?)?, name),
        _ => Err("ext-guest CORES WAYS SCENARIO".into()),
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
