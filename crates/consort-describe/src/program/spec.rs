//! The format of a program file (`programs/*.toml`).
//!
//! A profile describes a program, not a chip: nothing in it may depend on a
//! machine or a co-runner. Every key has its unit in its name.

use super::branch::BranchSpec;
use super::code::{CodeSpec, FETCH_WIDTHS};
use super::ilp::{
    ChainSpec, FP_SCHEDULER, FpSchedulerSpec, ILP_WINDOWS, IlpSpec, UNEVENNESS, WAITING,
};
use crate::math::{interpolate, log2, pow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Capacities, KiB, at which the miss curves are given: powers of two from 8 KiB to 64 MiB.
pub const CURVE_KIB: [f64; 14] = [
    8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0,
    65536.0,
];

/// The window, in instructions, for which `mlp.value` is given.
pub const REFERENCE_WINDOW: f64 = 128.0;

/// A program with its phases and, where it has several, its threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// Name in workloads; the file's name without `.toml`.
    pub name: String,
    /// Description in a line.
    pub title: String,
    /// Suite it belongs to, for example `spec2006`.
    pub suite: String,
    /// Sources by the key with which comments behind the numbers cite them.
    pub sources: BTreeMap<String, String>,
    /// Page faults per 10^6 instructions, evenly over the run: first uses of pages; none without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_faults_per_minstr: Option<f64>,
    /// Phases in order; after the last comes the first.
    #[serde(rename = "phase")]
    pub phases: Vec<PhaseSpec>,
    /// Seeded variation within phases.
    #[serde(default)]
    pub burstiness: Option<Burstiness>,
    /// Use of several threads; a single thread without.
    #[serde(default)]
    pub threads: Option<ThreadsSpec>,
    /// Input and output.
    #[serde(default)]
    pub io: Option<IoSpec>,
    /// Number of processes that share its work, one after the other, for example one for each of
    /// several inputs; one without. Runs that do its work once start each of them anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
}

/// A stretch of execution with one behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Length, 10^9 instructions: of all threads together if they divide the program's work, else of
    /// each.
    pub length_ginstr: f64,
    /// Shares of instruction classes; they sum to 1.
    pub mix: MixSpec,
    /// Costs of fetching and dispatching its code.
    #[serde(default)]
    pub code: CodeSpec,
    /// Kinds of its short stretches, where they were measured; else they spread around `mix` as the
    /// traced programs' do.
    #[serde(default)]
    pub stretches: Option<Vec<StretchSpec>>,
    /// Parallelism of the instructions.
    pub ilp: IlpSpec,
    /// Branches.
    pub branch: BranchSpec,
    /// Data misses per kilo-instruction without prefetching, with LRU and lines of 64 bytes, at
    /// each of [`CURVE_KIB`]; non-increasing.
    pub data_mpki: Vec<f64>,
    /// Instruction misses per kilo-instruction with lines of 64 bytes at each of [`CURVE_KIB`];
    /// non-increasing.
    pub instruction_mpki: Vec<f64>,
    /// Data misses with lines of 128 bytes, where they were measured; else they follow from
    /// `data_mpki` and how much of the data is used in sequence.
    #[serde(default)]
    pub data_mpki_128: Option<Vec<f64>>,
    /// Instruction misses with lines of 128 bytes, likewise.
    #[serde(default)]
    pub instruction_mpki_128: Option<Vec<f64>>,
    /// Data misses per kilo-instruction that fixed sets add to `data_mpki`; none where it is missing.
    #[serde(default)]
    pub data_conflicts: Option<SetCurve>,
    /// Instruction misses that fixed sets add to `instruction_mpki`; where it is missing, those of
    /// lines that fall into sets at random.
    #[serde(default)]
    pub instruction_conflicts: Option<SetCurve>,
    /// Lines of code in caches in which each fetch also brings the next line, per kilo-instruction;
    /// where they are missing, as lines that fall into sets at random.
    #[serde(default)]
    pub next_lines: Option<NextLineSpec>,
    /// Overlap of long misses.
    pub mlp: MlpSpec,
    /// Effect of prefetchers on its misses.
    #[serde(default)]
    pub prefetch: PrefetchSpec,
    /// Written-back lines per line fetched from memory, 0 to 1.
    pub writeback_share: f64,
    /// Of the lines that miss beyond the TLB's reach, the share on a new page: 1 for random
    /// accesses, 1/64 for a stream over 4 KiB pages of 64-byte lines.
    pub page_spread: f64,
    /// Loads per kilo-instruction from another page of 4 KiB than as many as each of [`PAGES`] that
    /// were used last; none where it is missing.
    #[serde(default)]
    pub page_mpki: Option<[f64; PAGES.len()]>,
}

