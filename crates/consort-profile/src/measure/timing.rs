//! Effect of latencies on the data flow: the longest chain, and the time until branches resolve.
//!
//! Schedules of one window of 128 instructions, with the latencies of [`LATENCIES`]:
//!
//! - without limits of width: the operations on its longest chain are told by class, so that the
//!   chain's length follows for a core of other latencies; and of the time that instructions are
//!   in the window, the part in which they wait for operands, which is what issue queues hold of
//!   it (Little's law);
//! - the same with one divider, see [`super::dividers`];
//! - for each scheme of predictors, a pipeline that dispatches four operations per cycle and stands still from the dispatch of a
//!   mispredicted branch until it is resolved and for twelve cycles more: cycles from dispatch to
//!   resolution are what such a branch costs beside refilling the front end (Eyerman, Eeckhout,
//!   Karkhanis and Smith, TOCS 2009, section 4.2).

use consort_ops::{Kind, Op, Register};

use super::Tally;
use super::branches::SCHEMES;
use super::dividers::{DIVIDERS, Dividers, Schedules, wait};
use super::recent::{Recent, pieces};

/// Classes of operations on a chain.
pub const CLASSES: usize = 7;
/// Cycles of an operation of each class: plain, load, floating point, multiplication, division,
/// floating-point division, vector (L1 hits; about those of Skylake in Fog's instruction tables).
pub const LATENCIES: [u64; CLASSES] = [1, 4, 4, 3, 24, 14, 1];

const WINDOW: usize = 128;
const WIDTH: u64 = 4;
const REFILL: u64 = 12;

/// A cycle of each pipeline, or a count, by [`SCHEMES`].
type Each = [u64; SCHEMES.len()];
/// Operations on a chain, by class.
type Path = [u64; CLASSES];

/// Cycles at which a value is there.
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    /// In the schedule without limits, with what it is the end of.
    chain: u64,
    path: Path,
    /// In the schedules with one divider.
    divided: Schedules,
    /// In each pipeline.
    time: Each,
}

/// All schedules.
#[derive(Debug, Clone)]
pub struct Timing {
    registers: Vec<Value>,
    memory: Recent<Value>,
    /// Cycles at which the last instructions had retired.
    retired: Vec<Value>,
    instructions: usize,
    /// Next dispatch slot of each pipeline, of which a cycle has [`WIDTH`].
    slot: Each,
    dividers: Dividers,
    /// The latest result of the instruction that is being taken, and whether one is.
    latest: Value,
    operations: u64,
    /// Those of them that pass a floating-point scheduler.
    fp_operations: u64,
    /// Until when one of those so far waits.
    fp_until: u64,
    open: bool,
    counted: bool,
    counts: TimingCounts,
}

/// Operations on the longest chain, and the resolution of mispredicted branches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimingCounts {
    /// Operations on the longest chain, by class.
    pub path: Path,
    /// Mispredicted branches, by scheme.
    pub interruptions: [u64; SCHEMES.len()],
    /// Cycles from their dispatch to their results, by scheme.
    pub resolution: [u64; SCHEMES.len()],
    /// Cycles from entering the window to execution, over all operations.
    pub waiting: u64,
    /// Cycles from entering the window to leaving it, over all operations.
    pub staying: u64,
    /// The same of those that pass a floating-point scheduler.
    pub fp: SchedulerCounts,
    /// Cycles in all.
    pub time: u64,
    /// Cycles in all with one divider.
    pub divided: Schedules,
}

/// Operations that pass a floating-point scheduler: arithmetic and moves of floating-point and
/// vector registers, their loads and stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedulerCounts {
    /// Cycles from entering the window to execution, over all operations.
    pub waiting: u64,
    /// Cycles from entering the window to leaving it, over all operations.
    pub staying: u64,
    /// Cycles in which at least one waits.
    pub present: u64,
}

impl SchedulerCounts {
    /// Share of their time in the window that they wait for operands, 0 to 1; none where there are
    /// none.
    #[must_use]
    pub fn waiting_share(&self) -> Option<f64> {
        (self.staying > 0).then(|| self.waiting as f64 / self.staying as f64)
    }
}

