//! The chains of operations that take longest, in windows of growing size.
//!
//! The data-flow graph is scheduled as in [`super::dataflow`], but with latencies. Its time is that
//! of the longest path through it, `Σ n·l` over the classes of operations with n of them on the path
//! and latency l. For other latencies another path may be the longest, so the graph is scheduled
//! with each of [`SETS`]: the longest of the paths found bounds the time with any latencies from
//! below, and is exact with those of a set.
//!
//! The predecessor that each operation waited for last is kept for a block of operations, and the
//! path is followed back at the block's end. Between blocks it may jump to another path, so that its
//! operations make up the time only about; they are scaled to it.

use consort_ops::{LatencyClass, Op, OpKind, Register};

use super::PartialTally;
use super::dataflow::WINDOWS;
use super::recent_values::RecentValues;

/// Cycles of loads and of floating-point operations in each schedule; other classes have those of
/// [`LatencyClass::reference_cycles`].
///
/// Two are enough for the cores of the machine files: over 62 traces and all windows the time with
/// loads of 5 cycles and floating point of 4 comes out within 0.8 percent, 0.02 percent off on
/// average, and that with loads of 3 and floating point of 6, which is outside, within 4.1 percent,
/// 0.2 percent low on average.
pub const SETS: [[i32; 2]; 2] = [[4, 4], [5, 6]];

/// A schedule for each set and window, windows outermost.
const LANES: usize = SETS.len() * WINDOWS.len();
const LONGEST: usize = WINDOWS[WINDOWS.len() - 1];
/// Operations in a block.
const BLOCK: usize = 8192;
/// Cycle at which all schedules start anew, so that cycles stay within their type; the one window
/// that is lost does not count among so many.
const LAST_CYCLE: i32 = 1 << 30;

type Cycles = [i32; LANES];
/// Numbers of operations.
type Numbers = [u32; LANES];

/// Cycles of an operation of each class.
const LATENCIES: [Cycles; LatencyClass::COUNT] = {
    let mut latencies = [[0; LANES]; LatencyClass::COUNT];
    let mut class = 0;
    while class < LatencyClass::COUNT {
        let mut lane = 0;
        while lane < LANES {
            let [load, fp] = SETS[lane % SETS.len()];
            latencies[class][lane] = match LatencyClass::ALL[class] {
                LatencyClass::Load => load,
                LatencyClass::Fp => fp,
                LatencyClass::PartialLoad => {
                    let usual = LatencyClass::Load.reference_cycles();
                    load + (LatencyClass::PartialLoad.reference_cycles() - usual) as i32
                }
                other => other.reference_cycles() as i32,
            };
            lane += 1;
        }
        class += 1;
    }
    latencies
};

/// The cycles at which something is there, with the operation that it waited for last in each
/// schedule.
#[derive(Debug, Clone, Copy)]
struct LatestResult {
    cycles: Cycles,
    by: Numbers,
}

impl LatestResult {
    const NONE: Self = Self {
        cycles: [0; LANES],
        by: [0; LANES],
    };

    #[inline]
    fn wait(&mut self, cycles: &Cycles, by: u32) {
        let lanes = self.cycles.iter_mut().zip(&mut self.by).zip(cycles);
        for ((latest, latest_by), &cycle) in lanes {
            *latest_by = if cycle > *latest { by } else { *latest_by };
            *latest = cycle.max(*latest);
        }
    }
}

/// Class of an operation.
#[derive(Debug, Clone, Copy)]
struct OpClass {
    /// Its class in schedules before `lane`, whose windows are smaller.
    before: LatencyClass,
    lane: usize,
    class: LatencyClass,
}

impl OpClass {
    const fn of_lane(self, lane: usize) -> LatencyClass {
        if lane < self.lane {
            self.before
        } else {
            self.class
        }
    }
}

/// Schedules for all sets and windows.
#[derive(Debug, Clone)]
pub struct ChainSchedules {
    registers: Vec<(Cycles, u32)>,
    memory: RecentValues<(Cycles, u32)>,
    /// Retirement of the last instructions.
    retired: Vec<LatestResult>,
    instructions: usize,
    /// Beginning of the current instruction.
    entered: LatestResult,
    /// End of the current instruction, and of all before it.
    latest: LatestResult,
    open: bool,
    counted: bool,
    /// Number of the block's first operation.
    first: u32,
    /// Numbers of the operations for which each of the block waited last.
    waited_for: Vec<Numbers>,
    classes: Vec<OpClass>,
    /// End of the instructions before the block.
    before: Cycles,
    counts: ChainCounts,
}

