//! Quantities that events count, taken from the truth.

use crate::engine::Counts;
use crate::machine::{MachineSpec, Quantity};

/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;

/// What carries memory's data to the chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bus {
    /// Bytes per line.
    pub line_bytes: f64,
    /// Bytes per ns.
    pub bandwidth_gb_s: f64,
}

impl Bus {
    /// The interconnect of a machine.
    pub fn of(machine: &MachineSpec) -> Self {
        Self {
            line_bytes: f64::from(machine.memory.line_bytes),
            bandwidth_gb_s: machine.interconnect.bandwidth_gb_s,
        }
    }

    /// Core cycles in which the lines of a thread move.
    fn busy_cycles(self, truth: &Counts) -> f64 {
        if truth.on_pu_s <= 0.0 {
            return 0.0;
        }
        let busy_ns = truth.flow.memory_lines * self.line_bytes / self.bandwidth_gb_s;
        busy_ns * truth.cycles / (truth.on_pu_s * NS_PER_S)
    }
}

/// How much of a quantity there was.
///
/// Spinning, for locks or siblings, and the switching of threads is work to a PMU,
/// and a window held by co-runners looks like dispatch taken by them; the parts of
/// the stack sum to the cycles.
pub(super) fn amount(quantity: Quantity, truth: &Counts, bus: Bus) -> f64 {
    let (flow, stack) = (&truth.flow, &truth.stack);
    match quantity {
        Quantity::Cycles => truth.cycles,
        Quantity::Instructions => truth.instructions,
        Quantity::FpuEmptyCycles => (truth.cycles - flow.fpu_busy_cycles).max(0.0),
        Quantity::FpOperations => truth.classes.fp,
        Quantity::L1dAccesses => flow.l1d_accesses,
        Quantity::L1dMisses => flow.l1d_misses,
        Quantity::L1iMisses => flow.l1i_misses,
        Quantity::L2Misses => flow.l2_misses,
        Quantity::LlcMisses => flow.llc_misses,
        Quantity::LlcAccesses => flow.llc_accesses,
        Quantity::PrefetchedLines => flow.prefetched_lines,
        Quantity::MemoryLines => flow.memory_lines,
        Quantity::BurstReads => flow.llc_misses + flow.prefetched_lines + flow.code_lines,
        Quantity::CodeLines => flow.code_lines,
        Quantity::WrittenLines => flow.written_lines,
        Quantity::OutstandingCycles => flow.outstanding_cycles,
        Quantity::BusBusyCycles => bus.busy_cycles(truth),
        Quantity::BusQueueCycles => stack.queue,
        Quantity::Branches => truth.classes.branch,
        Quantity::BranchMisses => flow.branch_misses,
        Quantity::BranchMissCycles => stack.branch + truth.relearn_cycles,
        Quantity::FetchStallCycles => stack.fetch,
        Quantity::TlbMisses => flow.tlb_misses,
        Quantity::TlbWalkCycles => flow.tlb_walk_cycles,
        Quantity::StackBase => stack.base + stack.lock + besides(truth),
        Quantity::StackUnits => stack.units,
        Quantity::StackFetch => stack.fetch,
        Quantity::StackBranch => stack.branch,
        Quantity::StackData => stack.l2 + stack.llc + stack.memory + stack.queue + stack.tlb,
        Quantity::StackCoRunners => stack.window + stack.dispatch,
        Quantity::LlcMissCycles => stack.memory + stack.queue,
        Quantity::UseDistances => flow.use_distance,
        Quantity::InOrderCycles => flow.in_order_cycles,
        Quantity::StackCompletion | Quantity::StackEmpty | Quantity::StackFinished => {
            let parts = of_several(quantity).iter();
            parts.map(|&part| amount(part, truth, bus)).sum()
        }
    }
}

/// The parts that an event for several counts together; none for any other.
pub(super) fn of_several(quantity: Quantity) -> &'static [Quantity] {
    match quantity {
        Quantity::StackCompletion => &[Quantity::StackUnits, Quantity::StackData],
        Quantity::StackEmpty => &[Quantity::StackFetch, Quantity::StackBranch],
        _ => &[],
    }
}

/// Cycles without progress: context switches, exchanges of registers, spinning.
fn besides(truth: &Counts) -> f64 {
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

/// Parts of the stack that some PMUs count with one event for several.
pub(super) const MERGED: [Quantity; 3] = [
    Quantity::StackCompletion,
    Quantity::StackEmpty,
    Quantity::StackFinished,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::Stack;

    #[test]
    fn the_parts_of_the_stack_sum_to_the_cycles() {
        let stack = Stack {
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
        let truth = Counts {
            stack,
            cycles: 5000.0,
            ..Counts::default()
        };
        let bus = Bus {
            line_bytes: 64.0,
            bandwidth_gb_s: 10.0,
        };
        let sum: f64 = STACK.iter().map(|&q| amount(q, &truth, bus)).sum();
        assert_eq!(sum, 5000.0);
        assert_eq!(
            amount(Quantity::StackBase, &truth, bus),
            1.0 + 2048.0 + 905.0
        );
        assert_eq!(amount(Quantity::BusBusyCycles, &truth, bus), 0.0);
    }

    #[test]
    fn a_bus_is_busy_for_as_long_as_its_lines_take() {
        let mut truth = Counts {
            on_pu_s: 1e-6,
            cycles: 2000.0,
            ..Counts::default()
        };
        truth.flow.memory_lines = 50.0;
        let bus = Bus {
            line_bytes: 64.0,
            bandwidth_gb_s: 8.0,
        };
        // 50 lines of 64 bytes at 8 bytes per ns are 400 ns, at 2 GHz 800 cycles.
        let busy = amount(Quantity::BusBusyCycles, &truth, bus);
        assert!((busy - 800.0).abs() < 1e-9, "{busy}");
    }
}
