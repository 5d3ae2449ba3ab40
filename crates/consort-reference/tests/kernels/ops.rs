//! Kernels as lists of operations, four bytes each, that start again at their end.

use consort_ops::{Access, Branch, BranchKind, Op, OpKind, Register};

const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;
const LINE: u64 = 64;

fn at(index: usize) -> u64 {
    CODE + 4 * index as u64
}

fn read(mut op: Op, address: u64) -> Op {
    op.data = Some(Access {
        address,
        bytes: 8,
        is_vector: false,
    });
    op
}

/// Operations of a kind, each on the result of the one before.
pub fn chain(kind: OpKind) -> Vec<Op> {
    let link = |i| {
        let mut op = Op::new(kind, at(i));
        op.sources[0] = Some(Register::general(1));
        op.targets[0] = Some(Register::general(1));
        op
    };
    (0..32).map(link).collect()
}

/// Operations of a kind that do not depend on each other.
pub fn independent(kind: OpKind) -> Vec<Op> {
    let one = |i: usize| {
        let mut op = Op::new(kind, at(i));
        let vector = kind.is_vector_side();
        let number = i as u8 % 32;
        let target = if vector {
            Register::vector(number)
        } else {
            Register::general(number)
        };
        op.targets[0] = Some(target);
        match kind {
            OpKind::Load | OpKind::Store => read(op, DATA + 8 * i as u64),
            _ => op,
        }
    };
    (0..32).map(one).collect()
}

/// Lines of an array in an order without a pattern that visits each once: of a linear
/// congruential generator with full period (lines a power of two).
fn scattered(lines: u64) -> impl Iterator<Item = u64> {
    let step = move |line: &u64| Some((line * 1_664_525 + 1_013_904_223) % lines);
    std::iter::successors(Some(0), step).take(lines as usize)
}

/// Loads over an array, each at the address that the one before has read.
pub fn chase(kib: u64) -> Vec<Op> {
    loads(scattered(kib * 1024 / LINE), true)
}

/// The loop that walks a scattered list, as a compiler emits it: per element the address of the
/// next, computed from what was read, and the load; a counter and a taken branch after `unrolled`
/// elements.
pub fn chase_loop(kib: u64, unrolled: usize) -> Vec<Op> {
    let [pointer, address, counter] = [1, 2, 3].map(Register::general);
    let lines: Vec<u64> = scattered(kib * 1024 / LINE).collect();
    let round = |lines: &[u64]| {
        let mut ops = Vec::new();
        for line in lines {
            let mut next = Op::new(OpKind::Integer, at(ops.len()));
            next.sources[0] = Some(pointer);
            next.targets[0] = Some(address);
            ops.push(next);
            let mut load = read(Op::new(OpKind::Load, at(ops.len())), DATA + line * LINE);
            load.sources[0] = Some(address);
            load.targets[0] = Some(pointer);
            ops.push(load);
        }
        let mut count = Op::new(OpKind::Integer, at(ops.len()));
        (count.sources[0], count.targets[0]) = (Some(counter), Some(counter));
        ops.push(count);
        let mut branch = Op::new(OpKind::Branch, at(ops.len()));
        branch.branch = Some(Branch {
            turn: BranchKind::Conditional,
            taken: true,
            target: at(0),
        });
        ops.push(branch);
        ops
    };
    lines.chunks_exact(unrolled).flat_map(round).collect()
}

/// Independent loads at scattered lines of an array.
pub fn scatter(kib: u64) -> Vec<Op> {
    loads(scattered(kib * 1024 / LINE), false)
}

/// Independent loads of one line after another.
pub fn stream(kib: u64) -> Vec<Op> {
    loads(0..kib * 1024 / LINE, false)
}

fn loads(lines: impl Iterator<Item = u64>, dependent: bool) -> Vec<Op> {
    let load = |(i, line): (usize, u64)| {
        let mut op = read(Op::new(OpKind::Load, at(i % 64)), DATA + line * LINE);
        op.targets[0] = Some(Register::general(1));
        op.sources[0] = dependent.then_some(Register::general(1));
        op
    };
    lines.enumerate().map(load).collect()
}

/// Stores to one line after another.
pub fn store_stream(kib: u64) -> Vec<Op> {
    let lines = (0..kib * 1024 / LINE).enumerate();
    lines
        .map(|(i, line)| read(Op::new(OpKind::Store, at(i % 64)), DATA + line * LINE))
        .collect()
}

/// Eleven independent operations and a branch, taken or not as `outcome` says of its number.
pub fn branches(count: usize, outcome: impl Fn(usize) -> bool) -> Vec<Op> {
    let mut ops = Vec::new();
    for round in 0..count {
        for i in 0..11 {
            let mut op = Op::new(OpKind::Integer, at(i));
            op.targets[0] = Some(Register::general(i as u8));
            ops.push(op);
        }
        let mut branch = Op::new(OpKind::Branch, at(11));
        branch.branch = Some(Branch {
            turn: BranchKind::Conditional,
            taken: outcome(round),
            target: at(0),
        });
        ops.push(branch);
    }
    ops
}

/// A coin, the same for the same number (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
pub fn coin(number: usize) -> bool {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) & 1 == 1
}

/// A value that goes through memory: each load reads what the store before has written.
pub fn through_memory() -> Vec<Op> {
    let round = |i: usize| {
        let mut store = read(Op::new(OpKind::Store, at(2 * i)), DATA);
        store.sources[0] = Some(Register::general(1));
        let mut load = read(Op::new(OpKind::Load, at(2 * i + 1)), DATA);
        load.targets[0] = Some(Register::general(1));
        [store, load]
    };
    (0..16).flat_map(round).collect()
}

/// Independent operations over more code than an L1I holds.
pub fn long_code(kib: u64) -> Vec<Op> {
    let ops = kib * 1024 / 4;
    (0..ops as usize)
        .map(|i| Op::new(OpKind::Integer, at(i)))
        .collect()
}