/// Operations on the longest path of each schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainCounts {
    path: Vec<[u64; LatencyClass::COUNT]>,
    cycles: [u64; LANES],
    instructions: u64,
}

impl Default for ChainCounts {
    fn default() -> Self {
        Self {
            path: vec![[0; LatencyClass::COUNT]; LANES],
            cycles: [0; LANES],
            instructions: 0,
        }
    }
}

impl PartialTally for ChainCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (own, other) in self.path.iter_mut().zip(&other.path) {
            own.merge(other, with);
        }
        self.cycles.merge(&other.cycles, with);
        self.instructions.merge(&other.instructions, with);
    }
}

impl ChainCounts {
    /// Operations of each class on the longest path per instruction, by set and window.
    #[must_use]
    pub fn chains(&self) -> [[[f64; LatencyClass::COUNT]; WINDOWS.len()]; SETS.len()] {
        let chain = |lane: usize| {
            let path = self.path[lane].map(|count| count as f64);
            let latencies = LATENCIES.iter().map(|cycles| f64::from(cycles[lane]));
            let on_path: f64 = latencies
                .zip(path)
                .map(|(cycles, count)| cycles * count)
                .sum();
            let scale = self.cycles[lane] as f64 / on_path.max(1.0);
            path.map(|count| count * scale / self.instructions.max(1) as f64)
        };
        std::array::from_fn(|set| std::array::from_fn(|window| chain(window * SETS.len() + set)))
    }
}

impl Default for ChainSchedules {
    fn default() -> Self {
        Self {
            registers: vec![([0; LANES], 0); Register::COUNT],
            memory: RecentValues::new(LONGEST),
            retired: vec![LatestResult::NONE; LONGEST],
            instructions: 0,
            entered: LatestResult::NONE,
            latest: LatestResult::NONE,
            open: false,
            counted: true,
            // What lies before all operations has number 0.
            first: 1,
            waited_for: Vec::with_capacity(BLOCK),
            classes: Vec::with_capacity(BLOCK),
            before: [0; LANES],
            counts: ChainCounts::default(),
        }
    }
}

impl ChainSchedules {
    /// Lets the following operations count, or only pass through.
    pub fn set_counting(&mut self, counts: bool) {
        self.end_block();
        self.counted = counts;
    }

    /// Adds an operation.
    pub fn add_op(&mut self, op: &Op) {
        if op.first {
            self.end_instruction();
            if self.classes.len() >= BLOCK {
                self.end_block();
            }
            self.begin_instruction();
        }
        let mut start = self.entered;
        for register in op.sources.into_iter().flatten() {
            let (cycles, by) = &self.registers[register.index()];
            start.wait(cycles, *by);
        }
        let usual = LatencyClass::from_kind(op.kind);
        let mut class = OpClass {
            before: usual,
            lane: 0,
            class: usual,
        };
        if op.kind == OpKind::Load {
            let stored = self.memory.read(op);
            stored.for_each(|(cycles, by)| start.wait(cycles, *by));
            // What has left a window is written.
            let distance = self.memory.partial_distance(op, self.instructions as u64);
            if let Some(distance) = distance {
                let window = WINDOWS.partition_point(|&window| window as u64 <= distance);
                (class.lane, class.class) = (window * SETS.len(), LatencyClass::PartialLoad);
            }
        }
        let number = self.first + self.classes.len() as u32;
        let mut done = start.cycles;
        let (short, long) = done.split_at_mut(class.lane);
        let latencies = [class.before, class.class].map(|class| &LATENCIES[class.index()]);
        for (done, latency) in short.iter_mut().zip(latencies[0]) {
            *done += latency;
        }
        for (done, latency) in long.iter_mut().zip(&latencies[1][class.lane..]) {
            *done += latency;
        }
        self.waited_for.push(start.by);
        self.classes.push(class);
        for register in op.targets.into_iter().flatten() {
            self.registers[register.index()] = (done, number);
        }
        if op.kind == OpKind::Store {
            self.memory
                .store(op, self.instructions as u64, (done, number));
        }
        self.latest.wait(&done, number);
    }

