//! From what the simulation counts to what the analysis asks for.

use crate::{ProgramCounters, RepeatedProgram};
use consort_core::mapping::analysis::{Amount, MemoryPath, SharedResource, Usage};
use consort_sim::contention::CpiStack;
use std::collections::BTreeMap;

/// Usage of a program per run on a machine of so many PUs. Stall cycles are those of the
/// simulation's cycle stack: data from the L2 and LLC count for the L1D that they missed, data
/// from idle memory for the shared cache, and queueing for the memory path. What branch predictors
/// learn again after strangers is among the branch predictor's.
pub fn usage(program: &RepeatedProgram, pus: usize) -> Usage {
    let counters = &program.counters;
    let each = program.per_run();
    Usage {
        time_s: program.time_s,
        cycles: Some(counters.cycles * each),
        utilisation: Some(counters.time.on_pu_s / (pus as f64 * program.span_s)),
        amounts: amounts(counters, each),
        memory: Some(MemoryPath {
            l2_misses: counters.llc_misses * each,
            outstanding_cycles: counters.outstanding_cycles * each,
            reads: (counters.memory.total() - counters.memory.writebacks) * each,
            instruction_fetches: counters.memory.fetches * each,
        }),
    }
}

fn amounts(counters: &ProgramCounters, each: f64) -> BTreeMap<SharedResource, Amount> {
    let stall = |names: &[&str]| {
        let parts = CpiStack::NAMES.iter().zip(counters.stack_cycles);
        let mine = parts.filter(|(name, _)| names.contains(name));
        Some(mine.map(|(_, cycles)| cycles).sum::<f64>() * each)
    };
    let amount = |used: f64, stall_cycles| Amount {
        used: used * each,
        stall_cycles,
    };
    BTreeMap::from([
        (
            SharedResource::L1d,
            amount(counters.l1d_misses, stall(&["l2", "llc"])),
        ),
        (
            SharedResource::L1i,
            amount(counters.l1i_misses, stall(&["fetch"])),
        ),
        (
            SharedResource::L2,
            amount(counters.llc_misses, stall(&["memory"])),
        ),
        (
            SharedResource::Prefetcher,
            amount(counters.memory.prefetches, None),
        ),
        (
            SharedResource::MemoryPath,
            amount(counters.memory.total(), stall(&["queue"])),
        ),
        (
            SharedResource::BranchPredictor,
            amount(
                counters.branch_misses,
                Some(counters.branch_miss_cycles * each),
            ),
        ),
        (
            SharedResource::Tlb,
            amount(counters.tlb_walks, stall(&["tlb"])),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_per_run() {
        let mut counters = ProgramCounters {
            instructions: 4e9,
            cycles: 8e9,
            llc_misses: 400.0,
            ..ProgramCounters::default()
        };
        counters.time.on_pu_s = 4.0;
        counters.stack_cycles[6] = 2e9;
        counters.branch_miss_cycles = 1e9;
        let program = RepeatedProgram {
            name: "a".to_owned(),
            threads: 4,
            runs: 4,
            time_s: 0.5,
            instructions: 1e9,
            counters,
            span_s: 2.0,
        };
        let usage = usage(&program, 4);
        assert_eq!((usage.cycles, usage.utilisation), (Some(2e9), Some(0.5)));
        let l2 = usage.amounts[&SharedResource::L2];
        assert_eq!((l2.used, l2.stall_cycles), (100.0, Some(5e8)));
        let branch = usage.amounts[&SharedResource::BranchPredictor];
        assert_eq!(branch.stall_cycles, Some(2.5e8));
    }
}
