//! Disadvantage that was learnt of each core, beside its latency of memory.

use super::super::symbiosis::asymmetry::{LEARNING, MACHINES, SymbiosisTrials};
use super::super::symbiosis::chip_with_memory;
use crate::frame::interval_cell;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_core::stats::mean;
use consort_data::{Cell, Figure, ReportTable};
use std::collections::BTreeSet;

/// A core of a machine.
pub(super) struct LearntCore {
    pub machine: &'static str,
    /// Cores of the machine that are in use.
    pub cores: usize,
    pub core: usize,
    pub node: usize,
    /// Idle latency of memory, mean over the nodes that have any, ns.
    pub memory_latency_ns: f64,
    /// Logarithm of its latency over the mean of all cores.
    pub expected: f64,
    /// Mean over runs of the disadvantage that was learnt in the end, by workload.
    pub learnt: Vec<f64>,
}

/// All cores of all machines.
pub(super) fn cores(trials: &SymbiosisTrials) -> Result<Vec<LearntCore>, StudyError> {
    let mut all = Vec::new();
    for (machine, (name, nodes)) in MACHINES.into_iter().enumerate() {
        for (_, group) in trials.groups().iter().filter(|(key, _)| key != "all") {
            let cores = trials.mixes[group[0]].cores;
            let truth = truth(cores, nodes)?;
            let logs: Vec<f64> = truth.iter().map(|(_, ns)| libm::log(*ns)).collect();
            let middle = mean(&logs).unwrap_or(0.0);
            for (core, (node, memory_latency_ns)) in truth.into_iter().enumerate() {
                let of_mix = |&mix: &usize| {
                    let trials = trials.trials_at(machine, mix, LEARNING).iter();
                    mean(
                        &trials
                            .filter_map(|t| t.heard.learnt[core])
                            .collect::<Vec<_>>(),
                    )
                };
                all.push(LearntCore {
                    machine: name,
                    cores,
                    core,
                    node,
                    memory_latency_ns,
                    expected: logs[core] - middle,
                    learnt: group.iter().filter_map(of_mix).collect(),
                });
            }
        }
    }
    Ok(all)
}

/// Node and latency of memory of each core.
fn truth(cores: usize, nodes: Option<&[u32]>) -> Result<Vec<(usize, f64)>, StudyError> {
    let chip = chip_with_memory(cores, nodes)?;
    let homes: BTreeSet<usize> = (0..chip.domains().nodes)
        .map(|node| chip.memory_node(node))
        .collect();
    let first = |core: usize| chip.places().iter().find(|place| place.core == core);
    let of = |core: usize| {
        let place = *first(core)?;
        let latencies = homes
            .iter()
            .map(|&home| chip.memory_latency_ns(place, home));
        Some((place.node, mean(&latencies.collect::<Vec<_>>())?))
    };
    Ok((0..cores).filter_map(of).collect())
}

pub(super) fn table(file: &StudyFile, cores: &[LearntCore]) -> Result<ReportTable, StudyError> {
    let row = |core: &LearntCore| {
        let cells: Vec<Cell> = vec![
            (core.node as u64).into(),
            core.memory_latency_ns.into(),
            interval_cell(&core.learnt),
            core.expected.into(),
        ];
        (
            format!("{}/{}/{}", core.machine, core.cores, core.core),
            cells,
        )
    };
    file.fill_table("learnt", cores.iter().map(row))
}

/// The cores of the largest machines.
pub(super) fn figure(
    file: &StudyFile,
    cores: &[LearntCore],
    runs: usize,
) -> Result<Figure, StudyError> {
    let most = cores.iter().map(|core| core.cores).max().unwrap_or(0);
    let series = MACHINES.map(|(machine, _)| {
        let of_machine = |core: &&LearntCore| core.cores == most && core.machine == machine;
        let own = cores.iter().filter(of_machine);
        (
            machine.to_owned(),
            own.map(|core| interval_cell(&core.learnt)).collect(),
        )
    });
    let groups = (0..most).map(|core| core.to_string()).collect();
    file.bar_figure("learnt", runs, groups, series)
}
