//! One round of a loop: how long it takes at least, and how far it moves through memory.

use super::Operand;
use crate::arch::{L1_HIT_CYCLES, RETIRE_WIDTH};
use crate::{ArchRegister, Instruction, InstructionClass, UnitLatency};

/// Loads and stores that first-level caches serve per cycle: two loads and one store, the least of
/// the cores from 2011 on (Intel and AMD optimisation guides; some do three and two).
const LOADS_PER_CYCLE: f64 = 2.0;
const STORES_PER_CYCLE: f64 = 1.0;
/// Bytes that `rep stos` and `rep movs` write per cycle: the width of a store on AMD from Zen 2 on and
/// on Intel from Haswell to Skylake (their optimisation guides; some later cores do 64).
const REPEATED_STORE_BYTES_PER_CYCLE: f64 = 32.0;
/// Cycles that one element of another repeated string instruction takes, at least: `lods`, `scas`
/// and `cmps` go through memory element by element (Fog, "Instruction tables").
const ELEMENT_CYCLES: f64 = 1.0;
/// Cycles of an addition or multiplication of floating-point numbers: 3 or 4 on AMD, 4 on Intel.
const PIPELINED_CYCLES: f64 = 4.0;
/// Cycles of a division: 10 to 20 on the same cores.
const LONG_CYCLES: f64 = 13.0;
/// Rounds after which the chains of a loop run in step, and rounds that are then timed.
const WARM_ROUNDS: usize = 4;
const TIMED_ROUNDS: usize = 8;
/// Registers that carry values: [`ArchRegister`]s have numbers below this.
const REGISTERS: usize = 128;

/// Movement of an operand from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    /// The operand.
    pub operand: Operand,
    /// Bytes per round, not 0.
    pub bytes: i64,
}

/// One round of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopRound {
    /// Cycles that a round takes at least with all data in the first-level cache.
    pub least_cycles: f64,
    /// The operands that move by constants.
    pub strides: Box<[Stride]>,
    /// True if these are all that the loop accesses, apart from fixed addresses and the stack.
    pub all_move: bool,
}

impl LoopRound {
    pub(super) fn from_body(body: &[Instruction]) -> Self {
        let strides = strides(body);
        Self {
            least_cycles: throughput_cycles(body).max(chain_cycles(body)),
            all_move: !strides.is_empty() && body.iter().all(|i| follows_strides(i, &strides)),
            strides,
        }
    }

    /// One round per element of a repeated string instruction. Programs clear the direction flag,
    /// so it goes upwards.
    pub(super) fn from_repeated(instruction: &Instruction) -> Option<Self> {
        let (bytes, operand) = (instruction.element_bytes?, instruction.operand?);
        let least_cycles = match instruction.class {
            InstructionClass::Store => f64::from(bytes) / REPEATED_STORE_BYTES_PER_CYCLE,
            _ => ELEMENT_CYCLES,
        };
        let bytes = i64::from(bytes);
        Some(Self {
            least_cycles,
            strides: [Stride { operand, bytes }].into(),
            all_move: true,
        })
    }
}

/// True if the instruction accesses no memory, or only memory that never misses, or memory that
/// moves by one of the strides.
fn follows_strides(instruction: &Instruction, strides: &[Stride]) -> bool {
    let memory = instruction.memory;
    // A load that writes no register only prefetches.
    let ahead = instruction.class == InstructionClass::Load && instruction.writes.is_empty();
    let accesses = (memory.reads || memory.writes) && !memory.stack && !ahead;
    let along = |operand: Operand| {
        operand.is_fixed()
            || strides
                .iter()
                .any(|s| s.operand.has_same_registers(operand))
    };
    !accesses || instruction.operand.is_some_and(along)
}

fn throughput_cycles(body: &[Instruction]) -> f64 {
    let count = |of: fn(&&Instruction) -> bool| body.iter().filter(of).count() as f64;
    let loads = count(|i| i.memory.reads) / LOADS_PER_CYCLE;
    let stores = count(|i| i.memory.writes) / STORES_PER_CYCLE;
    (body.len() as f64 / RETIRE_WIDTH).max(loads).max(stores)
}

/// Cycles per round of the longest chain of dependences from one round to the next: every
/// instruction starts when its operands are there.
fn chain_cycles(body: &[Instruction]) -> f64 {
    let mut ready = [0.0; REGISTERS];
    let mut end = 0.0;
    let mut warm = 0.0;
    for round in 0..WARM_ROUNDS + TIMED_ROUNDS {
        if round == WARM_ROUNDS {
            warm = end;
        }
        for instruction in body {
            end = f64::max(end, execute_instruction(instruction, &mut ready));
        }
    }
    (end - warm) / TIMED_ROUNDS as f64
}

/// Returns the cycle at which the instruction is done and its results are ready.
fn execute_instruction(instruction: &Instruction, ready: &mut [f64; REGISTERS]) -> f64 {
    let inputs = instruction.reads.numbers().map(|number| ready[number]);
    let done = inputs.fold(0.0, f64::max) + latency(instruction);
    for number in instruction.writes.numbers() {
        ready[number] = done;
    }
    done
}

fn latency(instruction: &Instruction) -> f64 {
    let unit = match instruction.unit {
        UnitLatency::Short => 1.0,
        UnitLatency::Pipelined => PIPELINED_CYCLES,
        UnitLatency::Long => LONG_CYCLES,
    };
    match (instruction.memory.reads, instruction.class) {
        (true, InstructionClass::Load) => L1_HIT_CYCLES,
        // The address does not depend on the other operand, so the load starts early.
        _ => unit,
    }
}

fn strides(body: &[Instruction]) -> Box<[Stride]> {
    let operands = body.iter().filter_map(|instruction| instruction.operand);
    let mut strides: Vec<Stride> = Vec::new();
    for operand in operands {
        let known = strides
            .iter()
            .any(|s| s.operand.has_same_registers(operand));
        if let (false, Some(bytes)) = (known, stride(body, operand)) {
            strides.push(Stride { operand, bytes });
        }
    }
    strides.into()
}

/// Bytes by which an operand moves per round; `None` if it does not move, or not by a constant.
fn stride(body: &[Instruction], operand: Operand) -> Option<i64> {
    let of = |register: Option<u8>| match register {
        Some(number) => advance(body, number),
        None => Some(0),
    };
    let scaled = of(operand.index)?.checked_mul(i64::from(operand.scale))?;
    let bytes = of(operand.base)?.checked_add(scaled)?;
    (bytes != 0).then_some(bytes)
}

/// Constant that a round adds to a register; `None` if it changes the register in any other way.
fn advance(body: &[Instruction], number: u8) -> Option<i64> {
    let writers = body
        .iter()
        .filter(|i| i.writes.contains(ArchRegister::General(number)));
    let constants = writers.map(|i| i.advance.filter(|a| a.0 == number));
    constants.map(|advance| advance.map(|(_, by)| by)).sum()
}