impl Tally for TimingCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.path.merge(&other.path, with);
        self.interruptions.merge(&other.interruptions, with);
        self.resolution.merge(&other.resolution, with);
        self.waiting.merge(&other.waiting, with);
        self.staying.merge(&other.staying, with);
        self.fp.waiting.merge(&other.fp.waiting, with);
        self.fp.staying.merge(&other.fp.staying, with);
        self.fp.present.merge(&other.fp.present, with);
        self.time.merge(&other.time, with);
        self.divided.merge(&other.divided, with);
    }
}

impl TimingCounts {
    /// Share of the instructions in the window that wait for operands, 0 to 1.
    #[must_use]
    pub fn waiting_share(&self) -> f64 {
        self.waiting as f64 / self.staying.max(1) as f64
    }

    /// Distance from each other at which operations come that pass a floating-point scheduler, 0 to
    /// 1: were they at random, none of n that wait on average would be there with e^(−n); with this
    /// share s it is e^(−s·n). None where none wait, or one always does.
    #[must_use]
    pub fn fp_spread(&self) -> Option<f64> {
        let time = self.time.max(1) as f64;
        let (present, waiting) = (self.fp.present as f64 / time, self.fp.waiting as f64 / time);
        let spread = -(-present).ln_1p() / waiting;
        (waiting > 0.0 && present < 1.0).then(|| spread.clamp(0.0, 1.0))
    }

    /// By how much the longest chain gets longer with one divider, over its length.
    #[must_use]
    pub fn lengthening(&self) -> [[f64; DIVIDERS.len()]; 2] {
        let time = self.time.max(1) as f64;
        let longer = |&cycles: &u64| (cycles as f64 / time - 1.0).max(0.0);
        self.divided.map(|each| each.map(|cycles| longer(&cycles)))
    }

    /// Mean cycles from a mispredicted branch's dispatch to its result, by scheme, if there was one.
    #[must_use]
    pub fn resolution_cycles(&self) -> [Option<f64>; SCHEMES.len()] {
        std::array::from_fn(|scheme| {
            let (cycles, count) = (self.resolution[scheme], self.interruptions[scheme]);
            (count > 0).then(|| cycles as f64 / count as f64)
        })
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            registers: vec![Value::default(); Register::COUNT],
            memory: Recent::new(WINDOW),
            retired: vec![Value::default(); WINDOW],
            instructions: 0,
            slot: [0; SCHEMES.len()],
            dividers: Dividers::default(),
            latest: Value::default(),
            operations: 0,
            fp_operations: 0,
            fp_until: 0,
            open: false,
            counted: true,
            counts: TimingCounts::default(),
        }
    }
}

impl Value {
    fn wait(&mut self, other: &Self) {
        if other.chain > self.chain {
            self.chain = other.chain;
            self.path = other.path;
        }
        wait(&mut self.divided, &other.divided);
        for (time, other) in self.time.iter_mut().zip(other.time) {
            *time = other.max(*time);
        }
    }
}

const fn class(kind: Kind) -> usize {
    match kind {
        Kind::Load => 1,
        Kind::FpAdd | Kind::FpMultiply | Kind::FpFused => 2,
        Kind::Multiply => 3,
        Kind::Divide => 4,
        Kind::FpDivide => 5,
        Kind::Vector | Kind::VectorMove => 6,
        _ => 0,
    }
}

/// Returns true where an operation waits in the scheduler of floating point, where that has one of
/// its own.
fn passes_fp_scheduler(op: &Op) -> bool {
    let accesses_vector = op.data.is_some_and(|access| access.is_vector);
    let computes = matches!(
        op.kind,
        Kind::FpAdd
            | Kind::FpMultiply
            | Kind::FpFused
            | Kind::FpDivide
            | Kind::Vector
            | Kind::VectorMove
    );
    computes || accesses_vector
}

impl Timing {
    /// Has what follows count, or only pass.
    pub fn count(&mut self, counts: bool) {
        self.end();
        self.counted = counts;
    }

    /// Takes an operation, and whether it is a branch that is mispredicted, by scheme.
    pub fn op(&mut self, op: &Op, is_mispredicted: [bool; SCHEMES.len()]) {
        if op.first {
            self.end();
            self.open = true;
        }
        // What the window holds up starts when its oldest instruction has retired.
        let entered = self.retired[self.instructions % WINDOW];
        for (slot, entered) in self.slot.iter_mut().zip(entered.time) {
            *slot = (*slot).max(entered * WIDTH) + 1;
        }
        let mut start = entered;
        for register in op.sources.into_iter().flatten() {
            start.wait(&self.registers[register.index()]);
        }
        if op.kind == Kind::Load {
            self.load(op, &mut start);
        }
        let done = self.done(op.kind, start, is_mispredicted);
        self.counts.waiting += u64::from(self.counted) * (start.chain - entered.chain);
        if passes_fp_scheduler(op) {
            self.waits_for_fp(entered.chain, start.chain);
        }
        self.write(op, done);
        self.latest.wait(&done);
        self.operations += 1;
    }

