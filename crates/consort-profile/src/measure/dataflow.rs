//! Parallelism of the data-flow graph in windows of growing size.
//!
//! For each window of w instructions the graph is scheduled as on a machine of unlimited width that
//! keeps w instructions in flight and retires them in order, where every operation takes one cycle:
//! an operation starts when its operands are ready and the instruction w before its own has
//! retired. ILP(w) is instructions per cycle (Karkhanis and Smith, ISCA 2004, section 3). Values
//! pass through registers and through memory, byte by byte.

use consort_ops::{Op, OpKind, Register};

use super::PartialTally;
use super::recent_values::RecentValues;

/// Windows, instructions.
pub const WINDOWS: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];

const COUNT: usize = WINDOWS.len();
const LONGEST: usize = WINDOWS[COUNT - 1];

/// A cycle, or a group of misses, for each window.
type PerWindow = [u64; COUNT];

/// Schedules, one per window, and groups of long misses that overlap.
///
/// A group begins with a long miss and includes the misses that follow it within the window and do
/// not depend on one of its own (Chou, Fahs and Abraham, ISCA 2004).
#[derive(Debug, Clone)]
pub struct Dataflow {
    ready: Vec<PerWindow>,
    /// Group of misses on which a register depends, for each window.
    tainted: Vec<PerWindow>,
    memory: RecentValues<(PerWindow, PerWindow)>,
    /// Cycles at which the last 1024 instructions had retired.
    retired: Vec<PerWindow>,
    instructions: u64,
    /// Cycles at which the current instruction enters the window, and at which all of it is done.
    entered: PerWindow,
    latest: PerWindow,
    /// Cycles at which the current operation starts, and the groups on which it depends.
    start: PerWindow,
    taint: PerWindow,
    /// True inside an instruction.
    open: bool,
    groups: PerWindow,
    leaders: PerWindow,
    counted: bool,
    counts: DataflowCounts,
}

/// Cycles of each schedule, and groups of misses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataflowCounts {
    cycles: PerWindow,
    instructions: u64,
    misses: u64,
    groups: PerWindow,
}

impl PartialTally for DataflowCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.cycles.merge(&other.cycles, with);
        self.instructions.merge(&other.instructions, with);
        self.misses.merge(&other.misses, with);
        self.groups.merge(&other.groups, with);
    }
}

impl Default for Dataflow {
    fn default() -> Self {
        Self {
            ready: vec![[0; COUNT]; Register::COUNT],
            tainted: vec![[0; COUNT]; Register::COUNT],
            memory: RecentValues::new(LONGEST),
            retired: vec![[0; COUNT]; LONGEST],
            instructions: 0,
            entered: [0; COUNT],
            latest: [0; COUNT],
            start: [0; COUNT],
            taint: [0; COUNT],
            open: false,
            groups: [0; COUNT],
            leaders: [0; COUNT],
            counted: true,
            counts: DataflowCounts::default(),
        }
    }
}

impl Dataflow {
    /// Lets the following operations count, or only pass through.
    pub fn set_counting(&mut self, counts: bool) {
        self.end_instruction();
        self.counted = counts;
    }

    /// Adds an operation; `is_long_miss` if it is a load that misses for long.
    pub fn add_op(&mut self, op: &Op, is_long_miss: bool) {
        if op.first {
            self.end_instruction();
            self.begin_instruction();
        }
        self.start = self.entered;
        self.taint = [0; COUNT];
        for register in op.sources.into_iter().flatten() {
            wait(&mut self.start, &self.ready[register.index()]);
            wait(&mut self.taint, &self.tainted[register.index()]);
        }
        if op.kind != OpKind::Store {
            // The operation also waits for earlier stores to the bytes that it reads.
            for (ready, taint) in self.memory.read(op) {
                wait(&mut self.start, ready);
                wait(&mut self.taint, taint);
            }
        }
        if is_long_miss {
            self.count_miss();
        }
        self.finish_op(op);
    }

    fn begin_instruction(&mut self) {
        self.open = true;
        let at = self.instructions as usize;
        for (number, window) in WINDOWS.into_iter().enumerate() {
            self.entered[number] = if at >= window {
                self.retired[(at - window) % LONGEST][number]
            } else {
                0
            };
        }
        self.latest = self.entered;
    }

    fn finish_op(&mut self, op: &Op) {
        let done = self.start.map(|start| start + 1);
        for (latest, done) in self.latest.iter_mut().zip(done) {
            *latest = done.max(*latest);
        }
        for register in op.targets.into_iter().flatten() {
            self.ready[register.index()] = done;
            self.tainted[register.index()] = self.taint;
        }
        if op.kind == OpKind::Store {
            let value = (done, self.taint);
            self.memory.store(op, self.instructions, value);
        }
    }

