//! Effect of latencies on the data flow: waits for operands, and the time until branches resolve.
//!
//! Schedules of one window of 128 instructions, with the latencies of
//! [`LatencyClass::reference_cycles`]:
//!
//! - without limits of width: of the time that instructions are in the window, the part in which
//!   they wait for operands, which issue queues hold (Little's law);
//! - the same with one divider, see [`super::pipelines`];
//! - pipelines that stop behind mispredicted branches, see [`super::pipelines`].

use consort_ops::{LatencyClass, Op, OpKind, Register};

use super::branches::SCHEMES;
use super::pipelines::{DividerCycles, Dividers, raise_cycles};
use super::pipelines::{PerPipeline, Pipelines, UNINTERRUPTED};
use super::recent_values::RecentValues;
use super::timing_counts::{FETCH_WIDTHS, TimingCounts};

const WINDOW: usize = 128;

/// Cycles at which a value is ready.
#[derive(Debug, Clone, Copy, Default)]
struct ScheduledValue {
    /// In the schedule without limits.
    chain: u64,
    /// In the schedules with one divider.
    divided: DividerCycles,
    /// In each pipeline.
    time: PerPipeline,
}

/// All schedules.
#[derive(Debug, Clone)]
pub struct LatencySchedule {
    registers: Vec<ScheduledValue>,
    memory: RecentValues<ScheduledValue>,
    /// Cycles at which the last instructions had retired.
    retired: Vec<ScheduledValue>,
    instructions: usize,
    pipelines: Pipelines,
    dividers: Dividers,
    /// The latest result of the current instruction.
    latest: ScheduledValue,
    operations: u64,
    /// Those of `operations` that pass a floating-point scheduler.
    fp_operations: u64,
    /// The cycle until which one of the operations so far waits.
    fp_until: u64,
    /// Operations and instructions since the last taken branch.
    run: [u64; 2],
    open: bool,
    counted: bool,
    counts: TimingCounts,
}

impl Default for LatencySchedule {
    fn default() -> Self {
        Self {
            registers: vec![ScheduledValue::default(); Register::COUNT],
            memory: RecentValues::new(WINDOW),
            retired: vec![ScheduledValue::default(); WINDOW],
            instructions: 0,
            pipelines: Pipelines::default(),
            dividers: Dividers::default(),
            latest: ScheduledValue::default(),
            operations: 0,
            fp_operations: 0,
            fp_until: 0,
            run: [0; 2],
            open: false,
            counted: true,
            counts: TimingCounts::default(),
        }
    }
}

impl ScheduledValue {
    fn wait(&mut self, other: &Self) {
        self.chain = self.chain.max(other.chain);
        raise_cycles(&mut self.divided, &other.divided);
        for (time, other) in self.time.iter_mut().zip(other.time) {
            *time = other.max(*time);
        }
    }
}

/// True if an operation waits in the floating-point scheduler of a core that has one.
fn passes_fp_scheduler(op: &Op) -> bool {
    let accesses_vector = op.data.is_some_and(|access| access.is_vector);
    op.kind.is_vector_side() || accesses_vector
}

impl LatencySchedule {
    /// Lets the following operations count, or only pass through.
    pub fn set_counting(&mut self, counts: bool) {
        self.end_instruction();
        self.run = [0; 2];
        self.counted = counts;
    }

    /// Adds an operation; `is_mispredicted` for a mispredicted branch, by scheme.
    pub fn add_op(&mut self, op: &Op, is_mispredicted: [bool; SCHEMES.len()]) {
        if op.first {
            self.end_instruction();
            self.open = true;
        }
        // The window is full until its oldest instruction has retired.
        let entered = self.retired[self.instructions % WINDOW];
        self.pipelines.enter(entered.time);
        let mut start = entered;
        for register in op.sources.into_iter().flatten() {
            start.wait(&self.registers[register.index()]);
        }
        let mut class = LatencyClass::from_kind(op.kind);
        if op.kind == OpKind::Load {
            let stored = self.memory.read(op);
            stored.for_each(|value| start.wait(value));
            let distance = self.memory.partial_distance(op, self.instructions as u64);
            if distance.is_some_and(|distance| distance < WINDOW as u64) {
                class = LatencyClass::PartialLoad;
            }
        }
        let done = self.execute_op(op, class, start, is_mispredicted);
        self.counts.waiting += u64::from(self.counted) * (start.chain - entered.chain);
        if passes_fp_scheduler(op) {
            self.count_fp_wait(entered.chain, start.chain);
        }
        for register in op.targets.into_iter().flatten() {
            self.registers[register.index()] = done;
        }
        if op.kind == OpKind::Store {
            self.memory.store(op, self.instructions as u64, done);
        }
        self.latest.wait(&done);
        self.operations += 1;
        self.count_turns(op);
    }

