//! Training runs on this machine.

use super::{TrainArgs, TrainingData, check_folds};
use crate::commands::manage::{detect_host, enact_config};
use crate::commands::map::live::{command_names, parse_commands};
use crate::failure::bad_input;
use crate::progress;
use anyhow::Result;
use consort_core::{PuId, Signal, hint};
use consort_experiment::train::TrainingSet;
use consort_host::LiveHost;
use consort_host::command_training::CommandTraining;
use consort_host::training::{KernelPlan, PROGRAMS, TrainingRuns, train};
use consort_linux::live::Host;
use std::time::Duration;

/// Time of each kernel alone, and of each pair together.
const FULL: Duration = Duration::from_millis(500);

const QUICK: Duration = Duration::from_millis(200);

/// Number of times that each command runs alone, and each pair together, also in words.
const ROUNDS: (u32, &str) = (3, "3 times");

const QUICK_ROUNDS: (u32, &str) = (1, "once");

pub(super) fn train_live(args: &TrainArgs) -> Result<TrainingData> {
    let commands = parse_commands(&args.command)?;
    let programs = match commands.len() {
        0 => programs(&args.programs())?,
        _ => command_names(&commands),
    };
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
    let components: Vec<String> = offers.stack().iter().map(ToString::to_string).collect();
    let machine = offers.machine().to_owned();
    let live = LiveHost {
        host,
        enact: enact_config(false),
    };
    let (runs, what, more) = match commands.is_empty() {
        true => run_kernels(args, live, programs, pus, &components)?,
        false => run_commands(args, live, (commands, programs), pus, &components)?,
    };
    Ok(TrainingData {
        machine: machine.clone(),
        source: source(args, pus, &what, runs.stack_source),
        notes: notes(args, pus, runs.rows.len(), &what, more),
        sets: vec![TrainingSet {
            machine,
            ways: 2,
            components,
            slowdowns_only: false,
            rows: runs.rows,
        }],
    })
}

/// Programs and runs, for people.
struct TrainingWork {
    /// Programs, for example `10 kernels`.
    programs: String,
    /// Number of pairs.
    pairs: usize,
    /// Length of the runs.
    length: String,
}

/// Results, what was run, and the way to get more rows if some are missing.
type LiveRuns = (TrainingRuns, TrainingWork, &'static str);

fn run_kernels(
    args: &TrainArgs,
    live: LiveHost,
    programs: Vec<String>,
    pus: [PuId; 2],
    components: &[String],
) -> Result<LiveRuns> {
    let time = args
        .duration
        .unwrap_or(if args.quick { QUICK } else { FULL });
    let plan = KernelPlan::new(programs, pus, time);
    let meter = progress::start_meter("seconds of training");
    let runs = train(live, &plan, components, &|done, total| {
        meter.set_done(done, total);
    });
    meter.finish();
    let work = TrainingWork {
        programs: format!("{} kernels", plan.programs.len()),
        pairs: plan.pairs().len(),
        length: format!(
            "{} ms alone and together in slices of {} ms",
            plan.rounds * plan.slice_ms,
            plan.slice_ms
        ),
    };
    Ok((runs?, work, "a longer time, --duration, gives more"))
}

fn run_commands(
    args: &TrainArgs,
    live: LiveHost,
    (commands, names): (Vec<Vec<String>>, Vec<String>),
    pus: [PuId; 2],
    components: &[String],
) -> Result<LiveRuns> {
    let (rounds, times) = if args.quick { QUICK_ROUNDS } else { ROUNDS };
    let training = CommandTraining {
        live,
        commands,
        names,
        pus,
        rounds,
    };
    let programs = training.commands.len();
    let meter = progress::start_meter("runs of training");
    let runs = training.train(components, &|done, total| meter.set_done(done, total));
    meter.finish();
    let work = TrainingWork {
        programs: format!("{programs} commands"),
        pairs: programs * (programs + 1) / 2,
        length: format!("{times} alone and together, each to its end"),
    };
    Ok((runs?, work, "commands that run for longer give more"))
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

/// Returns the named CPUs, or the first two of the first core that has two.
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
                    "this machine's cores have one CPU each: there are no co-runners to train on; \
                     --as-siblings A,B treats two CPUs as if they shared a core",
                )
            })
        }
        [a, b] if a != b => {
            let pair = [PuId(a), PuId(b)];
            match pair.into_iter().find(|&pu| !topology.pus().contains(pu)) {
                Some(pu) => Err(bad_input(format!(
                    "--as-siblings: CPU {pu} cannot be used here; usable are {}",
                    topology.pus()
                ))),
                None => Ok(pair),
            }
        }
        _ => Err(bad_input(
            "--as-siblings takes two different CPUs, for example 0,1",
        )),
    }
}

fn source(args: &TrainArgs, [a, b]: [PuId; 2], work: &TrainingWork, tier: &str) -> String {
    let shared = match args.as_siblings.is_empty() {
        true => format!("CPUs {a} and {b} of one core"),
        false => format!("CPUs {a} and {b} treated as if they shared a core"),
    };
    format!(
        "consort train, live: {} in {} pairs on {shared}, {}, stacks {tier}",
        work.programs, work.pairs, work.length
    )
}

fn notes(
    args: &TrainArgs,
    [a, b]: [PuId; 2],
    rows: usize,
    work: &TrainingWork,
    more: &str,
) -> Vec<String> {
    let all = 2 * work.pairs;
    let missing = all - rows;
    let pretended = (!args.as_siblings.is_empty()).then(|| {
        format!(
            "CPUs {a} and {b} were treated as if they shared a core; the model holds for the units that \
             they really share"
        )
    });
    let missing = (missing > 0).then(|| {
        format!(
            "{missing} of {all} rows are missing, because one of their threads did nothing or was \
             never sampled; {more}"
        )
    });
    pretended.into_iter().chain(missing).collect()
}
