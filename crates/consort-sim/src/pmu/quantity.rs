//! Quantities that events count, taken from the truth.

use crate::engine::ThreadCounts;
use crate::machine::{MachineSpec, Quantity};

/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;

/// Bus that carries data from memory to the chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InterconnectBus {
    /// Bytes per line.
    line_bytes: f64,
    /// Bytes per ns.
    bandwidth_gb_s: f64,
}

impl InterconnectBus {
    /// The interconnect of a machine.
    fn from_machine(machine: &MachineSpec) -> Self {
        Self {
            line_bytes: f64::from(machine.memory.line_bytes),
            bandwidth_gb_s: machine.interconnect.bandwidth_gb_s,
        }
    }

    /// Core cycles in which the lines of a thread move.
    fn busy_cycles(self, truth: &ThreadCounts) -> f64 {
        if truth.on_pu_s <= 0.0 {
            return 0.0;
        }
        let busy_ns = truth.flow.memory_lines * self.line_bytes / self.bandwidth_gb_s;
        busy_ns * truth.cycles / (truth.on_pu_s * NS_PER_S)
    }
}

/// Cycles from the issue of an operation to its result, by what a stall is counted under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latencies {
    /// Integer operations.
    int: f64,
    branch: f64,
    /// Floating-point operations.
    fp: f64,
    /// Vector operations.
    vector: f64,
    /// Loads that hit the L1.
    load: f64,
}

impl Latencies {
    /// Those of a machine's cores, which are of one type where they matter.
    fn from_machine(machine: &MachineSpec) -> Option<Self> {
        let core = machine.core_types.values().next()?;
        let (int, fp) = (core.units.int.latency_cycles, core.units.fp.latency_cycles);
        let branch = core.units.branch.as_ref();
        let vector = core.units.vector.as_ref();
        Some(Self {
            int,
            branch: branch.map_or(int, |unit| unit.latency_cycles),
            fp,
            vector: vector.map_or(fp, |unit| unit.latency_cycles),
            load: core.l1d.latency_cycles,
        })
    }
}

/// Properties of a machine on which its counts depend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MachineFacts {
    pub(super) bus: InterconnectBus,
    pub(super) latencies: Latencies,
}

impl MachineFacts {
    pub(super) fn from_machine(machine: &MachineSpec) -> Self {
        const NONE: Latencies = Latencies {
            int: 1.0,
            branch: 1.0,
            fp: 1.0,
            vector: 1.0,
            load: 1.0,
        };
        Self {
            bus: InterconnectBus::from_machine(machine),
            latencies: Latencies::from_machine(machine).unwrap_or(NONE),
        }
    }
}

/// Operations that the oldest group waits for when it does not wait for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AwaitedOperations {
    FixedPoint,
    FloatingPoint,
    Loads,
}

/// Cycles in which a thread's oldest group waits for operations of a kind: of the time that is
/// neither a completed group nor anything else, as much as its operations take of all operations'
/// latency (Little's law: so much of it has such an operation under way).
fn operation_wait_cycles(
    truth: &ThreadCounts,
    latencies: Latencies,
    kind: AwaitedOperations,
) -> f64 {
    let classes = &truth.classes;
    let fixed = classes.int * latencies.int + classes.branch * latencies.branch;
    let floating = classes.fp * latencies.fp + classes.vector * latencies.vector;
    let loads = classes.load * latencies.load;
    let of_kind = match kind {
        AwaitedOperations::FixedPoint => fixed,
        AwaitedOperations::FloatingPoint => floating,
        AwaitedOperations::Loads => loads,
    };
    let all = fixed + floating + loads;
    let share = if all > 0.0 { of_kind / all } else { 0.0 };
    share * (truth.stack.base + port_wait_cycles(truth) - truth.flow.groups).max(0.0)
}

/// Cycles in which operations wait for units and ports, co-runners' use of them included, and in
/// which they are seen too late because co-runners have a part of the window: to a PMU they are
/// there and not done.
fn port_wait_cycles(truth: &ThreadCounts) -> f64 {
    truth.stack.units + truth.flow.lost_port_cycles + truth.stack.window
}

/// Cycles in which nothing is there to dispatch because of fetch.
fn fetch_wait_cycles(truth: &ThreadCounts) -> f64 {
    truth.stack.fetch + truth.flow.lost_fetch_cycles
}

/// Cycles in which co-runners have what could dispatch.
fn slot_wait_cycles(truth: &ThreadCounts) -> f64 {
    let elsewhere = truth.flow.lost_fetch_cycles + truth.flow.lost_port_cycles;
    (truth.stack.dispatch - elsewhere).max(0.0)
}