    /// Notes an operation that waits in a floating-point scheduler. They enter in the order of the
    /// program, so what the last ones cover ends where the latest of them does.
    fn waits_for_fp(&mut self, entered: u64, start: u64) {
        self.fp_operations += 1;
        if self.counted {
            self.counts.fp.waiting += start - entered;
            self.counts.fp.present += start.saturating_sub(entered.max(self.fp_until));
        }
        self.fp_until = self.fp_until.max(start);
    }

    /// Executes an operation; when its result is there.
    fn done(&mut self, kind: Kind, start: Value, is_mispredicted: [bool; SCHEMES.len()]) -> Value {
        let class = class(kind);
        let mut done = start;
        done.chain += LATENCIES[class];
        done.path[class] += 1;
        done.divided = self.dividers.done(kind, start.divided, LATENCIES[class]);
        for (scheme, time) in done.time.iter_mut().enumerate() {
            let dispatched = self.slot[scheme] / WIDTH;
            *time = dispatched.max(*time) + LATENCIES[class];
            if is_mispredicted[scheme] {
                self.slot[scheme] = (*time + REFILL) * WIDTH;
                self.counts.interruptions[scheme] += u64::from(self.counted);
                self.counts.resolution[scheme] += u64::from(self.counted) * (*time - dispatched);
            }
        }
        done
    }

    /// Has a load wait for what is stored where it reads.
    fn load(&self, op: &Op, start: &mut Value) {
        for piece in pieces(op) {
            if let Some(value) = self.memory.get(piece) {
                start.wait(value);
            }
        }
    }

    fn write(&mut self, op: &Op, done: Value) {
        for register in op.targets.into_iter().flatten() {
            self.registers[register.index()] = done;
        }
        if op.kind == Kind::Store {
            self.memory.store(op, self.instructions as u64, done);
        }
    }