    fn count_turns(&mut self, op: &Op) {
        self.run[0] += 1;
        self.run[1] += u64::from(op.first);
        if op.branch.is_some_and(|branch| branch.taken) {
            let [operations, instructions] = std::mem::take(&mut self.run);
            if self.counted {
                for (turns, width) in self.counts.turns.iter_mut().zip(FETCH_WIDTHS) {
                    *turns += operations.div_ceil(width);
                }
                self.counts.fetched += instructions;
            }
        }
    }

    /// Counts an operation that waits in a floating-point scheduler. Operations enter in program
    /// order, so the cycles that the earlier ones cover end where the latest of them does.
    fn count_fp_wait(&mut self, entered: u64, start: u64) {
        self.fp_operations += 1;
        if self.counted {
            self.counts.fp.waiting += start - entered;
            self.counts.fp.present += start.saturating_sub(entered.max(self.fp_until));
        }
        self.fp_until = self.fp_until.max(start);
    }

    /// Executes an operation. Returns when its result is ready.
    fn execute_op(
        &mut self,
        op: &Op,
        class: LatencyClass,
        start: ScheduledValue,
        is_mispredicted: [bool; SCHEMES.len()],
    ) -> ScheduledValue {
        let latency = class.reference_cycles();
        let mut done = start;
        done.chain += latency;
        done.divided = self.dividers.schedule_op(op.kind, start.divided, latency);
        self.pipelines
            .execute(op, latency, self.counted, &mut done.time);
        if is_mispredicted.contains(&true) {
            self.pipelines
                .interrupt(is_mispredicted, &done.time, self.counted);
        }
        done
    }

    /// Ends the current instruction: it retires after those before it.
    fn end_instruction(&mut self) {
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
            self.counts.operations += operations;
            self.counts.time += now.chain - before.chain;
            let paces = now.time.iter().zip(before.time).skip(UNINTERRUPTED);
            for (paced, (now, before)) in self.counts.paced.iter_mut().zip(paces) {
                *paced += now - before;
            }
            add_growth(&mut self.counts.divided, &now.divided, &before.divided);
        }
        self.retired[self.instructions % WINDOW] = now;
        self.instructions += 1;
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> TimingCounts {
        let mut counts = self.counts.clone();
        counts.branches = self.pipelines.counts.clone();
        counts
    }
}

fn add_growth(counts: &mut DividerCycles, now: &DividerCycles, before: &DividerCycles) {
    let grown = now.as_flattened().iter().zip(before.as_flattened());
    for (count, (now, before)) in counts.as_flattened_mut().iter_mut().zip(grown) {
        *count += now - before;
    }
}

#[cfg(test)]
mod tests {
    use super::super::SchedulerCounts;
    use super::*;
    use consort_ops::{Access, Branch, BranchKind};

    fn on(kind: OpKind, source: u8, target: u8) -> Op {
        let mut op = Op::new(kind, 0);
        op.sources[0] = Some(Register::general(source));
        op.targets[0] = Some(Register::general(target));
        op
    }

    fn counts(ops: impl Iterator<Item = (Op, bool)>) -> TimingCounts {
        let mut timing = LatencySchedule::default();
        ops.for_each(|(op, wrong)| timing.add_op(&op, [wrong, false]));
        timing.set_counting(false);
        timing.counts()
    }

