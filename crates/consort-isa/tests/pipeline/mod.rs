//! A small out-of-order processor whose truth is known.
//!
//! Instructions enter in order, start when their sources are ready, and retire in order. A timer
//! that strikes while an instruction is the oldest one lets it finish and names the one behind it.
//! Memory stalls are what is saved when every load hits.

use std::collections::HashMap;

use consort_isa::{ArchRegister, Instruction, InstructionClass, UnitLatency};

const ENTER_PER_CYCLE: u64 = 5;
const RETIRE_PER_CYCLE: usize = 8;
const WINDOW: usize = 224;
const HIT_CYCLES: u64 = 5;

/// A repeatable stream of numbers (xorshift64, Marsaglia 2003).
pub struct Draw(pub u64);

impl Draw {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One executed instruction and the cycles its load misses for, 0 for a hit.
#[derive(Clone, Copy)]
pub struct Executed {
    pub instruction: Instruction,
    pub miss_cycles: u64,
}

/// The cycle in which each executed instruction retires.
pub fn retirement(trace: &[Executed]) -> Vec<u64> {
    let mut ready = [0_u64; 128];
    let mut operands = HashMap::new();
    let mut retired: Vec<u64> = Vec::with_capacity(trace.len());
    for (index, executed) in trace.iter().enumerate() {
        let freed = index.checked_sub(WINDOW).map_or(0, |old| retired[old] + 1);
        let entered = freed.max(index as u64 / ENTER_PER_CYCLE);
        let (sources, destinations) = operands
            .entry(executed.instruction.address)
            .or_insert_with(|| operands_of(&executed.instruction));
        let started = sources
            .iter()
            .map(|&r| ready[r])
            .fold(entered + 1, u64::max);
        let done = started + latency(executed);
        for &mut register in destinations {
            ready[register] = done;
        }
        let previous = retired.last().copied().unwrap_or(0);
        let full = index
            .checked_sub(RETIRE_PER_CYCLE)
            .map_or(0, |old| retired[old] + 1);
        retired.push(done.max(previous).max(full));
    }
    retired
}

/// The share of cycles that misses cost.
pub fn true_memory_share(trace: &[Executed]) -> f64 {
    let hits: Vec<Executed> = trace
        .iter()
        .map(|executed| Executed {
            miss_cycles: 0,
            ..*executed
        })
        .collect();
    1.0 - total_cycles(&hits) / total_cycles(trace)
}

/// Addresses that a timer names at `count` random moments.
pub fn sample(trace: &[Executed], count: usize, draw: &mut Draw) -> Vec<u64> {
    let retired = retirement(trace);
    let end = retired[trace.len() - 2];
    (0..count)
        .map(|_| {
            let moment = draw.below(end);
            let oldest = retired.partition_point(|&cycle| cycle <= moment);
            trace[oldest + 1].instruction.address
        })
        .collect()
}

fn total_cycles(trace: &[Executed]) -> f64 {
    let cycles = retirement(trace).last().copied().unwrap_or(0);
    f64::from(u32::try_from(cycles).unwrap())
}

fn latency(executed: &Executed) -> u64 {
    let load = if executed.instruction.memory.reads {
        HIT_CYCLES + executed.miss_cycles
    } else {
        0
    };
    let unit = match (executed.instruction.unit, executed.instruction.class) {
        (UnitLatency::Long, _) => 25,
        (UnitLatency::Pipelined, _) => 4,
        (UnitLatency::Short, InstructionClass::Load) => 0,
        (UnitLatency::Short, _) => 1,
    };
    load + unit
}

/// The numbers of the registers read and written.
fn operands_of(instruction: &Instruction) -> (Vec<usize>, Vec<usize>) {
    (
        registers(|register| instruction.reads.contains(register)),
        registers(|register| instruction.writes.contains(register)),
    )
}

fn registers(wanted: impl Fn(ArchRegister) -> bool) -> Vec<usize> {
    let general = (0..32).map(|n| (ArchRegister::General(n), usize::from(n)));
    let vector = (0..32).map(|n| (ArchRegister::Vector(n), 32 + usize::from(n)));
    let others = [(ArchRegister::Flags, 100), (ArchRegister::X87, 101)];
    general
        .chain(vector)
        .chain(others)
        .filter(|&(register, _)| wanted(register))
        .map(|(_, index)| index)
        .collect()
}
