//! Workloads under thread mappings.

use crate::compare::experiment;
use crate::failure::Failure;
use crate::machine::AskedMachine;
use crate::run::{interruptible, workers};
use crate::studies::Study;
use crate::workload::AskedWorkload;
use consort_core::mapping::MappingScheme;
use consort_core::mapping::analysis::Thresholds;
use consort_experiment::mapping::{MappingSweep, NamedMapping, OS, characterise};
use consort_experiment::{Experiment, NOT_MODELLED};
use consort_experiment::{ExperimentContext, Scale};
use consort_lab::StudyReport;
use consort_lab::mapping::Analysis;
use consort_sim::workload::ProgramInstance;
use pyo3::prelude::*;
use std::num::NonZeroUsize;

/// Runs a workload under thread mappings and tells which is best and which resource decides.
///
/// :param machine: a Machine, or its name
/// :param workload: a Workload, an expression such as "streamcluster@4+facesim@4", or programs
/// :param mappings: "os", "iso", "int" and "spr", in the order of rows; times refer to the first
/// :param runs: repetitions of each mapping, with successive seeds
/// :param times: how often the longest program runs in each
/// :param alone_s: time that each program's work takes alone, s
/// :param os: model of the operating system beneath the mappings
/// :param seed: seed of all randomness
/// :param jobs: worker threads; all PUs if None
/// :raises InputError: what was wrong
#[pyfunction]
#[pyo3(signature = (machine, workload, mappings = None, *, runs = 1, times = 3, alone_s = 1.0,
    os = "linux", seed = 1, jobs = None))]
#[expect(clippy::too_many_arguments, reason = "Python has them by name")]
pub(crate) fn map(
    py: Python<'_>,
    machine: AskedMachine<'_>,
    workload: AskedWorkload<'_>,
    mappings: Option<Vec<String>>,
    runs: usize,
    times: u32,
    alone_s: f64,
    os: &str,
    seed: u64,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Study> {
    let (experiment, case) = experiment(machine, workload, alone_s, None)?;
    let usual = || [OS, "iso", "int", "spr"].map(str::to_owned).to_vec();
    let names = mappings.unwrap_or_else(usual);
    let held = names.iter().map(|name| held(name, os));
    let sweep = MappingSweep {
        chip: experiment.chip.clone(),
        workloads: vec![experiment.workload.clone()],
        held: held.collect::<Result<_, _>>()?,
        alone_s: experiment.alone_s,
        times,
        runs,
    };
    let report = interruptible(py, move |_| {
        let context = ExperimentContext::new(seed, Scale::Full, workers(jobs), &|_| ());
        report(&experiment, &sweep, case, &context)
    })?;
    Ok(report.into())
}

fn held(name: &str, os: &str) -> Result<NamedMapping, Failure> {
    if name == OS {
        return Ok(NamedMapping::from_os(os)?);
    }
    let scheme: MappingScheme = name.parse().map_err(|_| {
        let known = MappingScheme::ALL.iter().map(|scheme| scheme.name());
        let hint = consort_core::hint(name, [OS].into_iter().chain(known));
        Failure::Input(format!("unknown mapping '{name}'; {hint}"))
    })?;
    Ok(NamedMapping::from_scheme(scheme, os)?)
}

fn report(
    experiment: &Experiment,
    sweep: &MappingSweep,
    case: String,
    context: &ExperimentContext<'_>,
) -> Result<StudyReport, Failure> {
    let kinds = kinds(&experiment.workload.entries);
    let alone = characterise(&sweep.chip, &kinds, sweep.alone_s, context)?;
    let measured = sweep.measure(context)?;
    let names = kinds.iter().map(|entry| entry.name.clone());
    let mappings = sweep.held.iter().map(|held| held.name().to_owned());
    let left = NOT_MODELLED
        .iter()
        .map(|(what, why)| format!("{what} ({why})"));
    let left: Vec<String> = left.collect();
    let analysis = Analysis::new(
        mappings.collect(),
        measured.table(),
        names.zip(alone).collect(),
        &Thresholds {
            varies: 0.05,
            moves: 0.05,
        },
        &format!("the simulation does not model {}", left.join(", ")),
    );
    let mut output = analysis.output(sweep.runs)?;
    output.notes.extend(measured.given_up);
    Ok(StudyReport {
        study: "map".to_owned(),
        title: format!("Thread mappings of {case}"),
        source: "Wang, Dey, Mars, Tang, Davidson, Soffa, ISPASS 2012".to_owned(),
        section: "method".to_owned(),
        original: String::new(),
        differs: "Simulated.".to_owned(),
        seed: context.seed(),
        scale: context.scale(),
        seconds: 0.0,
        mechanism: Vec::new(),
        output,
    })
}

/// One instance of each program: copies are alike.
fn kinds(entries: &[ProgramInstance]) -> Vec<ProgramInstance> {
    let mut kinds: Vec<ProgramInstance> = Vec::new();
    for entry in entries {
        let like = |known: &ProgramInstance| {
            known.program.name == entry.program.name && known.threads == entry.threads
        };
        if !kinds.iter().any(like) {
            kinds.push(entry.clone());
        }
    }
    kinds
}