    #[test]
    fn fp_scheduler_is_empty_while_integers_wait() {
        let fp = |fp: u32| {
            let ops = (0..6000_u32).map(move |i| {
                let kind = if i % 600 < fp {
                    OpKind::FpAdd
                } else {
                    OpKind::Integer
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
    fn only_grouped_divisions_wait_for_their_divider() {
        // 10 divisions of a register that no instruction writes in 1,000 operations, 990 of them a
        // chain.
        let lengthening = |spacing: u32| {
            let ops = (0..50_000_u32).map(move |i| match i % 1000 {
                at if at < 10 * spacing && at % spacing == 0 => (on(OpKind::FpDivide, 9, 8), false),
                _ => (on(OpKind::Integer, 1, 1), false),
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

    fn branch(source: u8) -> Op {
        let mut op = Op::new(OpKind::Branch, 0);
        op.sources[0] = Some(Register::general(source));
        op.branch = Some(Branch {
            turn: BranchKind::Conditional,
            taken: true,
            target: 8,
        });
        op
    }

    #[test]
    fn branch_resolves_when_its_operands_are_ready() {
        // 19 operations, then a mispredicted branch: of a register that no instruction writes, and
        // of the end of a chain of 19 that takes as long as 19 additions, less 20 of 4 per cycle.
        let program = |source: u8| {
            let op = move |i: u32| match i % 20 {
                19 => (branch(source), true),
                _ => (on(OpKind::Integer, 1, 1), false),
            };
            let [tagged, gshare] = counts((0..2000).map(op)).branches.resolution();
            assert_eq!(gshare, None);
            tagged.unwrap()
        };
        let (behind_nothing, behind_chain) = (program(9), program(1));
        assert!((behind_nothing.cycles - 1.0).abs() < 0.1);
        assert_eq!(
            (behind_nothing.absorbed, behind_nothing.misses),
            ([0.0; 2], 0.0)
        );
        assert!((behind_chain.cycles - (20.0 - 5.0)).abs() < 1.5);
        // Half as wide, dispatch takes five cycles more, in which the chain goes on; a quarter as wide
        // it is as slow as the chain.
        let absorbed = behind_chain
            .absorbed
            .map(|share| share * behind_chain.cycles);
        assert!((absorbed[0] - 5.0).abs() < 1.0, "{absorbed:?}");
        assert!((absorbed[1] - 14.0).abs() < 1.5, "{absorbed:?}");
        assert_eq!(behind_chain.misses, 0.0);
    }

    #[test]
    fn turns_end_at_width_and_taken_branches() {
        // Runs of nine operations: three turns of four, two of six and eight, one of twelve.
        let ops = (0..9000_u32).map(|i| match i % 9 {
            8 => (branch(9), false),
            _ => (on(OpKind::Integer, 9, 8), false),
        });
        let turns = counts(ops).fetch_turns().unwrap();
        assert_eq!(
            turns.map(|turns| (turns * 9.0).round()),
            [3.0, 2.0, 2.0, 1.0]
        );
        assert_eq!(counts(std::iter::empty()).fetch_turns(), None);
    }

    #[test]
    fn program_of_unlike_parts_takes_longer_times() {
        let uneven = |length: u32| {
            let ops = (0..40_000_u32).map(move |i| match i / length % 2 {
                // A chain, and operations that wait for nothing.
                0 => (on(OpKind::FpAdd, 1, 1), false),
                _ => (on(OpKind::Integer, 9, 8), false),
            });
            counts(ops).unevenness()[0]
        };
        // Turn by turn within a window the chain hides what is dispatched with it.
        assert!(uneven(4) < 0.02, "{}", uneven(4));
        // Half of what is dispatched runs next to no chain.
        assert!((uneven(4000) - 0.44).abs() < 0.05, "{}", uneven(4000));
    }

    #[test]
    fn branch_waits_only_for_its_own_loads() {
        // A load from afar, a branch of what it loads or of nothing, and some additions.
        let misses = |source: u8| {
            let op = move |i: u32| match i % 50 {
                0 => {
                    let mut load = on(OpKind::Load, 5, 6);
                    load.data = Some(Access {
                        address: u64::from(i) << 12,
                        bytes: 8,
                        is_vector: false,
                    });
                    (load, false)
                }
                1 => (branch(source), true),
                _ => (on(OpKind::Integer, 1, 1), false),
            };
            let [tagged, _] = counts((0..5000).map(op)).branches.resolution();
            tagged.unwrap().misses
        };
        assert!((misses(6) - 1.0).abs() < 0.05, "{}", misses(6));
        assert_eq!(misses(9), 0.0);
    }
}
