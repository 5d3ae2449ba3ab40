//! Counters of the threads of a program over a whole run: what studies explain their outcomes with.
//!
//! [`ProgramCounters`] has one field per resource that a PMU of the time of the study of thread mappings
//! (Wang et al., ISPASS 2012) could count, and what follows from several of them as functions.
//! Pitfall: some chips call L2 what is the LLC here because it is their last level, the Core 2 among
//! them; there `llc_misses` are what its L2 events count, and `l2_misses` equal what misses the L1D.

use consort_sim::contention::{CpiStack, InstructionActivity};
use consort_sim::engine::ThreadCounts;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Exact totals over a whole run, of all threads of a program or of several programs; what was
/// done after the program had finished its work and started again is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProgramCounters {
    /// Instructions completed.
    pub instructions: f64,
    /// Core cycles while on CPUs: executed cycles.
    pub cycles: f64,
    /// Accesses to the L1D.
    pub l1d_accesses: f64,
    /// Misses of the L1D.
    pub l1d_misses: f64,
    /// Misses of the L1I.
    pub l1i_misses: f64,
    /// Data misses of the L2; of the L1D if there is no L2.
    pub l2_misses: f64,
    /// Accesses to the LLC, of data and code.
    pub llc_accesses: f64,
    /// Accesses to the LLC of code.
    pub llc_code_accesses: f64,
    /// Misses of the LLC that were waited for.
    pub llc_misses: f64,
    /// Lines to and from memory.
    pub memory: Transactions,
    /// Core cycles during which lines of data were on their way from memory, summed over lines.
    pub outstanding_cycles: f64,
    /// Branches completed.
    pub branches: f64,
    /// Branches mispredicted.
    pub branch_misses: f64,
    /// Cycles that mispredicted branches cost: `branch` of the stack, and what learning again cost
    /// after strangers had used a predictor, which is in `overhead_s`.
    pub branch_miss_cycles: f64,
    /// Page walks.
    pub tlb_walks: f64,
    /// Cycles that page walks take, hidden ones included; what they cost is `tlb` of the stack.
    pub tlb_walk_cycles: f64,
    /// Cycles in which a floating-point operation of the thread was in the FPU.
    pub fpu_busy_cycles: f64,
    /// Time of the threads by activity.
    pub time: ThreadTime,
    /// Times that a thread was put on a CPU on which another, or none, had been.
    pub context_switches: u64,
    /// Times that a thread came onto another CPU than its last.
    pub migrations: u64,
    /// Cycles by cause, in the order of [`CpiStack::NAMES`]; together the cycles with progress.
    #[serde(serialize_with = "by_cause")]
    pub stack_cycles: [f64; 12],
}

/// Resources of real chips that PMUs count and the simulation does not model, each with what is
/// therefore missing. Reports contain this text instead of a number.
pub const NOT_MODELLED: [(&str, &str); 4] = [
    (
        "memory disambiguation",
        "loads never pass stores whose address is unknown, so none is replayed",
    ),
    (
        "reads for ownership",
        "misses of stores are reads like those of loads",
    ),
    (
        "invalidations",
        "no line is taken away because another cache writes it",
    ),
    (
        "input and output transactions",
        "input and output is time, and moves nothing over the memory path",
    ),
];

impl ProgramCounters {
    /// Adds what others did.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.cycles += other.cycles;
        self.l1d_accesses += other.l1d_accesses;
        self.l1d_misses += other.l1d_misses;
        self.l1i_misses += other.l1i_misses;
        self.l2_misses += other.l2_misses;
        self.llc_accesses += other.llc_accesses;
        self.llc_code_accesses += other.llc_code_accesses;
        self.llc_misses += other.llc_misses;
        self.memory.add(&other.memory);
        self.outstanding_cycles += other.outstanding_cycles;
        self.branches += other.branches;
        self.branch_misses += other.branch_misses;
        self.branch_miss_cycles += other.branch_miss_cycles;
        self.tlb_walks += other.tlb_walks;
        self.tlb_walk_cycles += other.tlb_walk_cycles;
        self.fpu_busy_cycles += other.fpu_busy_cycles;
        self.time.add(&other.time);
        self.context_switches += other.context_switches;
        self.migrations += other.migrations;
        for (sum, cycles) in self.stack_cycles.iter_mut().zip(other.stack_cycles) {
            *sum += cycles;
        }
    }

    /// Share of the cycles in which an operation of the thread was in the FPU, 0 to 1.
    pub fn fpu_busy(&self) -> f64 {
        self.fpu_busy_cycles / self.cycles
    }

    /// Cycles per instruction by cause, in the order of [`CpiStack::NAMES`].
    pub fn stack(&self) -> [f64; 12] {
        self.stack_cycles.map(|cycles| cycles / self.instructions)
    }

    /// Mean time of a line of data from request to arrival, core cycles: outstanding-request
    /// cycles / (burst reads − instruction fetches), Wang et al., ISPASS 2012. `None` if no data
    /// came from memory.
    pub fn memory_latency_cycles(&self) -> Option<f64> {
        let reads = self.memory.reads + self.memory.prefetches;
        (reads > 0.0).then(|| self.outstanding_cycles / reads)
    }

    /// Misses of the last level that were waited for, times the memory latency, cycles: L2MP of
    /// Wang et al., ISPASS 2012. `None` if no data came from memory.
    pub fn l2mp_cycles(&self) -> Option<f64> {
        Some(self.llc_misses * self.memory_latency_cycles()?)
    }
}

