//! Totals of one thread over an interval, from which counters and energy are computed.
//!
//! Additive: the counts of an interval are the sum of the counts of its parts.

use crate::contention::{CpiStack, InstructionActivity, ThreadRates};
use crate::program::MixSpec;

/// Levels of caches: L1D, L2, LLC.
pub(crate) const LEVELS: usize = 3;

/// Totals of one thread over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadCounts {
    /// Time on a CPU, s.
    pub on_pu_s: f64,
    /// Of `on_pu_s`, time without progress: context switches, exchanges of registers, and calls of
    /// the kernel, s.
    pub overhead_s: f64,
    /// Of `overhead_s`, time in kernel mode, s.
    pub kernel_s: f64,
    /// Of `on_pu_s`, time spent spinning for siblings, s.
    pub spin_s: f64,
    /// Time runnable but not on a CPU, s.
    pub wait_s: f64,
    /// Time blocked: for siblings, for input and output, or paused, s.
    pub blocked_s: f64,
    /// Of `blocked_s`, time asleep at a barrier or a lock, s.
    pub asleep_s: f64,
    /// Of `blocked_s`, time in input and output, s.
    pub io_s: f64,
    /// Core cycles while on a CPU.
    pub cycles: f64,
    /// Instructions completed.
    pub instructions: f64,
    /// Instructions completed, by class.
    pub classes: MixSpec,
    /// Every [`InstructionActivity`] item in all, not per instruction.
    pub flow: InstructionActivity,
    /// Cycles of mispredictions because other programs had overwritten the thread's training of a
    /// branch predictor; spent as overhead, so in no cause of `stack`.
    pub relearn_cycles: f64,
    /// Of `stack`, cycles of misses after a move that warm caches would not have had.
    pub refill_cycles: f64,
    /// Cycles by cause, in all; they sum to the cycles in which the thread made progress.
    pub stack: CpiStack,
    /// Energy of its instructions and accesses, and its share of its core's static power, J.
    pub energy_j: f64,
    /// Number of times that it was switched in.
    pub context_switches: u64,
    /// Number of times that it was switched in on another CPU than its last.
    pub migrations: u64,
    /// Returns from futex calls to user mode: from waits, and from waking others.
    pub futex_returns: u64,
    /// Returns from blocking input and output to user mode.
    pub io_returns: u64,
    /// All returns from the kernel to user mode: those above, and those after being switched in and
    /// after ticks.
    pub user_returns: u64,
}

impl Default for ThreadCounts {
    fn default() -> Self {
        Self {
            on_pu_s: 0.0,
            overhead_s: 0.0,
            kernel_s: 0.0,
            spin_s: 0.0,
            wait_s: 0.0,
            blocked_s: 0.0,
            asleep_s: 0.0,
            io_s: 0.0,
            cycles: 0.0,
            instructions: 0.0,
            classes: MixSpec::NONE,
            flow: InstructionActivity::default(),
            relearn_cycles: 0.0,
            refill_cycles: 0.0,
            stack: CpiStack::default(),
            energy_j: 0.0,
            context_switches: 0,
            migrations: 0,
            futex_returns: 0,
            io_returns: 0,
            user_returns: 0,
        }
    }
}

impl ThreadCounts {
    pub(crate) fn execute(&mut self, instructions: f64, mix: &MixSpec, rates: &ThreadRates) {
        self.instructions += instructions;
        add_classes(&mut self.classes, mix, instructions);
        add_activity(&mut self.flow, &rates.flow, instructions);
        add_stack(&mut self.stack, &rates.stack, instructions);
    }

    pub(crate) fn add_kernel_time(&mut self, s: f64) {
        self.overhead_s += s;
        self.kernel_s += s;
    }

    /// Ends a loop that spun: the branch that leaves it is mispredicted. Its few cycles are part of
    /// `spin_s`.
    pub(crate) fn end_spin(&mut self) {
        self.flow.branch_misses += 1.0;
    }

    /// Adds another interval's counts.
    pub fn add(&mut self, other: &Self) {
        self.on_pu_s += other.on_pu_s;
        self.overhead_s += other.overhead_s;
        self.kernel_s += other.kernel_s;
        self.spin_s += other.spin_s;
        self.wait_s += other.wait_s;
        self.blocked_s += other.blocked_s;
        self.asleep_s += other.asleep_s;
        self.io_s += other.io_s;
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        add_classes(&mut self.classes, &other.classes, 1.0);
        add_activity(&mut self.flow, &other.flow, 1.0);
        self.relearn_cycles += other.relearn_cycles;
        self.refill_cycles += other.refill_cycles;
        add_stack(&mut self.stack, &other.stack, 1.0);
        self.energy_j += other.energy_j;
        self.context_switches += other.context_switches;
        self.migrations += other.migrations;
        self.futex_returns += other.futex_returns;
        self.io_returns += other.io_returns;
        self.user_returns += other.user_returns;
    }
}

/// A thread's counts since its start, in two parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadCounters {
    /// Since the last sample.
    pub(crate) recent: ThreadCounts,
    /// Before it.
    sampled: ThreadCounts,
}

impl ThreadCounters {
    pub(crate) fn total(&self) -> ThreadCounts {
        let mut total = self.sampled;
        total.add(&self.recent);
        total
    }

    /// Takes the counts since the last sample.
    pub(crate) fn take(&mut self) -> ThreadCounts {
        let counts = std::mem::take(&mut self.recent);
        self.sampled.add(&counts);
        counts
    }