    /// Lets an instruction enter each window when the one so far before it has retired.
    fn begin_instruction(&mut self) {
        self.open = true;
        for (number, window) in WINDOWS.into_iter().enumerate() {
            if let Some(before) = self.instructions.checked_sub(window) {
                let retired = &self.retired[before % LONGEST];
                let lanes = number * SETS.len()..(number + 1) * SETS.len();
                self.entered.cycles[lanes.clone()].copy_from_slice(&retired.cycles[lanes.clone()]);
                self.entered.by[lanes.clone()].copy_from_slice(&retired.by[lanes]);
            }
        }
    }

    fn end_instruction(&mut self) {
        if std::mem::take(&mut self.open) {
            self.retired[self.instructions % LONGEST] = self.latest;
            self.instructions += 1;
            self.counts.instructions += u64::from(self.counted);
        }
    }

    fn end_block(&mut self) {
        self.end_instruction();
        if self.counted {
            self.count_paths();
        }
        self.first += self.classes.len() as u32;
        self.waited_for.clear();
        self.classes.clear();
        self.before = self.latest.cycles;
        if self.before.iter().any(|&cycle| cycle > LAST_CYCLE) {
            *self = Self {
                counted: self.counted,
                counts: std::mem::take(&mut self.counts),
                ..Self::default()
            };
        }
    }

    /// Follows the longest path of each schedule back to the beginning of the block.
    fn count_paths(&mut self) {
        for lane in 0..LANES {
            let grown = self.latest.cycles[lane] - self.before[lane];
            self.counts.cycles[lane] += u64::from(grown.cast_unsigned());
            let path = &mut self.counts.path[lane];
            let mut at = self.latest.by[lane];
            while let Some(position) = at.checked_sub(self.first) {
                path[self.classes[position as usize].of_lane(lane).index()] += 1;
                at = self.waited_for[position as usize][lane];
            }
        }
    }