/// Numbers of pages for which loads from other pages are measured.
pub const PAGES: [f64; 8] = [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];

/// Lines of 64 bytes per kilo-instruction in caches of sets, at each of [`SET_KIB`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetCurve {
    /// In sets of four lines.
    pub four_ways: [f64; SET_KIB.len()],
    /// In sets of eight lines.
    pub eight_ways: [f64; SET_KIB.len()],
}

/// Lines of code in caches in which each fetch also brings the next line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NextLineSpec {
    /// Lines that are missing when they are wanted.
    pub missed: SetCurve,
    /// Next lines that were missing and are wanted right after they were requested.
    pub late: SetCurve,
}

/// Capacities for which conflicts are measured, KiB: those of cores' own caches.
pub const SET_KIB: [f64; 9] = [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];

impl SetCurve {
    /// Lines in a cache of so many bytes and ways: linear in the logarithm of the capacity, and in
    /// one over the ways. With more ways than eight as with eight, with fewer than four as with four.
    pub fn lines(&self, bytes: f64, ways: u32) -> f64 {
        let [four, eight] = [&self.four_ways, &self.eight_ways]
            .map(|points| interpolate(&SET_KIB, points, bytes / 1024.0));
        eight + (8.0 / f64::from(ways.clamp(4, 8)) - 1.0) * (four - eight)
    }

    /// The same of misses that conflicts add. They end at twice the largest capacity, and fall as
    /// ways beyond eight grow (the variance of the lines in a set, over the square of its ways;
    /// Smith, IEEE TSE 1978).
    pub fn conflicts(&self, bytes: f64, ways: u32) -> f64 {
        let last = 1024.0 * SET_KIB[SET_KIB.len() - 1];
        let beyond = (1.0 - log2(bytes / last)).clamp(0.0, 1.0);
        let share = (8.0 / f64::from(ways.max(1))).min(1.0);
        beyond * share * self.lines(bytes, ways)
    }
}

/// Shares of instruction classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// Floating point, scalar or packed.
    pub fp: f64,
    /// Integer SIMD.
    pub vector: f64,
    /// Integer and everything else.
    pub int: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Branches.
    pub branch: f64,
}

impl MixSpec {
    /// No instructions of any class.
    pub const NONE: Self = Self {
        fp: 0.0,
        vector: 0.0,
        int: 0.0,
        load: 0.0,
        store: 0.0,
        branch: 0.0,
    };

    /// The longest chain where it was not measured: operations as they are in the mix. With the
    /// latencies for which chains are told it takes 1.02 times as long as the traced programs' on
    /// average, and each is 16 percent off.
    fn chain(&self) -> ChainSpec {
        ChainSpec {
            plain: 1.0 - self.load - self.fp - self.vector,
            load: self.load,
            fp: self.fp,
            vector: self.vector,
            ..ChainSpec::default()
        }
    }
}

/// Mix of some of a phase's short stretches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StretchSpec {
    /// Share of the phase's instructions, 0 to 1; those of all stretches sum to 1.
    pub share: f64,
    /// Operations per instruction, at least 1.
    pub operations: f64,
    /// Taken branches per instruction, 0 to 1.
    pub taken: f64,
    /// Shares of operations by class; they sum to 1.
    pub mix: MixSpec,
    /// Share of the operations that are integer multiplications, a part of `mix.int`.
    #[serde(default)]
    pub multiply: f64,
    /// Share of the operations that are moves between vector registers, a part of `mix.vector`.
    #[serde(default)]
    pub moves: f64,
}