    /// Ends the instruction that was being taken: it retires after those before it.
    fn end(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let before = self.retired[(self.instructions + WINDOW - 1) % WINDOW];
        let entered = self.retired[self.instructions % WINDOW].chain;
        let mut now = before;
        now.wait(&std::mem::take(&mut self.latest));
        let operations = std::mem::take(&mut self.operations);
        let fp_operations = std::mem::take(&mut self.fp_operations);
        if self.counted {
            self.counts.staying += operations * (now.chain - entered);
            self.counts.fp.staying += fp_operations * (now.chain - entered);
            self.counts.time += now.chain - before.chain;
            grow(&mut self.counts.divided, &now.divided, &before.divided);
            let grown = now.path.iter().zip(before.path);
            for (count, (now, before)) in self.counts.path.iter_mut().zip(grown) {
                // A chain that overtakes another may have fewer operations of some class.
                *count = count.wrapping_add(now.wrapping_sub(before));
            }
        }
        self.retired[self.instructions % WINDOW] = now;
        self.instructions += 1;
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> TimingCounts {
        let mut counts = self.counts.clone();
        // Below nothing only as long as next to nothing was counted.
        counts.path = counts
            .path
            .map(|count| count.cast_signed().max(0).cast_unsigned());
        counts
    }
}

fn grow(counts: &mut Schedules, now: &Schedules, before: &Schedules) {
    let grown = now.as_flattened().iter().zip(before.as_flattened());
    for (count, (now, before)) in counts.as_flattened_mut().iter_mut().zip(grown) {
        *count += now - before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Access, Branch, Turn};

    fn on(kind: Kind, source: u8, target: u8) -> Op {
        let mut op = Op::new(kind, 0);
        op.sources[0] = Some(Register::general(source));
        op.targets[0] = Some(Register::general(target));
        op
    }

    fn counts(ops: impl Iterator<Item = (Op, bool)>) -> TimingCounts {
        let mut timing = Timing::default();
        ops.for_each(|(op, wrong)| timing.op(&op, [wrong, false]));
        timing.count(false);
        timing.counts()
    }

    #[test]
    fn the_longest_chain_is_the_one_of_loads_not_the_one_of_more_operations() {
        // Beside each load of a chain two additions of another: 4 cycles against 2.
        let ops = (0..3000_u32).map(|i| match i % 3 {
            0 => (on(Kind::Load, 1, 1), false),
            _ => (on(Kind::Integer, 2, 2), false),
        });
        let path = counts(ops).path;
        assert!(path[1] >= 990 && path[0] < 10, "{path:?}");
    }

    #[test]
    fn a_scheduler_of_floating_point_is_empty_while_only_integers_wait() {
        let fp = |fp: u32| {
            let ops = (0..6000_u32).map(move |i| {
                let kind = if i % 600 < fp {
                    Kind::FpAdd
                } else {
                    Kind::Integer
                };
                (on(kind, 1, 1), false)
            });
            counts(ops)
        };
        assert_eq!(fp(0).fp, SchedulerCounts::default());
        assert_eq!(fp(0).fp_spread(), None);
        // One chain: all wait, and one is always there.
        let all = fp(600).fp;
        assert!(all.waiting_share().unwrap() > 0.9, "{all:?}");
        assert!(fp(600).fp.present as f64 > 0.99 * fp(600).time as f64);
        // A tenth of the operations, all in a row.
        let spread = fp(60).fp_spread().unwrap();
        assert!((0.01..0.3).contains(&spread), "{spread}");
    }

    #[test]
    fn divisions_in_a_group_wait_for_their_divider_and_lone_ones_do_not() {
        // 10 divisions of what nobody writes in 1,000 operations of which 990 are a chain.
        let lengthening = |spacing: u32| {
            let ops = (0..50_000_u32).map(move |i| match i % 1000 {
                at if at < 10 * spacing && at % spacing == 0 => (on(Kind::FpDivide, 9, 8), false),
                _ => (on(Kind::Integer, 1, 1), false),
            });
            counts(ops).lengthening()
        };
        assert_eq!(lengthening(100), [[0.0; 4]; 2]);
        let [integers, [four, eight, sixteen, thirty_two]] = lengthening(1);
        assert_eq!(integers, [0.0; 4]);
        // The group begins when the window reaches it and ends when the window is full behind it, so
        // nearly two windows hide of its 320 cycles.
        assert!((thirty_two * 990.0 - (320.0 - 252.0)).abs() < 2.0);
        assert!(four == 0.0 && eight == 0.0 && sixteen < 1e-3, "{sixteen}");
    }

    #[test]
    fn a_store_and_a_load_of_the_same_bytes_are_one_chain() {
        let access = |kind, i: u32| {
            let mut op = on(kind, 1, 1);
            if kind == Kind::Store {
                op.targets[0] = None;
            }
            op.data = Some(Access {
                address: 0x100,
                bytes: 8,
                is_vector: false,
            });
            (op, i == u32::MAX)
        };
        let ops = (0..2000).map(|i| access(if i % 2 == 0 { Kind::Store } else { Kind::Load }, i));
        let path = counts(ops).path;
        assert!(path[0] >= 990 && path[1] >= 990, "{path:?}");
    }

    fn branch(source: u8) -> Op {
        let mut op = Op::new(Kind::Branch, 0);
        op.sources[0] = Some(Register::general(source));
        op.branch = Some(Branch {
            turn: Turn::Conditional,
            taken: true,
            target: 8,
        });
        op
    }

    #[test]
    fn a_branch_behind_nothing_resolves_at_once_and_one_behind_a_chain_after_it() {
        // 19 operations, then a mispredicted branch: of a register that nobody writes, and of
        // the end of a chain of 19 that takes as long as 19 additions, less 20 of 4 per cycle.
        let program = |source: u8| {
            let op = move |i: u32| match i % 20 {
                19 => (branch(source), true),
                _ => (on(Kind::Integer, 1, 1), false),
            };
            let [tagged, gshare] = counts((0..2000).map(op)).resolution_cycles();
            assert_eq!(gshare, None);
            tagged.unwrap()
        };
        assert!((program(9) - 1.0).abs() < 0.1, "{}", program(9));
        assert!((program(1) - (20.0 - 5.0)).abs() < 1.5, "{}", program(1));
    }
}
