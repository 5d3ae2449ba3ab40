//! Training runs on this machine: built-in kernels, alone and in pairs on the PUs of one core.
//!
//! A process of its own runs the kernels ([`worker`]) while the live machine watches its threads
//! ([`watch`]). Every kernel has a thread for its time alone and one for its time together, so
//! that the samples of the two never mix, and slices of the two alternate, since the speed of a
//! host may change by half within minutes. Kernels do the same all the time, so any stretch alone
//! may stand for the instructions of any stretch together; progress is counted in their units.

mod plan;
mod rows;
mod watch;
mod worker;

use super::{TrainingData, check_folds};
use crate::cli::TrainArgs;
use crate::failure::bad_input;
use anyhow::{Context, Result};
use consort_core::{PuId, Signal, hint};
use consort_linux::live::Host;
use consort_train::TrainingSet;
use plan::KernelPlan;
use std::path::Path;
use std::time::Duration;
pub(crate) use worker::{WORKER, run_plan_argument};

/// Kernels that are trained on where none are named: one per part of the processor.
const PROGRAMS: [&str; 10] = [
    "int", "fp", "vector", "l1", "l2", "llc", "dram", "stream", "branchy", "bigcode",
];

/// Time of each kernel alone, and of each pair together.
const FULL: Duration = Duration::from_millis(500);
const QUICK: Duration = Duration::from_millis(200);

pub(super) fn train_live(args: &TrainArgs) -> Result<TrainingData> {
    let programs = programs(&args.programs())?;
    check_folds(programs.len(), args.folds)?;
    check_ways(&args.ways)?;
    let host = Host::detect(Path::new("/")).context("cannot see the processor")?;
    let pus = siblings(&args.as_siblings, &host)?;
    let offers = host.offers();
    if !offers.missing_signals(&[Signal::CycleStack]).is_empty() {
        return Err(bad_input(
            "no tier of this machine tells cycle stacks; see consort machine",
        ));
    }
    let time = args
        .seconds
        .unwrap_or(if args.quick { QUICK } else { FULL });
    let plan = KernelPlan::new(programs, pus, time);
    let (watched, tier) = watch::run(host, &plan)?;
    let components: Vec<String> = offers.stack().iter().map(ToString::to_string).collect();
    let rows = rows::rows(&watched, &components);
    let missing = 2 * plan.pairs().len() - rows.len();
    let set = TrainingSet {
        machine: offers.machine().to_owned(),
        ways: 2,
        components,
        rows,
    };
    Ok(TrainingData {
        machine: set.machine.clone(),
        source: source(args, &plan, tier),
        sets: vec![set],
        notes: notes(args, &plan, missing),
    })
}

fn programs(named: &[&str]) -> Result<Vec<String>> {
    if named.is_empty() {
        return Ok(PROGRAMS.map(str::to_owned).to_vec());
    }
    let mut programs: Vec<String> = Vec::new();
    for name in named {
        if !PROGRAMS.contains(name) {
            let hint = hint(name, PROGRAMS.into_iter());
            let text = format!(
                "unknown program '{}' on the live machine; {hint}",
                name.escape_debug()
            );
            return Err(bad_input(text));
        }
        if !programs.iter().any(|known| known == name) {
            programs.push((*name).to_owned());
        }
    }
    Ok(programs)
}

fn check_ways(ways: &[u32]) -> Result<()> {
    match ways.iter().find(|&&ways| ways != 2) {
        Some(ways) => Err(bad_input(format!(
            "--ways {ways}: the live machine trains on pairs, --ways 2; described machines take more"
        ))),
        None => Ok(()),
    }
}

/// The PUs to run on: those that were named, or the first two of the first core that has two.
fn siblings(named: &[u32], host: &Host) -> Result<[PuId; 2]> {
    let topology = &host.discovery.topology;
    match *named {
        [] => {
            let pair = topology
                .cores()
                .iter()
                .find_map(|core| core.pus.first_chunk());
            pair.copied().ok_or_else(|| {
                bad_input(
                    "this machine's cores have one PU each: there are no co-runners to train on; \
                     --as-siblings A,B treats two PUs as if they shared a core",
                )
            })
        }
        [a, b] if a != b => {
            let pair = [PuId(a), PuId(b)];
            match pair.into_iter().find(|&pu| !topology.pus().contains(pu)) {
                Some(pu) => Err(bad_input(format!(
                    "--as-siblings: PU {pu} cannot be used here; usable are {}",
                    topology.pus()
                ))),
                None => Ok(pair),
            }
        }
        _ => Err(bad_input(
            "--as-siblings takes two different PUs, for example 0,1",
        )),
    }
}

fn source(args: &TrainArgs, plan: &KernelPlan, tier: &str) -> String {
    let [a, b] = plan.pus;
    let shared = match args.as_siblings.is_empty() {
        true => format!("PUs {a} and {b} of one core"),
        false => format!("PUs {a} and {b} treated as if they shared a core"),
    };
    format!(
        "consort train, live: {} kernels in {} pairs on {shared}, {} ms alone and together in \
         slices of {} ms, stacks {tier}",
        plan.programs.len(),
        plan.pairs().len(),
        plan.rounds * plan.slice_ms,
        plan.slice_ms,
    )
}

fn notes(args: &TrainArgs, plan: &KernelPlan, missing: usize) -> Vec<String> {
    let [a, b] = plan.pus;
    let pretended = (!args.as_siblings.is_empty()).then(|| {
        format!(
            "PUs {a} and {b} were treated as if they shared a core; the model holds for what they \
             really share"
        )
    });
    let missing = (missing > 0).then(|| {
        let all = 2 * plan.pairs().len();
        format!(
            "{missing} of {all} rows are left out, because one of their threads did nothing or was \
             never sampled; a longer time, --seconds, gives more"
        )
    });
    pretended.into_iter().chain(missing).collect()
}
