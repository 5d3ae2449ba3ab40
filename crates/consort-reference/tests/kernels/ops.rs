//! Kernels as lists of operations, four bytes each, that start again at their end.

use consort_ops::{Access, Branch, BranchKind, Fusion, Op, OpKind, Register};

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

/// An operation that updates general register `number`.
fn update(number: u8, fusion: Fusion) -> Op {
    let mut op = Op::new(OpKind::Integer, 0);
    op.sources[0] = Some(Register::general(number));
    op.targets = [Some(Register::general(number)), Some(Register::FLAGS)];
    op.fusion = fusion;
    op
}

/// A load from the stack and its addition to a register: one instruction.
fn load_addition(number: u8) -> [Op; 2] {
    let mut load = read(Op::new(OpKind::Load, 0), DATA + u64::from(number) * 8);
    load.targets[0] = Some(Register::temporary(0));
    load.fusion = Fusion::Operand;
    let mut add = update(number, Fusion::Memory);
    add.sources[1] = Some(Register::temporary(0));
    add.first = false;
    [load, add]
}

/// A branch on the flags.
fn branch_on_flags(taken: bool) -> Op {
    let mut branch = Op::new(OpKind::Branch, 0);
    branch.sources[0] = Some(Register::FLAGS);
    branch.branch = Some(Branch {
        turn: BranchKind::Conditional,
        taken,
        target: CODE,
    });
    branch.fusion = Fusion::OnOrder;
    branch
}

/// The operations of rounds in a loop that counts down: `dec` and `jnz`. Instructions are four
/// bytes long.
fn in_loop(rounds: usize, round: impl Fn() -> Vec<Op>) -> Vec<Op> {
    let mut ops: Vec<Op> = (0..rounds).flat_map(|_| round()).collect();
    ops.push(update(15, Fusion::Increment));
    ops.push(branch_on_flags(true));
    let mut address = CODE;
    for (number, op) in ops.iter_mut().enumerate() {
        address += if op.first && number > 0 { 4 } else { 0 };
        op.address = address;
    }
    ops
}

/// Rounds of two additions of operands in memory and two of registers.
pub fn load_additions(rounds: usize) -> Vec<Op> {
    in_loop(rounds, || {
        let [one, other] = [0, 1].map(load_addition);
        let adds = [2, 3].map(|number| update(number, Fusion::Add));
        [one, other, adds].concat()
    })
}

/// Rounds of two additions of operands in memory, two of registers, and two of vectors.
pub fn mixed_additions(rounds: usize) -> Vec<Op> {
    in_loop(rounds, || {
        let [one, other] = [0, 1].map(load_addition);
        let adds = [2, 3].map(|number| update(number, Fusion::Add));
        let vectors = [0, 1].map(|number| {
            let mut op = Op::new(OpKind::Vector, 0);
            op.targets[0] = Some(Register::vector(number));
            op
        });
        [one, other, adds, vectors].concat()
    })
}

/// Rounds of two comparisons with branches that are never taken, and two additions.
pub fn fused_branches(rounds: usize) -> Vec<Op> {
    in_loop(rounds, || {
        let compare = |fusion| {
            let mut op = update(4, fusion);
            op.targets = [Some(Register::FLAGS), None];
            op
        };
        vec![
            compare(Fusion::Compare),
            branch_on_flags(false),
            update(2, Fusion::Add),
            update(3, Fusion::Add),
            compare(Fusion::Test),
            branch_on_flags(false),
        ]
    })
}

/// Floating-point additions of operands in memory that do not depend on each other.
pub fn slow_additions() -> Vec<Op> {
    let pair = |i: usize| {
        let [mut load, mut add] = load_addition(i as u8);
        (load.address, add.address) = (at(i), at(i));
        load.targets[0] = Some(Register::temporary(i as u8));
        add.kind = OpKind::FpAdd;
        add.sources = [Some(Register::temporary(i as u8)), None, None, None];
        add.targets = [Some(Register::vector(i as u8)), None];
        [load, add]
    };
    (0..16).flat_map(pair).collect()
}

/// Independent operations of eight bytes each.
pub fn wide_code(kib: u64) -> Vec<Op> {
    let wide = |i: u64| {
        let mut op = Op::new(OpKind::Integer, CODE + 8 * i);
        op.length = 8;
        op
    };
    (0..kib * 1024 / 8).map(wide).collect()
}
