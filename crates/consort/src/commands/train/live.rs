//! Training runs on this machine.

use super::{TrainArgs, TrainingData, check_folds};
use crate::commands::manage::{detect_host, enact_config};
use crate::failure::bad_input;
use crate::progress;
use anyhow::Result;
use consort_core::{PuId, Signal, hint};
use consort_experiment::train::TrainingSet;
use consort_host::LiveHost;
use consort_host::training::{KernelPlan, PROGRAMS, train};
use consort_linux::live::Host;
use std::time::Duration;

/// Time of each kernel alone, and of each pair together.
const FULL: Duration = Duration::from_millis(500);

const QUICK: Duration = Duration::from_millis(200);

pub(super) fn train_live(args: &TrainArgs) -> Result<TrainingData> {
    let programs = programs(&args.programs())?;
    check_folds(programs.len(), args.folds)?;
    if let Some(ways) = args.ways.iter().find(|&&ways| ways != 2) {
        return Err(bad_input(format!(
            "--ways {ways}: the live machine trains on pairs, --ways 2; described machines take more"
        )));
    }
    let host = detect_host(None)?;
    let pus = siblings(&args.as_siblings, &host)?;
    let offers = host.offers();
    if !offers.missing_signals(&[Signal::CycleStack]).is_empty() {
        return Err(bad_input(
            "no tier of this machine gives cycle stacks; see consort machine",
        ));
    }
    let time = args
        .seconds
        .unwrap_or(if args.quick { QUICK } else { FULL });
    let plan = KernelPlan::new(programs, pus, time);
    let components: Vec<String> = offers.stack().iter().map(ToString::to_string).collect();
    let live = LiveHost {
        host,
        enact: enact_config(false),
    };
    let meter = progress::start_meter("seconds of training");
    let runs = train(live, &plan, &components, &|done, total| {
        meter.set_done(done, total);
    });
    meter.finish();
    let runs = runs?;
    let machine = offers.machine().to_owned();
    Ok(TrainingData {
        machine: machine.clone(),
        source: source(args, &plan, runs.stack_source),
        notes: notes(args, &plan, runs.rows.len()),
        sets: vec![TrainingSet {
            machine,
            ways: 2,
            components,
            slowdowns_only: false,
            rows: runs.rows,
        }],
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

/// Returns the named PUs, or the first two of the first core that has two.
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

fn notes(args: &TrainArgs, plan: &KernelPlan, rows: usize) -> Vec<String> {
    let all = 2 * plan.pairs().len();
    let missing = all - rows;
    let [a, b] = plan.pus;
    let pretended = (!args.as_siblings.is_empty()).then(|| {
        format!(
            "PUs {a} and {b} were treated as if they shared a core; the model holds for the units that \
             they really share"
        )
    });
    let missing = (missing > 0).then(|| {
        format!(
            "{missing} of {all} rows are missing, because one of their threads did nothing or was \
             never sampled; a longer time, --seconds, gives more"
        )
    });
    pretended.into_iter().chain(missing).collect()
}