impl From<&ThreadCounts> for ProgramCounters {
    fn from(counts: &ThreadCounts) -> Self {
        let flow = &counts.flow;
        Self {
            instructions: counts.instructions,
            cycles: counts.cycles,
            l1d_accesses: flow.l1d_accesses,
            l1d_misses: flow.l1d_misses,
            l1i_misses: flow.l1i_misses,
            l2_misses: flow.l2_misses,
            llc_accesses: flow.llc_accesses,
            llc_code_accesses: flow.llc_code_accesses,
            llc_misses: flow.llc_misses,
            memory: Transactions::from(flow),
            outstanding_cycles: flow.outstanding_cycles,
            branches: counts.classes.branch,
            branch_misses: flow.branch_misses,
            branch_miss_cycles: counts.stack.branch + counts.relearn_cycles,
            tlb_walks: flow.tlb_misses,
            tlb_walk_cycles: flow.tlb_walk_cycles,
            fpu_busy_cycles: flow.fpu_busy_cycles,
            time: ThreadTime::from(counts),
            context_switches: counts.context_switches,
            migrations: counts.migrations,
            stack_cycles: counts.stack.to_array(),
        }
    }
}

fn by_cause<S: Serializer>(cycles: &[f64; 12], serializer: S) -> Result<S::Ok, S::Error> {
    let named: BTreeMap<&str, &f64> = CpiStack::NAMES.into_iter().zip(cycles).collect();
    named.serialize(serializer)
}

/// Time of threads, summed over them, s. A thread that has ended spends none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadTime {
    /// On CPUs.
    pub on_pu_s: f64,
    /// Of `on_pu_s`, spinning for siblings.
    pub spin_s: f64,
    /// Of `on_pu_s`, context switches and what strangers' turns made a branch predictor forget.
    pub overhead_s: f64,
    /// In run queues.
    pub queue_s: f64,
    /// Asleep until siblings let them go on, at barriers and locks.
    pub asleep_s: f64,
    /// In input and output.
    pub io_s: f64,
    /// Paused by a policy.
    pub paused_s: f64,
}

impl ThreadTime {
    /// Adds the time of others.
    pub fn add(&mut self, other: &Self) {
        self.on_pu_s += other.on_pu_s;
        self.spin_s += other.spin_s;
        self.overhead_s += other.overhead_s;
        self.queue_s += other.queue_s;
        self.asleep_s += other.asleep_s;
        self.io_s += other.io_s;
        self.paused_s += other.paused_s;
    }

    /// All of it, s.
    pub fn total_s(&self) -> f64 {
        self.on_pu_s + self.queue_s + self.asleep_s + self.io_s + self.paused_s
    }

    /// Share of the time that is on CPUs, 0 to 1: utilisation, as an operating system reckons it
    /// for threads that have a CPU each, spinning included. `None` if no time has passed.
    pub fn utilisation(&self) -> Option<f64> {
        let total_s = self.total_s();
        (total_s > 0.0).then(|| self.on_pu_s / total_s)
    }
}

