//! From what programs did on this machine to what the analysis asks for.

use super::plan::ProgramExit;
use super::watch::{MappingRun, ProcessCounts};
use consort_core::Signal;
use consort_core::mapping::analysis::{
    AloneCharacteristics, AloneCounts, Amount, SharedResource, Usage,
};
use std::collections::BTreeMap;

/// Causes of cycle stacks, as counters or samples tell them, by the resource that they are of.
const CAUSES: [(&str, SharedResource); 2] = [
    ("memory", SharedResource::L2),
    ("front_end", SharedResource::L1i),
];

/// Returns a program's mean use per run, over all times that it ended in `runs`, on a machine of
/// `pus` PUs; none where it never ended. What is not counted is left out: CPU time does not stand
/// in for cycles, nor stall time for misses.
pub(super) fn usage(runs: &[MappingRun], program: usize, pus: usize) -> Option<Usage> {
    let deeds: Vec<&ProgramExit> = program_runs(runs, program).collect();
    let mean = |of: fn(&ProgramExit) -> f64| {
        let sum: f64 = deeds.iter().map(|deed| of(deed)).sum();
        (!deeds.is_empty()).then(|| sum / deeds.len() as f64)
    };
    let (time_s, cpu_s) = (mean(|d| d.wall_s)?, mean(|d| d.cpu_s)?);
    let counted = ProgramCounts::from_runs(runs, program);
    let cycles = counted.sum(Signal::Cycles);
    Some(Usage {
        time_s,
        cycles,
        utilisation: Some(cpu_s / (pus as f64 * time_s)),
        amounts: cycles.map_or_else(BTreeMap::new, |cycles| {
            counted.amounts(cycles / (1e9 * cpu_s))
        }),
        memory: None,
    })
}

/// Returns the characteristics of a program, from runs of it alone.
pub(super) fn characteristics(alone: &MappingRun) -> AloneCharacteristics {
    let deeds: Vec<&ProgramExit> = program_runs(std::slice::from_ref(alone), 0).collect();
    let runs = deeds.len().max(1) as f64;
    let counted = ProgramCounts::from_runs(std::slice::from_ref(alone), 0);
    AloneCharacteristics::from(&AloneCounts {
        time_s: deeds.iter().map(|d| d.wall_s).sum::<f64>() / runs,
        instructions: counted.sum(Signal::Instructions),
        l2_misses: counted.sum(Signal::LlcMisses),
        switches: Some(deeds.iter().map(|d| d.switches as f64).sum::<f64>() / runs),
        ..AloneCounts::default()
    })
}

fn program_runs(runs: &[MappingRun], program: usize) -> impl Iterator<Item = &ProgramExit> {
    let all = runs.iter().flat_map(|run| &run.deeds);
    all.filter(move |deed| deed.program == program)
}

/// Counts of the processes in which a program ran to its end, per run.
struct ProgramCounts {
    seen: Vec<ProcessCounts>,
}

impl ProgramCounts {
    fn from_runs(runs: &[MappingRun], program: usize) -> Self {
        let in_run = |run: &MappingRun| -> Vec<ProcessCounts> {
            let mine = run.deeds.iter().filter(|deed| deed.program == program);
            mine.filter_map(|deed| run.seen.get(&deed.pid).cloned())
                .collect()
        };
        Self {
            seen: runs.iter().flat_map(in_run).collect(),
        }
    }

    /// Returns the mean sum of a signal per process; none where the signal is not told.
    fn sum(&self, signal: Signal) -> Option<f64> {
        let values: Vec<f64> = self
            .seen
            .iter()
            .filter_map(|seen| seen.sums.get(&signal).copied())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn stack_ns(&self, cause: &str) -> Option<f64> {
        let told = self.seen.iter().filter_map(|seen| seen.stack_ns.get(cause));
        let told: Vec<f64> = told.copied().collect();
        (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
    }

    /// `per_ns` cycles are in a ns of CPU time.
    fn amounts(&self, per_ns: f64) -> BTreeMap<SharedResource, Amount> {
        let mut amounts = BTreeMap::new();
        for (cause, resource) in CAUSES {
            if let Some(ns) = self.stack_ns(cause) {
                let stall = ns * per_ns;
                amounts.insert(
                    resource,
                    Amount {
                        used: stall,
                        stall_cycles: Some(stall),
                    },
                );
            }
        }
        if let Some(misses) = self.sum(Signal::LlcMisses) {
            let stall_cycles = self.sum(Signal::LlcMissCycles);
            amounts.insert(
                SharedResource::L2,
                Amount {
                    used: misses,
                    stall_cycles,
                },
            );
        }
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Tier;

    fn run(seen: ProcessCounts) -> MappingRun {
        let deed = |program, pid, wall_s, cpu_s| ProgramExit {
            program,
            pid,
            wall_s,
            cpu_s,
            switches: 6,
            exit_code: 0,
        };
        MappingRun {
            deeds: vec![
                deed(0, 7, 1.0, 1.5),
                deed(1, 8, 9.0, 1.0),
                deed(0, 9, 3.0, 2.5),
            ],
            seen: BTreeMap::from([(7, seen.clone()), (9, seen)]),
            tier: Tier::Proc,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn without_counters_there_are_times_and_nothing_in_place_of_cycles() {
        let mut seen = ProcessCounts::default();
        seen.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = usage(&[run(seen)], 0, 2).unwrap();
        assert_eq!((usage.time_s, usage.cycles), (2.0, None));
        assert_eq!(usage.utilisation, Some(0.5));
        assert!(usage.amounts.is_empty());
    }

    #[test]
    fn what_is_counted_is_per_run_and_in_cycles() {
        let mut seen = ProcessCounts::default();
        seen.sums.insert(Signal::Cycles, 6e9);
        seen.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = usage(&[run(seen)], 0, 2).unwrap();
        assert_eq!(usage.cycles, Some(6e9));
        assert_eq!(usage.amounts[&SharedResource::L2].stall_cycles, Some(3e9));
    }

    #[test]
    fn a_program_that_never_ended_has_no_usage() {
        assert_eq!(usage(&[run(ProcessCounts::default())], 2, 2), None);
    }
}