    /// Counts so far.
    pub fn counts(&mut self) -> ChainCounts {
        self.end_block();
        self.counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Access;

    fn on(kind: OpKind, source: u8, target: u8) -> Op {
        let mut op = Op::new(kind, 0);
        op.sources[0] = Some(Register::general(source));
        op.targets[0] = Some(Register::general(target));
        op
    }

    /// Cycles per instruction of the longest chain of a set in a window, with its own latencies.
    fn cycles(chains: &ChainCounts, set: usize, window: usize) -> f64 {
        let chain = chains.chains()[set][window];
        let lane = window * SETS.len() + set;
        let each = LATENCIES.iter().zip(chain);
        each.map(|(cycles, amount)| f64::from(cycles[lane]) * amount)
            .sum()
    }

    fn chains(ops: impl Iterator<Item = Op>) -> ChainCounts {
        let mut schedules = ChainSchedules::default();
        ops.for_each(|op| schedules.add_op(&op));
        schedules.counts()
    }

    #[test]
    fn each_set_finds_its_own_longest_chain() {
        // Next to each other: a load, and an addition of floating point on a register of its own.
        let ops = (0..40_000_u32).map(|i| match i % 2 {
            0 => on(OpKind::Load, 1, 1),
            _ => on(OpKind::FpAdd, 2, 2),
        });
        let all = chains(ops);
        for (set, [load, fp]) in SETS.into_iter().enumerate() {
            for window in 0..WINDOWS.len() {
                let time = cycles(&all, set, window);
                assert!(
                    (time - 0.5 * f64::from(load.max(fp))).abs() < 0.01,
                    "{time}"
                );
            }
            let [_, loads, fps, ..] = all.chains()[set][3];
            let other = if load > fp { fps } else { loads };
            assert!(load == fp || other < 0.01, "{load} {fp}: {other}");
        }
    }

    #[test]
    fn longest_chain_is_by_cycles_not_operations() {
        // Next to each load of a chain, two additions of another: 4 cycles against 2.
        let all = chains((0..60_000_u32).map(|i| match i % 3 {
            0 => on(OpKind::Load, 1, 1),
            _ => on(OpKind::Integer, 2, 2),
        }));
        for window in 0..WINDOWS.len() {
            assert!((cycles(&all, 0, window) - 4.0 / 3.0).abs() < 0.01);
            let [plain, load, ..] = all.chains()[0][window];
            assert!(
                plain < 0.01 && (load - 1.0 / 3.0).abs() < 0.01,
                "{plain} {load}"
            );
        }
    }

    #[test]
    fn store_and_load_of_same_bytes_chain() {
        let access = |kind, address| {
            let mut op = on(kind, 1, 1);
            if kind == OpKind::Store {
                op.targets[0] = None;
            } else {
                op.sources[0] = None;
            }
            op.data = Some(Access {
                address,
                bytes: 2,
                is_vector: false,
            });
            op
        };
        let time = |load| {
            let all = chains((0..40_000).map(|i| match i % 2 {
                0 => access(OpKind::Store, 0x100),
                _ => access(OpKind::Load, load),
            }));
            cycles(&all, 0, 3)
        };
        assert!((time(0x100) - 2.5).abs() < 0.01, "{}", time(0x100));
        // Of the bytes next to these it loads what was there before.
        assert!(time(0x102) < 0.1, "{}", time(0x102));
    }

    #[test]
    fn load_of_two_stores_waits_for_the_write() {
        let access = |kind, address, bytes| {
            let mut op = on(kind, 1, 1);
            if kind == OpKind::Store {
                op.targets[0] = None;
            } else {
                op.sources[0] = None;
            }
            op.data = Some(Access {
                address,
                bytes,
                is_vector: false,
            });
            op
        };
        // Two halves are stored, the whole is loaded: 1 + 15 cycles of three instructions, as the
        // halves are stored next to each other. With 40 instructions of nothing between, the halves
        // are written in windows of 16 and 32.
        let chain = |between: u32| {
            let length = 3 + between;
            chains((0..40_000).map(|i| match i % length {
                0 => access(OpKind::Store, 0x100, 2),
                1 => access(OpKind::Store, 0x102, 2),
                at if at == 2 + between => access(OpKind::Load, 0x100, 4),
                _ => on(OpKind::Integer, 9, 8),
            }))
        };
        let near = chain(0);
        for window in 0..WINDOWS.len() {
            let time = cycles(&near, 0, window);
            assert!((time - 16.0 / 3.0).abs() < 0.01, "{time}");
        }
        let partial = LatencyClass::PartialLoad.index();
        let far = chain(40);
        let loads = [1, 2].map(|window| far.chains()[0][window][partial] * 43.0);
        assert!(
            loads[0] == 0.0 && (loads[1] - 1.0).abs() < 0.01,
            "{loads:?}"
        );
    }

    #[test]
    fn small_window_waits_for_its_oldest_instruction() {
        // A division, then 63 instructions that wait for nothing: in a window of 16 four divisions
        // of 64 instructions could not overlap with the next.
        let ops = (0..64_000_u32).map(|i| match i % 64 {
            0 => on(OpKind::Divide, 9, 8),
            _ => on(OpKind::Integer, 9, 7),
        });
        let all = chains(ops);
        let [short, .., long] = [0, 2, 6].map(|window| cycles(&all, 0, window));
        // Behind the division 15 instructions enter with it; three windows more take a cycle each.
        assert!((short * 64.0 - 27.0).abs() < 0.5, "{}", short * 64.0);
        assert!((long * 64.0 - 24.0 / 16.0).abs() < 0.5, "{}", long * 64.0);
    }

    #[test]
    fn times_do_not_depend_on_when_counts_are_taken() {
        let ops = || (0..50_000_u32).map(|i| on(OpKind::Multiply, (i % 3) as u8, (i % 3) as u8));
        let mut often = ChainSchedules::default();
        for (i, op) in ops().enumerate() {
            often.add_op(&op);
            if i % 1000 == 0 {
                often.counts();
            }
        }
        let (often, once) = (often.counts(), chains(ops()));
        for window in 0..WINDOWS.len() {
            assert!((cycles(&often, 0, window) - cycles(&once, 0, window)).abs() < 1e-3);
        }
    }
}