/// Returns the amount of a quantity.
///
/// Spinning, for locks or siblings, and the switching of threads is work to a PMU, and what
/// co-runners take away looks like what it is that they take; the parts of the stack sum to the
/// cycles.
pub(super) fn amount(quantity: Quantity, truth: &ThreadCounts, facts: MachineFacts) -> f64 {
    let (flow, stack) = (&truth.flow, &truth.stack);
    let waiting = |kind| operation_wait_cycles(truth, facts.latencies, kind);
    match quantity {
        Quantity::Cycles => truth.cycles,
        Quantity::Instructions => truth.instructions + 6.0 * spin_iterations(truth),
        Quantity::FpuEmptyCycles => (truth.cycles - flow.fpu_busy_cycles).max(0.0),
        Quantity::FpOperations => truth.classes.fp,
        Quantity::L1dAccesses => flow.l1d_accesses + spin_iterations(truth),
        Quantity::L1dMisses => flow.l1d_misses,
        Quantity::L1iMisses => flow.l1i_misses,
        Quantity::L2Misses => flow.l2_misses,
        Quantity::L2DataMisses => flow.llc_accesses - flow.llc_code_accesses,
        Quantity::LlcMisses => flow.llc_misses,
        Quantity::LlcAccesses => flow.llc_accesses,
        Quantity::PrefetchedLines => flow.prefetched_lines,
        Quantity::MemoryLines => flow.memory_lines,
        Quantity::BurstReads => flow.llc_misses + flow.prefetched_lines + flow.code_lines,
        Quantity::CodeLines => flow.code_lines,
        Quantity::WrittenLines => flow.written_lines,
        Quantity::OutstandingCycles => flow.outstanding_cycles,
        Quantity::BusBusyCycles => facts.bus.busy_cycles(truth),
        Quantity::BusQueueCycles => stack.queue,
        Quantity::Branches => truth.classes.branch + 2.0 * spin_iterations(truth),
        Quantity::BranchMisses => flow.branch_misses,
        Quantity::BranchMissCycles => stack.branch + truth.relearn_cycles,
        Quantity::FetchStallCycles => fetch_wait_cycles(truth),
        Quantity::TlbMisses => flow.tlb_misses,
        Quantity::TlbWalkCycles => flow.tlb_walk_cycles,
        Quantity::StackBase => stack.base + stack.lock + cycles_without_progress(truth),
        Quantity::StackGroups => flow.groups + stack.lock + cycles_without_progress(truth),
        Quantity::StackUnits => port_wait_cycles(truth),
        Quantity::StackFixedPoint => waiting(AwaitedOperations::FixedPoint),
        Quantity::StackFloatingPoint => waiting(AwaitedOperations::FloatingPoint),
        Quantity::StackLoads => waiting(AwaitedOperations::Loads),
        Quantity::StackFetch => fetch_wait_cycles(truth),
        Quantity::StackBranch => stack.branch,
        Quantity::StackData => stack.l2 + stack.llc + stack.memory + stack.queue + stack.tlb,
        Quantity::StackCoRunners => slot_wait_cycles(truth),
        Quantity::LlcMissCycles => stack.memory + stack.queue,
        Quantity::UseDistances => flow.use_distance,
        Quantity::InOrderCycles => flow.in_order_cycles,
        Quantity::StackCompletion | Quantity::StackEmpty | Quantity::StackFinished => {
            let parts = merged_parts(quantity).iter();
            parts.map(|&part| amount(part, truth, facts)).sum()
        }
    }
}

/// The parts that an event for several counts together; none for any other.
pub(super) fn merged_parts(quantity: Quantity) -> &'static [Quantity] {
    match quantity {
        Quantity::StackCompletion => &[
            Quantity::StackFixedPoint,
            Quantity::StackFloatingPoint,
            Quantity::StackLoads,
            Quantity::StackData,
        ],
        Quantity::StackEmpty => &[Quantity::StackFetch, Quantity::StackBranch],
        _ => &[],
    }
}

/// Iterations of the loops in which a thread spun. One loads a flag that another thread sets, compares
/// it and branches, and counts, compares and branches (`parsec_barrier.cpp`): six instructions, two of
/// them branches, of which a core completes one per cycle.
fn spin_iterations(truth: &ThreadCounts) -> f64 {
    if truth.spin_s <= 0.0 {
        return 0.0;
    }
    truth.spin_s / truth.on_pu_s * truth.cycles / 2.0
}

/// Cycles without progress: context switches, exchanges of registers, spinning.
fn cycles_without_progress(truth: &ThreadCounts) -> f64 {
    (truth.cycles - truth.stack.total()).max(0.0)
}

/// The parts of the stack.
pub(super) const STACK: [Quantity; 6] = [
    Quantity::StackBase,
    Quantity::StackUnits,
    Quantity::StackFetch,
    Quantity::StackBranch,
    Quantity::StackData,
    Quantity::StackCoRunners,
];

/// The parts of the stack on chips that count completed groups.
pub(super) const GROUPED_STACK: [Quantity; 8] = [
    Quantity::StackGroups,
    Quantity::StackFixedPoint,
    Quantity::StackFloatingPoint,
    Quantity::StackLoads,
    Quantity::StackFetch,
    Quantity::StackBranch,
    Quantity::StackData,
    Quantity::StackCoRunners,
];