impl From<&ThreadCounts> for ThreadTime {
    fn from(counts: &ThreadCounts) -> Self {
        let paused_s = counts.blocked_s - counts.asleep_s - counts.io_s;
        Self {
            on_pu_s: counts.on_pu_s,
            spin_s: counts.spin_s,
            overhead_s: counts.overhead_s,
            queue_s: counts.wait_s,
            asleep_s: counts.asleep_s,
            io_s: counts.io_s,
            // What rounding leaves of a difference is no time.
            paused_s: if paused_s > 1e-9 * counts.blocked_s {
                paused_s
            } else {
                0.0
            },
        }
    }
}

/// Lines between the last level of cache and memory, by why they moved. On a Core 2 the bus
/// carries `reads + prefetches + fetches` as burst reads (`BUS_TRANS_BRD`), `fetches` apart as
/// `BUS_TRANS_IFETCH`, `writebacks` as `BUS_TRANS_WB`, and all of them as `BUS_TRANS_MEM`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Transactions {
    /// Data that threads demanded and waited for.
    pub reads: f64,
    /// Data that prefetchers brought, of use or in vain.
    pub prefetches: f64,
    /// Code.
    pub fetches: f64,
    /// Written back.
    pub writebacks: f64,
}

impl Transactions {
    /// Adds what others moved.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.prefetches += other.prefetches;
        self.fetches += other.fetches;
        self.writebacks += other.writebacks;
    }

    /// All lines.
    pub fn total(&self) -> f64 {
        self.reads + self.prefetches + self.fetches + self.writebacks
    }

    /// Share of all lines that prefetchers brought, 0 to 1; `None` if nothing moved.
    pub fn prefetch_fraction(&self) -> Option<f64> {
        let total = self.total();
        (total > 0.0).then(|| self.prefetches / total)
    }
}

impl From<&InstructionActivity> for Transactions {
    fn from(flow: &InstructionActivity) -> Self {
        Self {
            reads: flow.llc_misses,
            prefetches: flow.prefetched_lines,
            fetches: flow.code_lines,
            writebacks: flow.written_lines,
        }
    }
}

/// The effect of prefetchers on a program, by the method of Wang et al., ISPASS 2012, Table III: the
/// program alone, once as the machine is and once with `prefetch=off`. All values are per instruction,
/// so the runs may differ in length, but they need the same seed, because bursts change misses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrefetchingEffect {
    /// Share of the last level's demand misses that it removes, at most 1; negative when it adds
    /// misses.
    pub effectiveness: f64,
    /// Lines that it brings in vain, per demand miss without it: what a profile calls `excess`.
    pub excess: f64,
    /// Lines of data that come from memory in addition, demanded and prefetched, per line without
    /// it; more than `excess` if it adds misses.
    pub additional: f64,
    /// Its share of all memory transactions, 0 to 1.
    pub fraction: f64,
}

