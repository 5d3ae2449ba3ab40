//! From the exits and counts of commands to the use of resources that the analysis takes.

use super::{CommandExit, MappingRun, ProcessCounts};
use consort_core::Signal;
use consort_core::mapping::analysis::{
    AloneCharacteristics, AloneCounts, Amount, SharedResource, Usage,
};
use std::collections::BTreeMap;

/// Causes in cycle stacks, as counters and samples name them, with the resource of each.
const CAUSES: [(&str, SharedResource); 2] = [
    ("memory", SharedResource::L2),
    ("front_end", SharedResource::L1i),
];

/// Returns a program's mean use per run, over all times that it ended in `runs`, on a machine of
/// `pus` PUs; `None` if it never ended. Signals that are not counted are absent: CPU time does not
/// stand in for cycles, nor stall time for misses.
pub(super) fn mean_usage(runs: &[MappingRun], program: usize, pus: usize) -> Option<Usage> {
    let exits: Vec<&CommandExit> = program_exits(runs, program).collect();
    if exits.is_empty() {
        return None;
    }
    let time_s = exits.iter().map(|exit| exit.wall_s).sum::<f64>() / exits.len() as f64;
    let cpu_s = exits.iter().map(|exit| exit.cpu_s).sum::<f64>() / exits.len() as f64;
    let counts = ProgramCounts::from_runs(runs, program);
    let cycles = counts.mean(|process| process.sums.get(&Signal::Cycles));
    Some(Usage {
        time_s,
        cycles,
        utilisation: Some(cpu_s / (pus as f64 * time_s)),
        amounts: cycles.map_or_else(BTreeMap::new, |cycles| {
            counts.amounts(cycles / (1e9 * cpu_s))
        }),
        memory: None,
    })
}

/// Returns the characteristics of a program, from a run of it alone.
pub(super) fn characteristics(alone: &MappingRun) -> AloneCharacteristics {
    let alone = std::slice::from_ref(alone);
    let exits: Vec<&CommandExit> = program_exits(alone, 0).collect();
    let runs = exits.len().max(1) as f64;
    let counts = ProgramCounts::from_runs(alone, 0);
    AloneCharacteristics::from(&AloneCounts {
        time_s: exits.iter().map(|exit| exit.wall_s).sum::<f64>() / runs,
        instructions: counts.mean(|process| process.sums.get(&Signal::Instructions)),
        l2_misses: counts.mean(|process| process.sums.get(&Signal::LlcMisses)),
        switches: Some(exits.iter().map(|exit| exit.switches as f64).sum::<f64>() / runs),
        ..AloneCounts::default()
    })
}

fn program_exits(runs: &[MappingRun], program: usize) -> impl Iterator<Item = &CommandExit> {
    let all = runs.iter().flat_map(|run| &run.exits);
    all.filter(move |exit| exit.program == program)
}

/// Counts of the processes in which a program ran to its end.
struct ProgramCounts<'a>(Vec<&'a ProcessCounts>);

impl<'a> ProgramCounts<'a> {
    fn from_runs(runs: &'a [MappingRun], program: usize) -> Self {
        let mut processes = Vec::new();
        for run in runs {
            let exits = run.exits.iter().filter(|exit| exit.program == program);
            processes.extend(exits.filter_map(|exit| run.counts.get(&exit.pid)));
        }
        Self(processes)
    }

    /// Returns the mean of a count per process; `None` if no process has it.
    fn mean(&self, count: impl Fn(&ProcessCounts) -> Option<&f64>) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(|p| count(p).copied()).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// `cycles_per_ns` are in a ns of CPU time.
    fn amounts(&self, cycles_per_ns: f64) -> BTreeMap<SharedResource, Amount> {
        let mut amounts = BTreeMap::new();
        for (cause, resource) in CAUSES {
            if let Some(ns) = self.mean(|process| process.stack_ns.get(cause)) {
                let stall = ns * cycles_per_ns;
                let amount = Amount {
                    used: stall,
                    stall_cycles: Some(stall),
                };
                amounts.insert(resource, amount);
            }
        }
        // Counted misses replace the stall time by cause.
        if let Some(misses) = self.mean(|process| process.sums.get(&Signal::LlcMisses)) {
            let amount = Amount {
                used: misses,
                stall_cycles: self.mean(|process| process.sums.get(&Signal::LlcMissCycles)),
            };
            amounts.insert(SharedResource::L2, amount);
        }
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Tier;

    fn run(counts: ProcessCounts) -> MappingRun {
        let exit = |program, pid, wall_s, cpu_s| CommandExit {
            program,
            pid,
            wall_s,
            cpu_s,
            switches: 6,
            exit_code: 0,
        };
        MappingRun {
            exits: vec![
                exit(0, 7, 1.0, 1.5),
                exit(1, 8, 9.0, 1.0),
                exit(0, 9, 3.0, 2.5),
            ],
            counts: BTreeMap::from([(7, counts.clone()), (9, counts)]),
            tier: Tier::Proc,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn without_counters_only_times_remain() {
        let mut counts = ProcessCounts::default();
        counts.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = mean_usage(&[run(counts)], 0, 2).unwrap();
        assert_eq!((usage.time_s, usage.cycles), (2.0, None));
        assert_eq!(usage.utilisation, Some(0.5));
        assert!(usage.amounts.is_empty());
    }

    #[test]
    fn counts_are_per_run_and_in_cycles() {
        let mut counts = ProcessCounts::default();
        counts.sums.insert(Signal::Cycles, 6e9);
        counts.stack_ns.insert("memory".to_owned(), 1e9);
        let usage = mean_usage(&[run(counts)], 0, 2).unwrap();
        assert_eq!(usage.cycles, Some(6e9));
        assert_eq!(usage.amounts[&SharedResource::L2].stall_cycles, Some(3e9));
    }

    #[test]
    fn program_that_never_ended_has_no_usage() {
        assert_eq!(mean_usage(&[run(ProcessCounts::default())], 2, 2), None);
    }
}