/// Parts of the stack that some PMUs count with one event for several.
pub(super) const MERGED: [Quantity; 3] = [
    Quantity::StackCompletion,
    Quantity::StackEmpty,
    Quantity::StackFinished,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::CpiStack;

    const LATENCIES: Latencies = Latencies {
        int: 1.0,
        branch: 1.0,
        fp: 6.0,
        vector: 2.0,
        load: 3.0,
    };

    fn facts(line_bytes: f64, bandwidth_gb_s: f64) -> MachineFacts {
        MachineFacts {
            bus: InterconnectBus {
                line_bytes,
                bandwidth_gb_s,
            },
            latencies: LATENCIES,
        }
    }

    fn truth() -> ThreadCounts {
        let stack = CpiStack {
            base: 1.0,
            units: 2.0,
            fetch: 4.0,
            branch: 8.0,
            l2: 16.0,
            llc: 32.0,
            memory: 64.0,
            queue: 128.0,
            tlb: 256.0,
            window: 512.0,
            dispatch: 1024.0,
            lock: 2048.0,
        };
        let mut counts = ThreadCounts {
            stack,
            cycles: 5000.0,
            ..ThreadCounts::default()
        };
        counts.flow.lost_fetch_cycles = 100.0;
        counts.flow.lost_port_cycles = 24.0;
        counts
    }

    #[test]
    fn the_parts_of_the_stack_sum_to_the_cycles() {
        let (truth, facts) = (truth(), facts(64.0, 10.0));
        let sum: f64 = STACK.iter().map(|&q| amount(q, &truth, facts)).sum();
        assert_eq!(sum, 5000.0);
        assert_eq!(
            amount(Quantity::StackBase, &truth, facts),
            1.0 + 2048.0 + 905.0
        );
        assert_eq!(amount(Quantity::BusBusyCycles, &truth, facts), 0.0);
        assert_eq!(amount(Quantity::StackCoRunners, &truth, facts), 900.0);
        assert_eq!(amount(Quantity::StackFetch, &truth, facts), 104.0);
        assert_eq!(amount(Quantity::StackUnits, &truth, facts), 538.0);
    }

    /// 800 instructions in groups of 8 are 100 cycles of completion; of the other 400 cycles of
    /// computing half go to floating point, as half of the latency does: 100·6 of 600 + 300 + 300.
    #[test]
    fn stalls_go_to_longest_operations() {
        let mut truth = ThreadCounts {
            cycles: 1000.0,
            instructions: 800.0,
            ..ThreadCounts::default()
        };
        truth.stack.base = 450.0;
        truth.stack.units = 50.0;
        truth.stack.memory = 500.0;
        truth.flow.groups = 100.0;
        (truth.classes.int, truth.classes.fp, truth.classes.load) = (300.0, 100.0, 100.0);
        let of = |quantity| amount(quantity, &truth, facts(64.0, 10.0));
        assert_eq!(of(Quantity::StackGroups), 100.0);
        assert_eq!(of(Quantity::StackFixedPoint), 100.0);
        assert_eq!(of(Quantity::StackFloatingPoint), 200.0);
        assert_eq!(of(Quantity::StackLoads), 100.0);
        assert_eq!(of(Quantity::StackCompletion), 900.0);
        let sum: f64 = GROUPED_STACK.iter().map(|&quantity| of(quantity)).sum();
        assert_eq!(sum, 1000.0);
    }

    /// By hand: half of 4e9 cycles are 1e9 iterations of two cycles.
    #[test]
    fn spinning_executes_instructions_and_branches() {
        let mut truth = ThreadCounts {
            on_pu_s: 2.0,
            spin_s: 1.0,
            cycles: 4e9,
            instructions: 1e9,
            ..ThreadCounts::default()
        };
        truth.flow.l1d_accesses = 3e8;
        let counted = |quantity| amount(quantity, &truth, facts(64.0, 8.0));
        assert_eq!(counted(Quantity::Instructions), 7e9);
        assert_eq!(counted(Quantity::Branches), 2e9);
        assert_eq!(counted(Quantity::L1dAccesses), 1.3e9);
    }

    #[test]
    fn a_bus_is_busy_for_as_long_as_its_lines_take() {
        let mut truth = ThreadCounts {
            on_pu_s: 1e-6,
            cycles: 2000.0,
            ..ThreadCounts::default()
        };
        truth.flow.memory_lines = 50.0;
        // 50 lines of 64 bytes at 8 bytes per ns are 400 ns, at 2 GHz 800 cycles.
        let busy = amount(Quantity::BusBusyCycles, &truth, facts(64.0, 8.0));
        assert!((busy - 800.0).abs() < 1e-9, "{busy}");
    }
}