/// Mean of the 28 traced programs (`traces/`): taken branches per branch.
const TAKEN_SHARE: f64 = 0.58;
/// Mean of the traced programs: share of taken branches that are direct.
const DIRECT_SHARE: f64 = 0.76;
/// Bytes of an instruction where nothing says: always on POWER and Arm, about the mean on x86.
const INSTRUCTION_BYTES: f64 = 4.0;

impl PhaseSpec {
    /// Operations per instruction.
    pub fn operations(&self) -> f64 {
        self.code.operations.unwrap_or(1.0)
    }

    /// Taken branches per instruction.
    pub fn taken_branches(&self) -> f64 {
        self.code.taken.unwrap_or(TAKEN_SHARE * self.mix.branch)
    }

    /// Turns of fetch per instruction that bring at most `width` operations and end at a taken
    /// branch, if they were measured: linear in one over the width, as runs that are much longer
    /// than it have them, down to one turn per run.
    pub fn fetch_turns(&self, width: f64) -> Option<f64> {
        const LAST: usize = FETCH_WIDTHS.len() - 1;
        let turns = self.code.turns?;
        let after = FETCH_WIDTHS.partition_point(|&known| known < width);
        let inverse = 1.0 / width;
        let line = |(x, y): (f64, f64), (to_x, to_y): (f64, f64)| {
            y + (to_y - y) * (inverse - x) / (to_x - x)
        };
        let point = |at: usize| (1.0 / FETCH_WIDTHS[at], turns[at]);
        Some(match after {
            0 => line(point(1), point(0)),
            at if at > LAST => line((0.0, self.taken_branches().min(turns[LAST])), point(LAST)),
            at => line(point(at), point(at - 1)),
        })
    }

    /// Share of the taken branches whose targets are in the instructions, 0 to 1.
    pub fn direct_share(&self) -> f64 {
        self.code.direct.unwrap_or(DIRECT_SHARE)
    }

    /// Bytes of code per instruction.
    pub fn code_bytes(&self) -> f64 {
        self.code.bytes.unwrap_or(INSTRUCTION_BYTES)
    }

    /// Share of loads and stores that are of floating-point or vector registers, 0 to 1.
    pub fn vector_accesses(&self) -> f64 {
        let mix = &self.mix;
        let computing = mix.fp + mix.vector + mix.int;
        let share = if computing > 0.0 {
            (mix.fp + mix.vector) / computing
        } else {
            0.0
        };
        self.code.vector_accesses.unwrap_or(share)
    }

    /// Unevenness, 0 to 1: the traced mean by default. `wide` is as in [`IlpSpec::miss_cost`].
    pub fn unevenness(&self, wide: f64) -> f64 {
        let narrow = self.ilp.unevenness.unwrap_or(UNEVENNESS);
        let widest = self.ilp.wide_unevenness.unwrap_or(narrow);
        narrow + wide * (widest - narrow)
    }

    /// Share of the instructions in a window that wait for operands, 0 to 1.
    pub fn waiting_share(&self) -> f64 {
        self.ilp.waiting.unwrap_or(WAITING)
    }

    /// Returns the operations that wait in a floating-point scheduler, the traced mean by default.
    pub fn fp_scheduler(&self) -> FpSchedulerSpec {
        self.ilp.fp_scheduler.unwrap_or(FP_SCHEDULER)
    }

    /// Returns the composition of the longest chain, as described or as it follows from the mix.
    pub fn chain(&self) -> ChainSpec {
        self.ilp.chain.unwrap_or_else(|| self.mix.chain())
    }
}

/// Memory-level parallelism: long misses that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MlpSpec {
    /// Long misses that overlap in a window of [`REFERENCE_WINDOW`] instructions; at least 1.
    pub value: f64,
    /// Exponent of its growth: MLP(w) = max(1, value·(w/reference)^exponent).
    pub window_exponent: f64,
    /// Long misses that overlap in windows of each of [`ILP_WINDOWS`], where they were measured;
    /// they come before the law.
    #[serde(default)]
    pub measured: Option<[f64; ILP_WINDOWS.len()]>,
}

