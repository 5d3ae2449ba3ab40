//! Input and output of the solver.

use crate::phase::Phase;
use crate::program::LockSpec;
use std::sync::Arc;

/// Demand of a thread on the CPU that it runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The phase that it is in.
    pub phase: Arc<Phase>,
    /// Factor on misses per instruction and on the length of dependence chains; 1 on average.
    pub intensity: f64,
    /// Threads with the same number are siblings.
    pub program: u32,
    /// Threads with the same number run the same binary, of which the system maps one copy for
    /// all, siblings or not.
    pub text: u32,
    /// Share of the data that siblings share, 0 to 1.
    pub shared_data: f64,
    /// Share of the code that threads of one binary share, 0 to 1.
    pub shared_code: f64,
    /// Locks that siblings contend for.
    pub lock: Option<LockSpec>,
    /// The node that its memory is on.
    pub home_node: usize,
}

/// A thread on a CPU. No CPU has two.
#[derive(Clone, Copy, Debug)]
pub struct RunningThread<'a> {
    /// Number of the CPU.
    pub pu: usize,
    /// Demand of the thread.
    pub demand: &'a Demand,
}

/// Rates of all running threads, in the order of the argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Per thread.
    pub threads: Vec<ThreadRates>,
    /// True if the last iteration changed every rate by less than 10⁻⁶ of itself.
    pub converged: bool,
    /// Largest relative change of a rate in the last iteration.
    pub residual: f64,
    /// Iterations taken.
    pub iterations: u32,
    /// Utilisation of the memory controllers of each node, 0 to 1.
    pub memory_utilisation: Vec<f64>,
    /// Utilisation of each package's interconnect, 0 to 1.
    pub interconnect_utilisation: Vec<f64>,
}

/// Rates at which one thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadRates {
    /// Instructions per second.
    pub ips: f64,
    /// Cycles per instruction; the sum of `stack`.
    pub cpi: f64,
    /// Cycles by cause, per instruction.
    pub stack: CpiStack,
    /// Moves and counts, per instruction.
    pub flow: InstructionActivity,
    /// Window that it has, instructions.
    pub window: f64,
    /// Long misses that overlap.
    pub mlp: f64,
    /// Bytes that it holds of its L1D.
    pub l1d_bytes: f64,
    /// Bytes that it holds of its L2; 0 if there is none.
    pub l2_bytes: f64,
    /// Bytes that it holds of its LLC.
    pub llc_bytes: f64,
    /// The queue for each of its program's locks.
    pub lock: LockQueue,
}

/// Queue that an acquisition of a lock meets; the product of both is the mean wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LockQueue {
    /// Probability that a sibling is in the way, 0 to 1.
    pub busy: f64,
    /// Mean wait of the acquisitions that wait, s; exponentially distributed.
    pub wait_s: f64,
}

/// Cycles per instruction by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpiStack {
    /// Dispatch of the instructions at the rate that width and dependences allow.
    pub base: f64,
    /// Functional units too few or too slow, one's own use and others'.
    pub units: f64,
    /// Instruction fetch.
    pub fetch: f64,
    /// Mispredicted branches.
    pub branch: f64,
    /// Data from the L2.
    pub l2: f64,
    /// Data from the LLC, here or in another domain.
    pub llc: f64,
    /// Data from memory, were it idle.
    pub memory: f64,
    /// Queueing for memory, interconnect and links.
    pub queue: f64,
    /// Page walks.
    pub tlb: f64,
    /// Window held by co-runners.
    pub window: f64,
    /// Dispatch slots, turns of fetch and ports taken by co-runners.
    pub dispatch: f64,
    /// Waiting for locks.
    pub lock: f64,
}

impl CpiStack {
    /// Names of the components in the order of [`CpiStack::to_array`].
    pub const NAMES: [&'static str; 12] = [
        "base", "units", "fetch", "branch", "l2", "llc", "memory", "queue", "tlb", "window",
        "dispatch", "lock",
    ];

    /// The components in the order of [`CpiStack::NAMES`], cycles per instruction.
    pub fn to_array(self) -> [f64; 12] {
        [
            self.base,
            self.units,
            self.fetch,
            self.branch,
            self.l2,
            self.llc,
            self.memory,
            self.queue,
            self.tlb,
            self.window,
            self.dispatch,
            self.lock,
        ]
    }

    /// Cycles per instruction in all.
    pub fn total(self) -> f64 {
        self.to_array().iter().sum()
    }
}

/// Events of one instruction on average, from which counters and energy are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstructionActivity {
    /// Accesses to the L1D.
    pub l1d_accesses: f64,
    /// Misses of the L1D.
    pub l1d_misses: f64,
    /// Misses of the L1I.
    pub l1i_misses: f64,
    /// Data misses of the L2 (of the L1D if there is no L2) that the thread waits for; lines
    /// prefetched into the L2 in time do not count.
    pub l2_misses: f64,
    /// Accesses to the LLC: data, prefetched into the L2 or not, and instructions.
    pub llc_accesses: f64,
    /// Accesses to the LLC for code, a part of `llc_accesses`.
    pub llc_code_accesses: f64,
    /// Misses of the LLC that the thread waits for, without prefetched lines.
    pub llc_misses: f64,
    /// Lines prefetched from memory, used or not.
    pub prefetched_lines: f64,
    /// Lines of code fetched from memory.
    pub code_lines: f64,
    /// Lines written back to memory.
    pub written_lines: f64,
    /// Lines to and from memory in all: `llc_misses`, `prefetched_lines`, `code_lines` and
    /// `written_lines`.
    pub memory_lines: f64,
    /// Core cycles during which lines of data were on their way from memory, demanded or
    /// prefetched, summed over these lines: lines times the mean time from request to arrival.
    pub outstanding_cycles: f64,
    /// Mispredicted branches.
    pub branch_misses: f64,
    /// TLB misses.
    pub tlb_misses: f64,
    /// Cycles that page walks take, whether others hide them or not.
    pub tlb_walk_cycles: f64,
    /// Cycles in which a floating-point operation of the thread is in the FPU, in its scheduler or in
    /// execution.
    pub fpu_busy_cycles: f64,
    /// Cycles that floating-point operations are in execution, over all of them.
    pub fp_cycles: f64,
    /// Cycles of [`CpiStack::dispatch`] in which co-runners have the turns of fetch.
    pub lost_fetch_cycles: f64,
    /// Cycles of [`CpiStack::dispatch`] in which co-runners have the ports.
    pub lost_port_cycles: f64,
    /// Least number of dispatch groups that the instructions fill in the core's mode.
    pub groups: f64,
    /// Distance from a value to its first use, instructions.
    pub use_distance: f64,
    /// Cycles that it takes in order with the units here, were all data in the L1 and all branches
    /// predicted; 0 if the machine does not count them.
    pub in_order_cycles: f64,
}