    fn count_miss(&mut self) {
        self.counts.misses += u64::from(self.counted);
        for (number, window) in WINDOWS.into_iter().enumerate() {
            let group = self.groups[number];
            let is_far = self.instructions - self.leaders[number] >= window as u64;
            if group == 0 || is_far || self.taint[number] == group {
                self.groups[number] += 1;
                self.leaders[number] = self.instructions;
                self.counts.groups[number] += u64::from(self.counted);
            }
            self.taint[number] = self.groups[number];
        }
    }

    fn end_instruction(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let at = self.instructions as usize;
        let before = if at == 0 {
            [0; COUNT]
        } else {
            self.retired[(at - 1) % LONGEST]
        };
        let mut now = self.latest;
        for number in 0..COUNT {
            now[number] = now[number].max(before[number]);
            if self.counted {
                self.counts.cycles[number] += now[number] - before[number];
            }
        }
        self.retired[at % LONGEST] = now;
        self.instructions += 1;
        self.counts.instructions += u64::from(self.counted);
    }

    /// Counts so far.
    #[must_use]
    pub const fn counts(&self) -> &DataflowCounts {
        &self.counts
    }
}

/// Raises each to the other's.
fn wait(start: &mut PerWindow, other: &PerWindow) {
    for (start, other) in start.iter_mut().zip(other) {
        *start = (*start).max(*other);
    }
}

impl DataflowCounts {
    /// Instructions per cycle in each of [`WINDOWS`].
    #[must_use]
    pub fn ilp(&self) -> [f64; COUNT] {
        self.cycles
            .map(|cycles| self.instructions as f64 / cycles.max(1) as f64)
    }

    /// Cycles in each of [`WINDOWS`], if every instruction takes one.
    #[must_use]
    pub const fn cycles(&self) -> [u64; COUNT] {
        self.cycles
    }

    /// Long misses that overlap in each of [`WINDOWS`]; 1 if there are none.
    #[must_use]
    pub fn mlp(&self) -> [f64; COUNT] {
        let misses = self.misses;
        self.groups.map(|groups| match groups {
            0 => 1.0,
            _ => misses as f64 / groups as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Access;

    fn add(sources: &[u8], target: u8) -> Op {
        let mut op = Op::new(OpKind::Integer, 0);
        for (place, &source) in op.sources.iter_mut().zip(sources) {
            *place = Some(Register::general(source));
        }
        op.targets[0] = Some(Register::general(target));
        op
    }

    fn access(kind: OpKind, address: u64, register: u8) -> Op {
        let mut op = if kind == OpKind::Load {
            add(&[], register)
        } else {
            Op::new(kind, 0)
        };
        op.kind = kind;
        if kind == OpKind::Store {
            op.sources[0] = Some(Register::general(register));
        }
        op.data = Some(Access {
            address,
            bytes: 8,
            is_vector: false,
        });
        op
    }

    fn schedule(ops: impl Iterator<Item = (Op, bool)>) -> DataflowCounts {
        let mut graph = Dataflow::default();
        ops.for_each(|(op, miss)| graph.add_op(&op, miss));
        graph.set_counting(false);
        graph.counts
    }

    #[test]
    fn chain_has_no_parallelism_in_any_window() {
        let ilp = schedule((0..4096).map(|_| (add(&[1], 1), false))).ilp();
        assert_eq!(ilp, [1.0; COUNT]);
    }

    #[test]
    fn independent_instructions_fill_every_window() {
        let ilp = schedule((0..4096).map(|_| (add(&[], 1), false))).ilp();
        assert_eq!(ilp, WINDOWS.map(|window| window as f64));
    }

    #[test]
    fn window_and_number_of_chains_limit_parallelism() {
        // 32 chains, one step of each in turn: a window of 16 has one step in flight.
        let ops = (0..32_768_u32).map(|i| (add(&[(i % 32) as u8], (i % 32) as u8), false));
        let ilp = schedule(ops).ilp();
        assert_eq!(ilp[0], 16.0);
        assert!(ilp[1..].iter().all(|ilp| *ilp == 32.0), "{ilp:?}");
    }

    #[test]
    fn values_pass_through_memory() {
        let store_and_load = |i: u32| match i % 2 {
            0 => (access(OpKind::Store, 0x100, 1), false),
            _ => (access(OpKind::Load, 0x100, 1), false),
        };
        let ilp = schedule((0..4096).map(store_and_load)).ilp();
        assert_eq!(ilp, [1.0; COUNT]);
    }

    #[test]
    fn misses_overlap_unless_they_depend_on_each_other() {
        let mut chase = access(OpKind::Load, 0x100, 1);
        chase.sources[0] = Some(Register::general(1));
        let mlp = schedule((0..4096).map(|_| (chase, true))).mlp();
        assert_eq!(mlp, [1.0; COUNT]);
        // One independent miss in each 8 instructions.
        let ops = (0..8192_u32).map(|i| match i % 8 {
            0 => (access(OpKind::Load, 0x100, 1), true),
            _ => (add(&[], 2), false),
        });
        assert_eq!(
            schedule(ops).mlp(),
            WINDOWS.map(|window| window as f64 / 8.0)
        );
    }
}