impl MlpSpec {
    /// Returns the long misses that overlap in a window of so many instructions; below 1 where the
    /// law says so.
    pub fn overlap_at(&self, window: f64) -> f64 {
        match &self.measured {
            Some(points) => interpolate(&ILP_WINDOWS, points, window),
            None => self.value * pow(window / REFERENCE_WINDOW, self.window_exponent),
        }
    }

    /// Returns the smallest window, at most `most` instructions, in which so many long misses
    /// overlap.
    pub fn window_for(&self, misses: f64, most: f64) -> f64 {
        if misses >= self.overlap_at(most) {
            return most;
        }
        // Both laws rise with the window; 40 halvings of its logarithm are exact to a millionth.
        let (mut low, mut high) = (1.0, most.max(1.0));
        for _ in 0..40 {
            let middle = f64::sqrt(low * high);
            if self.overlap_at(middle) < misses {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Effect of prefetchers of full coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Share of memory misses that prefetching removes; negative when it adds misses. What it
    /// removes follows a stream, so lines longer than 64 bytes save it too.
    pub effectiveness: f64,
    /// Lines fetched in vain, per line that would miss without prefetching.
    pub excess: f64,
}

/// An auto-correlated variation: every `interval_ginstr` a factor with mean 1 and log-normal
/// distribution scales misses per instruction and the length of dependence chains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burstiness {
    /// Standard deviation of the factor's logarithm.
    pub log_sd: f64,
    /// Correlation of successive factors' logarithms, 0 to below 1.
    pub correlation: f64,
    /// Instructions between two draws, 10^9.
    pub interval_ginstr: f64,
}

/// Use of several threads by a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadsSpec {
    /// Threads when a workload does not say.
    pub default: u32,
    /// Most threads that it can use; equal to `default` when it is not malleable.
    pub max: u32,
    /// True where the work of one run is divided among the threads (strong scaling); else each
    /// thread does all of it.
    #[serde(default = "yes")]
    pub divide_work: bool,
    /// Share of the program's instructions that only its first thread executes, 0 to 1.
    #[serde(default)]
    pub serial_share: f64,
    /// Share of the data footprint that all threads use, 0 to 1.
    #[serde(default)]
    pub shared_data: f64,
    /// Share of the code that all threads use, 0 to 1; copies of the program use it too.
    #[serde(default = "all")]
    pub shared_code: f64,
    /// Barriers.
    #[serde(default)]
    pub barrier: Option<BarrierSpec>,
    /// Locks.
    #[serde(default)]
    pub lock: Option<LockSpec>,
    /// Time that a waiting thread spins before it leaves its CPU, µs.
    #[serde(default)]
    pub spin_us: f64,
    /// Stages of a pipeline that do unlike work, one per group of threads; empty when all threads
    /// are alike.
    #[serde(default, rename = "stage")]
    pub stages: Vec<StageSpec>,
}

fn yes() -> bool {
    true
}

fn all() -> f64 {
    1.0
}

/// Barriers that all threads of the program meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BarrierSpec {
    /// Mean instructions of one thread between barriers, 10^6.
    pub spacing_minstr: f64,
    /// Standard deviation of a thread's work between two barriers, relative to its mean.
    pub imbalance: f64,
    /// Share of the variance of a thread's work that is the same at all barriers of a run, 0 to 1: a
    /// thread with more work than its siblings is then late again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<f64>,
    /// Threads with which the spacing is what it is. Where the program divides its work, as many
    /// barriers are then spread over each thread's part with other numbers of threads; without this
    /// key the spacing is the same with any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_threads: Option<u32>,
}

/// Locks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockSpec {
    /// Acquisitions per 10^6 instructions of a thread.
    pub per_minstr: f64,
    /// Instructions while it is held.
    pub hold_instr: f64,
    /// Number of locks, at most 65,536; acquisitions spread evenly.
    pub count: u32,
}

/// One stage of a pipelined program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageSpec {
    /// Name, which its threads bear.
    pub name: String,
    /// Share of the program's threads, relative to the other stages'.
    pub thread_share: f64,
    /// Work per item relative to the mean stage.
    pub work: f64,
    /// The stage's own mix, if it is unlike the phase's.
    #[serde(default)]
    pub mix: Option<MixSpec>,
}