impl PrefetchingEffect {
    /// Compares a program's counters with and without prefetchers; `None` if it misses nothing
    /// without them.
    pub fn compare(with: &ProgramCounters, without: &ProgramCounters) -> Option<Self> {
        let per = |amount: f64, run: &ProgramCounters| amount / run.instructions;
        let base = per(without.memory.reads, without);
        // False, too, for what is no number.
        if !(base > 0.0 && with.instructions > 0.0) {
            return None;
        }
        let demanded = per(with.memory.reads, with) / base;
        let prefetched = per(with.memory.prefetches, with) / base;
        let effectiveness = 1.0 - demanded;
        Some(Self {
            effectiveness,
            excess: prefetched - effectiveness.max(0.0),
            additional: demanded + prefetched - 1.0,
            fraction: with.memory.prefetch_fraction().unwrap_or(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, program};
    use consort_sim::contention::{Demand, RunningThread, Solver};
    use consort_sim::engine::ThreadCounts;
    use consort_sim::phase::Phase;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn counters(scale: f64) -> ProgramCounters {
        let mut counts = ThreadCounts {
            instructions: 2000.0 * scale,
            cycles: 4000.0 * scale,
            ..ThreadCounts::default()
        };
        counts.flow.l2_misses = 6.0 * scale;
        counts.flow.fpu_busy_cycles = 1000.0 * scale;
        counts.flow.llc_misses = 4.0 * scale;
        counts.flow.prefetched_lines = 12.0 * scale;
        counts.flow.code_lines = 1.0 * scale;
        counts.flow.written_lines = 3.0 * scale;
        counts.flow.outstanding_cycles = 3200.0 * scale;
        counts.stack.base = 1000.0 * scale;
        counts.stack.memory = 3000.0 * scale;
        ProgramCounters::from(&counts)
    }

    #[test]
    fn rates_are_per_instruction_and_cycle() {
        let one = counters(1.0);
        assert_eq!(one.fpu_busy(), 0.25);
        let stack: f64 = one.stack().iter().sum();
        assert_eq!(stack, 2.0);
    }

    #[test]
    fn memory_latency_counts_data_lines_only() {
        let one = counters(1.0);
        assert_eq!(one.memory.total(), 20.0);
        assert_eq!(one.memory.prefetch_fraction(), Some(0.6));
        assert_eq!(one.memory_latency_cycles(), Some(200.0));
        assert_eq!(one.l2mp_cycles(), Some(800.0));
        let none = ProgramCounters::default();
        assert_eq!(
            (none.memory_latency_cycles(), none.l2mp_cycles()),
            (None, None)
        );
        assert_eq!(none.memory.prefetch_fraction(), None);
    }

    #[test]
    fn causes_are_named_in_json() {
        let json = serde_json::to_value(counters(1.0)).unwrap();
        assert_eq!(json["stack_cycles"]["memory"], 3000.0);
        assert_eq!(json["stack_cycles"].as_object().unwrap().len(), 12);
    }

    proptest! {
        #[test]
        fn rates_of_sum_lie_between_parts(a in 0.1f64..10.0, b in 0.1f64..10.0) {
            let mut sum = counters(a);
            sum.add(&counters(b));
            let latency = sum.memory_latency_cycles().unwrap();
            prop_assert!((latency - 200.0).abs() < 1e-9);
            prop_assert!((sum.fpu_busy() - 0.25).abs() < 1e-12);
            prop_assert!((sum.stack().iter().sum::<f64>() - 2.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_parts_of_the_time_are_the_whole() {
        let counts = ThreadCounts {
            on_pu_s: 4.0,
            wait_s: 1.0,
            blocked_s: 3.0,
            asleep_s: 1.5,
            io_s: 0.5,
            ..ThreadCounts::default()
        };
        let mut time = ThreadTime::from(&counts);
        assert_eq!((time.paused_s, time.total_s()), (1.0, 8.0));
        assert_eq!(time.utilisation(), Some(0.5));
        time.add(&time.clone());
        assert_eq!((time.total_s(), time.utilisation()), (16.0, Some(0.5)));
        assert_eq!(ThreadTime::default().utilisation(), None);
    }

    /// A program's first phase, one thread alone, for a billion instructions.
    fn alone(machine: &str, name: &str) -> ProgramCounters {
        let demand = Demand {
            phase: Arc::new(Phase::new(&program(name).phases[0])),
            intensity: 1.0,
            program: 0,
            text: 0,
            shared_data: 0.0,
            shared_code: 0.0,
            lock: None,
            home_node: 0,
        };
        let running = [RunningThread {
            pu: 0,
            demand: &demand,
        }];
        let rates = Solver::new(chip(machine)).solve(&running).threads[0];
        ProgramCounters::from(&ThreadCounts {
            instructions: 1.0,
            flow: rates.flow,
            ..ThreadCounts::default()
        })
    }

    #[test]
    fn measured_prefetching_matches_the_profile() {
        for name in [
            "blackscholes",
            "bodytrack",
            "canneal",
            "facesim",
            "fluidanimate",
            "streamcluster",
            "swaptions",
            "vips",
            "x264",
        ] {
            let (with, without) = (
                alone("core2-q9550", name),
                alone("core2-q9550:prefetch=off", name),
            );
            let said = program(name).phases[0].prefetch;
            let Some(found) = PrefetchingEffect::compare(&with, &without) else {
                assert_eq!(without.memory.reads, 0.0, "{name}");
                continue;
            };
            assert_eq!(without.memory.prefetches, 0.0);
            assert!(
                (found.effectiveness - said.effectiveness).abs() < 1e-9,
                "{name} {found:?}"
            );
            assert!(
                (found.excess - said.excess).abs() < 1e-9,
                "{name} {found:?}"
            );
            let added = (-said.effectiveness).max(0.0);
            assert!(
                (found.additional - said.excess - added).abs() < 1e-9,
                "{name} {found:?}"
            );
        }
    }

    #[test]
    fn without_misses_there_is_nothing_to_compare() {
        let none = ProgramCounters::default();
        assert_eq!(PrefetchingEffect::compare(&none, &none), None);
    }
}