    /// Returns to user mode from futex calls and blocking input and output.
    pub(crate) fn wait_returns(&self) -> u64 {
        let (a, b) = (&self.sampled, &self.recent);
        (a.futex_returns + a.io_returns) + (b.futex_returns + b.io_returns)
    }

    // What the state of caches and predictors follows from is whole numbers ([`whole`]): sums of parts
    // depend in their last bits on how time was divided, and a bit is enough for other events to follow.

    /// Branches completed, a whole number.
    pub(crate) fn branches(&self) -> f64 {
        whole(self.sampled.classes.branch + self.recent.classes.branch)
    }

    /// Instructions since the start, a whole number.
    pub(crate) fn instructions(&self) -> f64 {
        whole(self.recent.instructions + self.sampled.instructions)
    }

    /// Lines brought into each level of caches since the start, whole numbers.
    pub(crate) fn lines_brought(&self) -> [f64; LEVELS] {
        let (a, b) = (&self.recent.flow, &self.sampled.flow);
        [
            a.l1d_misses + b.l1d_misses,
            a.llc_accesses + b.llc_accesses,
            a.llc_misses + b.llc_misses + a.prefetched_lines + b.prefetched_lines,
        ]
        .map(whole)
    }
}

/// A whole number next to a count. What is counted is often a simple fraction when an event comes, so
/// the next number begins at none of them.
fn whole(count: f64) -> f64 {
    (count + 0.618).floor()
}

fn add_classes(sum: &mut MixSpec, mix: &MixSpec, n: f64) {
    sum.fp += mix.fp * n;
    sum.vector += mix.vector * n;
    sum.int += mix.int * n;
    sum.load += mix.load * n;
    sum.store += mix.store * n;
    sum.branch += mix.branch * n;
}

pub(super) fn add_activity(sum: &mut InstructionActivity, flow: &InstructionActivity, n: f64) {
    sum.l1d_accesses += flow.l1d_accesses * n;
    sum.l1d_misses += flow.l1d_misses * n;
    sum.l1i_misses += flow.l1i_misses * n;
    sum.l2_misses += flow.l2_misses * n;
    sum.llc_accesses += flow.llc_accesses * n;
    sum.llc_code_accesses += flow.llc_code_accesses * n;
    sum.llc_misses += flow.llc_misses * n;
    sum.prefetched_lines += flow.prefetched_lines * n;
    sum.code_lines += flow.code_lines * n;
    sum.written_lines += flow.written_lines * n;
    sum.memory_lines += flow.memory_lines * n;
    sum.outstanding_cycles += flow.outstanding_cycles * n;
    sum.branch_misses += flow.branch_misses * n;
    sum.tlb_misses += flow.tlb_misses * n;
    sum.tlb_walk_cycles += flow.tlb_walk_cycles * n;
    sum.fpu_busy_cycles += flow.fpu_busy_cycles * n;
    sum.fp_cycles += flow.fp_cycles * n;
    sum.lost_fetch_cycles += flow.lost_fetch_cycles * n;
    sum.lost_port_cycles += flow.lost_port_cycles * n;
    sum.groups += flow.groups * n;
    sum.use_distance += flow.use_distance * n;
    sum.in_order_cycles += flow.in_order_cycles * n;
}

pub(super) fn add_stack(sum: &mut CpiStack, stack: &CpiStack, n: f64) {
    sum.base += stack.base * n;
    sum.units += stack.units * n;
    sum.fetch += stack.fetch * n;
    sum.branch += stack.branch * n;
    sum.l2 += stack.l2 * n;
    sum.llc += stack.llc * n;
    sum.memory += stack.memory * n;
    sum.queue += stack.queue * n;
    sum.tlb += stack.tlb * n;
    sum.window += stack.window * n;
    sum.dispatch += stack.dispatch * n;
    sum.lock += stack.lock * n;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rates() -> ThreadRates {
        let mut rates = ThreadRates::default();
        rates.stack.base = 0.5;
        rates.stack.memory = 0.25;
        rates.flow.llc_misses = 0.01;
        rates
    }

    fn mix() -> MixSpec {
        MixSpec {
            fp: 0.25,
            int: 0.75,
            ..MixSpec::NONE
        }
    }

    fn executed(instructions: f64) -> ThreadCounts {
        let mut counts = ThreadCounts::default();
        counts.execute(instructions, &mix(), &rates());
        counts
    }

    #[test]
    fn last_bits_of_simple_fractions_decide_nothing() {
        for parts in 1..=16 {
            for count in (1..4 * parts).map(|n| f64::from(n) / f64::from(parts)) {
                assert_eq!(
                    whole(count * (1.0 - 1e-12)),
                    whole(count * (1.0 + 1e-12)),
                    "{count}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn parts_of_interval_sum_to_whole(a in 0.0f64..1e9, b in 0.0f64..1e9) {
            let mut sum = executed(a);
            sum.add(&executed(b));
            let whole = executed(a + b);
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-12 * (1.0 + y.abs());
            prop_assert!(near(sum.classes.int, whole.classes.int));
            prop_assert!(near(sum.flow.llc_misses, whole.flow.llc_misses));
            prop_assert!(near(sum.stack.total(), whole.stack.total()));
            prop_assert!(near(sum.instructions, whole.instructions));
        }
    }

    #[test]
    fn executed_instructions_count_by_class_and_cause() {
        let counts = executed(1000.0);
        assert_eq!(counts.classes.fp, 250.0);
        assert_eq!(counts.stack.memory, 250.0);
        assert_eq!(counts.flow.llc_misses, 10.0);
    }
}