/// Input and output of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IoSpec {
    /// Operations per 10^9 instructions of a thread.
    pub per_ginstr: f64,
    /// Mean time that the thread is blocked, µs; exponentially distributed.
    pub blocked_us: f64,
}

/// Short stretches are as long as what buffers between fetch, dispatch and ports even out. They are
/// needed because a mean hides limits that bind in turn.
///
/// Medians of the 28 traced programs: deviation over the mean, from one stretch of 64 instructions to
/// another, of accesses to memory per operation, and of taken branches per instruction. The two
/// hardly go together (mean correlation -0.03).
const ACCESSES: f64 = 0.22;
const TAKEN: f64 = 0.31;
/// Share of a stretch's operations that are accesses and branches, at most, where it is derived.
const MOST: f64 = 0.9;

impl PhaseSpec {
    /// Returns its stretches: as measured; else four kinds, with more and fewer accesses and more
    /// and fewer branches than the mean, by as much as the traced programs' deviate.
    pub fn stretches_or_default(&self) -> Vec<StretchSpec> {
        if let Some(measured) = &self.stretches {
            return measured.clone();
        }
        let mix = &self.mix;
        let (accesses, branches) = (mix.load + mix.store, mix.branch);
        let more = accesses * ACCESSES + branches * TAKEN;
        let room = MOST - accesses - branches;
        let narrow = (room / more.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let kinds = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)];
        let factor = |sign: f64, deviation: f64| 1.0 + sign * narrow * deviation;
        let each = kinds.map(|(a, t)| self.stretch(factor(a, ACCESSES), factor(t, TAKEN)));
        each.to_vec()
    }

    /// A quarter of its stretches, with so many times the mean accesses and branches.
    fn stretch(&self, accesses: f64, branches: f64) -> StretchSpec {
        let mix = &self.mix;
        let (load, store) = (mix.load * accesses, mix.store * accesses);
        let branch = mix.branch * branches;
        let computing = mix.fp + mix.vector + mix.int;
        let left = 1.0 - load - store - branch;
        let part = |share: f64| {
            if computing > 0.0 {
                share / computing * left
            } else {
                0.0
            }
        };
        StretchSpec {
            share: 0.25,
            operations: self.operations(),
            taken: (self.taken_branches() * branches).min(1.0),
            mix: MixSpec {
                fp: part(mix.fp),
                vector: part(mix.vector),
                int: part(mix.int),
                load,
                store,
                branch,
            },
            multiply: 0.0,
            moves: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramSpec;
    use proptest::prelude::*;

    fn phase(mix: MixSpec) -> PhaseSpec {
        let program = include_str!("../../tests/small/program.toml");
        let mut program: ProgramSpec = toml::from_str(program).unwrap();
        program.phases[0].mix = mix;
        program.phases.swap_remove(0)
    }

    proptest! {
        #[test]
        fn stretches_that_are_derived_have_the_mean_mix(
            shares in prop::array::uniform6(0.0f64..1.0),
        ) {
            let sum = shares.iter().sum::<f64>().max(1e-9);
            let [fp, vector, int, load, store, branch] = shares.map(|share| share / sum);
            let phase = phase(MixSpec { fp, vector, int, load, store, branch });
            let all = phase.stretches_or_default();
            let mean = |of: fn(&StretchSpec) -> f64| {
                all.iter().map(|each| each.share * of(each)).sum::<f64>()
            };
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            prop_assert!(near(mean(|_| 1.0), 1.0));
            prop_assert!(near(mean(|s| s.mix.load), load) && near(mean(|s| s.mix.store), store));
            prop_assert!(near(mean(|s| s.mix.branch), branch) && near(mean(|s| s.mix.int), int));
            prop_assert!(near(mean(|s| s.taken), phase.taken_branches()));
            let least = |s: &StretchSpec| [s.mix.fp, s.mix.vector, s.mix.int, s.mix.load, s.taken];
            prop_assert!(all.iter().flat_map(least).all(|share| share >= 0.0));
        }
    }
}
