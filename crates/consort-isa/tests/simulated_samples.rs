//! The estimate against a processor model whose truth is known.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

mod pipeline;

use std::collections::HashMap;
use std::sync::Arc;

use consort_isa::{Arch, BlockFacts, CodeBytes, Estimate, Estimator, Instruction, decode};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use pipeline::{Draw, Executed, sample, true_memory_share};

const BASE: u64 = 0x1000;

/// A program: its bytes and its instructions in order of address.
struct Program {
    bytes: Vec<u8>,
    instructions: Vec<Instruction>,
}

impl Program {
    fn new(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Self {
        let mut assembler = CodeAssembler::new(64).unwrap();
        build(&mut assembler).unwrap();
        let bytes = assembler.assemble(BASE).unwrap();
        let mut instructions = Vec::new();
        let mut offset = 0;
        while offset < bytes.len() {
            let address = BASE + offset as u64;
            let instruction = decode(Arch::X86_64, &bytes[offset..], address).unwrap();
            offset += usize::from(instruction.len);
            instructions.push(instruction);
        }
        Self {
            bytes,
            instructions,
        }
    }

    /// A program that is one loop.
    fn looping(build: impl FnOnce(&mut CodeAssembler, CodeLabel) -> Result<(), IcedError>) -> Self {
        Self::new(|a| {
            let mut head = a.create_label();
            a.set_label(&mut head)?;
            build(a, head)
        })
    }

    /// Runs it `rounds` times; `miss` gives the extra cycles of a load by round.
    fn run(&self, rounds: u64, miss: impl Fn(u64) -> u64) -> Vec<Executed> {
        let round = |number| {
            let miss_cycles = miss(number);
            self.instructions.iter().map(move |&instruction| Executed {
                instruction,
                miss_cycles,
            })
        };
        (0..rounds).flat_map(round).collect()
    }

    fn estimate(&self, samples: &[u64]) -> Estimate {
        let mut estimator = Estimator::new();
        self.add(&mut estimator, samples, 1.0);
        estimator.finish().unwrap()
    }

    fn add(&self, estimator: &mut Estimator, samples: &[u64], weight: f64) {
        let mut blocks = HashMap::new();
        for &address in samples {
            let block = blocks.entry(address).or_insert_with(|| self.block(address));
            estimator.add(block, address, weight);
        }
    }

    fn block(&self, address: u64) -> Arc<BlockFacts> {
        let code = CodeBytes {
            arch: Arch::X86_64,
            bytes: &self.bytes,
            base: BASE,
        };
        Arc::new(BlockFacts::build(code, address, &[BASE]).unwrap())
    }

    /// The estimate from `count` samples, and the true memory share.
    fn observe(&self, trace: &[Executed], count: usize, seed: u64) -> (Estimate, f64) {
        let samples = sample(trace, count, &mut Draw(seed));
        (self.estimate(&samples), true_memory_share(trace))
    }
}

/// Sixteen instructions of integer work around one load.
fn integer_loop() -> Program {
    Program::looping(|a, head| {
        a.mov(r9, qword_ptr(rdi + rcx))?;
        for register in [rax, rbx, r10, r11, r12, r13] {
            a.add(register, 1)?;
            a.xor(register, 3)?;
        }
        a.add(r14, r9)?;
        a.dec(rsi)?;
        a.jne(head)
    })
}

/// The same around a load whose address is the loaded value.
fn walking_loop() -> Program {
    Program::looping(|a, head| {
        a.mov(rdi, qword_ptr(rdi))?;
        for register in [rax, rbx, r10, r11, r12, r13] {
            a.add(register, 1)?;
            a.xor(register, 3)?;
        }
        a.dec(rsi)?;
        a.jne(head)
    })
}

#[test]
fn hits_in_a_busy_loop_never_make_a_memory_thread() {
    for (program, seed) in [(integer_loop(), 11), (walking_loop(), 12)] {
        let trace = program.run(2_000, |_| 0);
        let (estimate, truth) = program.observe(&trace, 500, seed);
        assert!(truth.abs() < 1e-9);
        // A hit cannot be told from a short stall, so half of the time behind
        // the load may be charged, and never more.
        assert!(estimate.memory_stall_share < 0.5, "{estimate:?}");
        assert!(estimate.memory_bounds.low < 0.02, "{estimate:?}");
        assert!(estimate.memory_stall_share < 0.5 && estimate.fp_usage() < 0.05);
    }
}

#[test]
fn misses_of_a_walk_are_found_from_the_second_level_to_memory() {
    for miss_cycles in [10, 40, 100, 300] {
        let program = walking_loop();
        let trace = program.run(1_000, |_| miss_cycles);
        let (estimate, truth) = program.observe(&trace, 1_000, miss_cycles);
        let error = (estimate.memory_stall_share - truth).abs();
        assert!(error < 0.15, "{miss_cycles}: {estimate:?}, true {truth:.2}");
    }
}

#[test]
fn rare_misses_count_for_their_time() {
    let program = walking_loop();
    let trace = program.run(2_000, |round| if round % 8 == 0 { 300 } else { 0 });
    let (estimate, truth) = program.observe(&trace, 1_000, 5);
    let error = (estimate.memory_stall_share - truth).abs();
    assert!(error < 0.15, "{estimate:?}, true {truth:.2}");
}

#[test]
fn a_chain_of_additions_is_the_unit_and_not_memory() {
    let program = Program::looping(|a, head| {
        a.addsd(xmm0, xmm1)?;
        a.addsd(xmm0, xmm2)?;
        for register in [rax, rbx, r10, r11, r12] {
            a.add(register, 1)?;
            a.xor(register, 3)?;
        }
        a.dec(rsi)?;
        a.jne(head)
    });
    let trace = program.run(2_000, |_| 0);
    let (estimate, _) = program.observe(&trace, 500, 3);
    // Eight cycles of latency against three of entering fourteen instructions.
    assert!(estimate.stack.unit > 0.5, "{estimate:?}");
    assert!(estimate.memory_stall_share < 0.01, "{estimate:?}");
}

/// Two hundred small blocks, each with a load, run in random order.
fn spread_program() -> Program {
    Program::new(|a| {
        for _ in 0..200 {
            let mut next = a.create_label();
            a.mov(r9, qword_ptr(rdi + rcx))?;
            a.add(rax, 1)?;
            a.xor(rbx, 3)?;
            a.add(r10, r9)?;
            a.test(r11, r11)?;
            a.jne(next)?;
            a.set_label(&mut next)?;
        }
        a.ret()
    })
}

fn run_spread(program: &Program, miss_cycles: u64) -> Vec<Executed> {
    let mut draw = Draw(77);
    let mut trace = Vec::new();
    for _ in 0..5_000 {
        let block = usize::try_from(draw.below(200)).unwrap() * 6;
        for &instruction in &program.instructions[block..block + 6] {
            let missing = if draw.below(4) == 0 { miss_cycles } else { 0 };
            trace.push(Executed {
                instruction,
                miss_cycles: missing,
            });
        }
    }
    trace
}

#[test]
fn blocks_with_few_samples_each_speak_together() {
    let program = spread_program();
    let (hit, _) = program.observe(&run_spread(&program, 0), 400, 21);
    assert!(hit.memory_stall_share < 0.35, "{hit:?}");
    let (miss, truth) = program.observe(&run_spread(&program, 2_000), 400, 22);
    // Their clock is calibrated by the least time that their instructions take,
    // which makes the stalls look shorter than they are.
    assert!(truth > 0.9);
    assert!(
        miss.memory_stall_share > truth - 0.4,
        "{miss:?}, true {truth:.2}"
    );
    assert!(miss.memory_stall_share >= 0.5);
    // 200 blocks of about 21 bytes are 66 lines of 64 bytes.
    let true_bytes = program.bytes.len() as u64;
    let estimated = hit.footprint.estimated_bytes;
    assert!(
        estimated.abs_diff(true_bytes) < true_bytes / 5,
        "{estimated}, true {true_bytes}"
    );
}

#[test]
fn the_mix_is_free_of_skid() {
    // All samples of the walk fall behind its load, none on it.
    let program = walking_loop();
    let trace = program.run(1_000, |_| 300);
    let (estimate, _) = program.observe(&trace, 500, 9);
    let true_load = 1.0 / 15.0;
    assert!((estimate.mix.load - true_load).abs() < 1e-9);
    assert!(estimate.mix_at_address.load < true_load / 2.0);
    assert!((estimate.mix.int - 13.0 / 15.0).abs() < 1e-9);
}

#[test]
fn five_samples_are_enough_for_a_bare_walk() {
    let program = Program::looping(|a, head| {
        a.mov(rdi, qword_ptr(rdi))?;
        a.dec(rsi)?;
        a.jne(head)
    });
    let trace = program.run(1_000, |_| 200);
    let (estimate, truth) = program.observe(&trace, 5, 4);
    assert!(
        (estimate.memory_stall_share - truth).abs() < 0.15,
        "{estimate:?}"
    );
    assert!(estimate.memory_stall_share >= 0.5);
}

#[test]
fn time_in_two_loops_weighs_their_mixes() {
    let fp = Program::looping(|a, head| {
        for register in [xmm0, xmm1, xmm2, xmm3] {
            a.mulsd(register, xmm8)?;
        }
        a.dec(rsi)?;
        a.jne(head)
    });
    let int = integer_loop();
    let mut estimator = Estimator::new();
    for (program, weight, seed) in [(&fp, 3.0, 1), (&int, 1.0, 2)] {
        let samples = sample(&program.run(500, |_| 0), 100, &mut Draw(seed));
        program.add(&mut estimator, &samples, weight);
    }
    let estimate = estimator.finish().unwrap();
    // Three quarters of the time in a loop with four of six instructions fp.
    assert!(
        (estimate.fp_usage() - 0.75 * 4.0 / 6.0).abs() < 1e-9,
        "{estimate:?}"
    );
    assert!(estimate.fp_usage() >= 0.15);
}
