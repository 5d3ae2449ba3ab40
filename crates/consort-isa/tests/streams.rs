//! Code that goes through memory in order: what its samples are about, and how long it waits.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::sync::Arc;

use consort_isa::{
    Arch, BlockFacts, CodeBytes, Estimate, Estimator, GENERAL_REGISTERS, RegisterValues,
    SamplePoint, SampledProcessor,
};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

const BASE: u64 = 0x1000;
const RBX: usize = 3;
const RSI: usize = 6;
const RDI: usize = 7;
const HOST: SampledProcessor = SampledProcessor {
    l1_bytes: Some(32 << 10),
    l2_bytes: Some(1 << 20),
    cycles_per_ns: Some(4.0),
};
const SAMPLE_NS: u64 = 4_000_000;

fn block(
    at: usize,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Arc<BlockFacts> {
    let mut assembler = CodeAssembler::new(64).unwrap();
    build(&mut assembler).unwrap();
    let bytes = assembler.assemble(BASE).unwrap();
    let code = CodeBytes {
        arch: Arch::X86_64,
        bytes: &bytes,
        base: BASE,
    };
    let whole = BlockFacts::build(code, BASE, &[BASE]).unwrap();
    let address = whole.instructions()[at].address;
    Arc::new(BlockFacts::build(code, address, &[BASE]).unwrap())
}

/// How the GNU C library fills: a threshold in memory, then one instruction that repeats.
fn fill(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.cmp(rdx, qword_ptr(0x2000))?;
    a.mov(rcx, rdx)?;
    a.rep().stosb()?;
    a.ret()
}

fn copy(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.mov(rcx, rdx)?;
    a.rep().movsb()?;
    a.ret()
}

fn scan(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.mov(rcx, rdx)?;
    a.repne().scasb()?;
    a.ret()
}

/// a[i] = b[i] + c[i], by one index and three bases, fetched ahead.
fn triad(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut head = a.create_label();
    a.set_label(&mut head)?;
    a.prefetcht0(byte_ptr(rdx + rax + 512))?;
    a.movupd(xmm0, xmmword_ptr(rdx + rax))?;
    a.movupd(xmm1, xmmword_ptr(rsi + rax))?;
    a.addpd(xmm0, xmm1)?;
    a.movupd(xmmword_ptr(rdi + rax), xmm0)?;
    a.add(rax, 16)?;
    a.cmp(rax, r8)?;
    a.jne(head)
}

/// The estimate from samples on one instruction, each `step` bytes further on, that begin anew
/// behind `data_bytes`.
fn estimate(block: &Arc<BlockFacts>, index: usize, step: u64, data_bytes: u64) -> Estimate {
    let mut estimator = Estimator::for_processor(HOST);
    let address = block.instructions()[index].address;
    for number in 0..60 {
        let mut values = RegisterValues([0; GENERAL_REGISTERS]);
        values.0[RDI] = 0x7000_0000 + number * step % data_bytes;
        values.0[RSI] = 0x6000_0000 + number * step % data_bytes;
        estimator.add_at(
            block,
            SamplePoint {
                address,
                accessed: block.memory_access_at(address, &values),
                pu: 0,
                time_ns: number * SAMPLE_NS,
                weight: SAMPLE_NS as f64,
            },
        );
    }
    estimator.finish().unwrap()
}

#[test]
fn repeated_store_is_about_what_it_fills() {
    let filling = block(2, fill);
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    values.0[RDI] = 0x7000;
    let at = filling.instructions()[2].address;
    assert_eq!(
        filling.memory_access_at(at, &values).unwrap().address,
        0x7000
    );
}

#[test]
fn repeated_copy_is_about_what_it_writes() {
    let copying = block(1, copy);
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    (values.0[RDI], values.0[RSI]) = (0x7000, 0x6000);
    let at = copying.instructions()[1].address;
    assert_eq!(
        copying.memory_access_at(at, &values).unwrap().address,
        0x7000
    );
}

#[test]
fn repeated_stores_at_memory_speed_wait() {
    // 8 bytes per ns are 2 per cycle, of 32.
    let step = 8 * SAMPLE_NS;
    for (block, index) in [(block(2, fill), 2), (block(1, copy), 1)] {
        let found = estimate(&block, index, step, 1 << 30);
        let error = (found.memory_stall_share - 0.9375).abs();
        assert!(error < 0.01, "{found:?}");
        assert!(found.bandwidth_share > 0.9, "{found:?}");
    }
}

#[test]
fn repeated_stores_to_near_data_do_not_wait() {
    for (block, index) in [(block(2, fill), 2), (block(1, copy), 1)] {
        // Any place in 8 KiB at a sample.
        let found = estimate(&block, index, 5_003, 8 << 10);
        assert!(found.memory_stall_share < 0.01, "{found:?}");
    }
}

#[test]
fn repeated_scan_as_fast_as_its_unit_does_not_wait() {
    let found = estimate(&block(1, scan), 1, 4 * SAMPLE_NS, 1 << 30);
    assert!(found.memory_stall_share < 0.01, "{found:?}");
}

#[test]
fn fixed_address_says_nothing_where_others_move() {
    // The literal is read before the sampled instruction, the array behind it.
    let loading = block(2, |a| {
        let mut head = a.create_label();
        a.set_label(&mut head)?;
        a.mulsd(xmm0, qword_ptr(0x2000))?;
        a.inc(rcx)?;
        a.xor(r9, r10)?;
        a.addsd(xmm0, qword_ptr(rbx + r11 * 8))?;
        a.xor(r11, rcx)?;
        a.jne(head)
    });
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    values.0[RBX] = 0x9000;
    let at = loading.instructions()[2].address;
    assert_eq!(
        loading.memory_access_at(at, &values).unwrap().address,
        0x9000
    );
    // Where nothing else is accessed it is what the code is about.
    let counting = block(0, |a| {
        let mut head = a.create_label();
        a.set_label(&mut head)?;
        a.inc(qword_ptr(0x2000))?;
        a.jmp(head)
    });
    let at = counting.instructions()[1].address;
    assert_eq!(
        counting.memory_access_at(at, &values).unwrap().address,
        0x2000
    );
}

#[test]
fn every_sample_of_a_stream_is_about_the_same_array() {
    let adding = block(0, triad);
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    (values.0[2], values.0[RSI], values.0[RDI]) = (0x5000, 0x6000, 0x7000);
    let operands = adding.instructions().iter().map(|instruction| {
        let access = adding.memory_access_at(instruction.address, &values);
        access.unwrap().operand.base
    });
    assert!(operands.eq([Some(2); 8]));
}

#[test]
fn few_samples_of_a_fast_stream_prove_that_it_leaves_the_caches() {
    let adding = block(0, triad);
    let mut estimator = Estimator::for_processor(HOST);
    // Ten pages are less than the second level holds, but all between them was gone through:
    // 16 bytes in 4 ns, 16 cycles where 1.5 would do for three loads.
    for number in 0..10 {
        let mut values = RegisterValues([0; GENERAL_REGISTERS]);
        values.0[0] = number * 4 * SAMPLE_NS;
        let address = adding.instructions()[number as usize % 7].address;
        let accessed = adding.memory_access_at(address, &values);
        let point = SamplePoint {
            address,
            accessed,
            pu: 0,
            time_ns: number * SAMPLE_NS,
            weight: SAMPLE_NS as f64,
        };
        estimator.add_at(&adding, point);
    }
    let found = estimator.finish().unwrap();
    let error = (found.memory_stall_share - 14.5 / 16.0).abs();
    assert!(error < 0.01, "{found:?}");
}
