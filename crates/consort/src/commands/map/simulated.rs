//! Mappings on a simulated machine.

use super::{
    MapArgs, MappingChoice, MappingFindings, duration_notice, misplaced_option, parse_mappings,
};
use crate::commands::compare::refusal;
use crate::descriptions;
use crate::failure::say;
use anyhow::Result;
use consort_experiment::mapping::{MappingSweep, NamedMapping, SweepResults, characterise};
use consort_experiment::{ExperimentContext, ExperimentError, NOT_MODELLED};
use consort_lab::mapping::Analysis;
use consort_sim::workload::Workload;
use std::time::Instant;

pub(super) fn simulate_mappings(args: &MapArgs) -> Result<MappingFindings> {
    let text = args.workload.as_deref().ok_or_else(|| {
        let given = format!("{} is simulated and runs described programs", args.machine);
        misplaced_option(&given, "--workload, for example streamcluster@4+facesim@4")
    })?;
    let chip = descriptions::chip(&args.machine)?;
    let workload = descriptions::workload(text)?;
    let threads: Vec<usize> = workload
        .entries
        .iter()
        .map(|e| e.threads as usize)
        .collect();
    let (mappings, count) = parse_mappings(&args.mappings, args.bound, chip.topology(), &threads)?;
    let held = mappings.iter().map(|mapping| match mapping {
        MappingChoice::Os => NamedMapping::from_os(&args.os),
        MappingChoice::Scheme(scheme) => NamedMapping::from_scheme(*scheme, &args.os),
        MappingChoice::Fixed(mapping) => NamedMapping::from_mapping(mapping, &args.os),
    });
    let held: Vec<NamedMapping> = held.collect::<Result<_, _>>().map_err(refusal)?;
    let sweep = MappingSweep {
        chip,
        workloads: vec![workload],
        held,
        alone_s: args.alone.as_secs_f64(),
        times: args.times,
        runs: args.runs as usize,
    };
    let measured = args
        .jobs
        .run_experiment("runs", args.seed, false, |context| {
            measure(args, &sweep, context)
        });
    let (analysis, mut results) = measured.map_err(refusal)?;
    Ok(MappingFindings {
        machine: descriptions::label(&args.machine, &sweep.chip.spec().name),
        workload: sweep.workloads[0].text.clone(),
        tier: "simulated".to_owned(),
        count,
        analysis,
        times_s: results.times_s.swap_remove(0),
        notes: results.given_up,
    })
}

/// The analysis, and what it is based on.
fn measure(
    args: &MapArgs,
    sweep: &MappingSweep,
    context: &ExperimentContext<'_>,
) -> Result<(Analysis, SweepResults), ExperimentError> {
    let programs = distinct_programs(&sweep.workloads[0]);
    let begin = Instant::now();
    let alone = characterise(&sweep.chip, &programs.entries, sweep.alone_s, context)?;
    // All mappings on this host, estimated by the mean time that a program alone has taken.
    let each = begin.elapsed() / programs.entries.len().max(1) as u32;
    let instances = sweep.workloads[0].entries.len() as u32 * sweep.times;
    let runs = (sweep.held.len() * sweep.runs).div_ceil(args.jobs.workers().get());
    say(&duration_notice(
        (each * instances * runs as u32).as_secs_f64(),
    ));
    let measured = sweep.measure(context)?;
    let names = programs.entries.iter().map(|entry| entry.name.clone());
    let mappings = sweep.held.iter().map(|held| held.name().to_owned());
    let unmodelled: Vec<String> = { NOT_MODELLED.iter() }
        .map(|(what, why)| format!("{what} ({why})"))
        .collect();
    let analysis = Analysis::new(
        mappings.collect(),
        measured.table(),
        names.zip(alone).collect(),
        &args.thresholds(),
        &format!("the simulation does not model {}", unmodelled.join(", ")),
    );
    Ok((analysis, measured))
}

/// One instance of each program: copies are alike.
fn distinct_programs(workload: &Workload) -> Workload {
    let mut distinct = workload.clone();
    distinct.entries.clear();
    for entry in &workload.entries {
        let is_copy = distinct.entries.iter().any(|known| {
            known.program.name == entry.program.name && known.threads == entry.threads
        });
        if !is_copy {
            distinct.entries.push(entry.clone());
        }
    }
    distinct
}
