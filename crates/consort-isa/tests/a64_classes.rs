//! The class and memory use of A64 instructions of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use consort_isa::{
    Arch, ArchRegister, FlowKind, Instruction, InstructionClass, UnitLatency, decode,
};

const BASE: u64 = 0x1000;

fn one(word: u32) -> Instruction {
    decode(Arch::Aarch64, &word.to_le_bytes(), BASE).unwrap()
}

fn check(class: InstructionClass, words: &[(u32, &str)]) {
    for &(word, text) in words {
        assert_eq!(one(word).class, class, "{text}");
    }
}

#[test]
fn floating_point_arithmetic() {
    check(
        InstructionClass::Fp,
        &[
            (0x1e62_2820, "fadd d0, d1, d2"),
            (0x1f42_0c20, "fmadd d0, d1, d2, d3"),
            (0x4e62_d420, "fadd v0.2d, v1.2d, v2.2d"),
            (0x4e22_cc20, "fmla v0.4s, v1.4s, v2.4s"),
            (0x9e62_0020, "scvtf d0, x1"),
            (0x9e78_0020, "fcvtzs x0, d1"),
            (0x1e61_2000, "fcmp d0, d1"),
            (0x1e61_c020, "fsqrt d0, d1"),
            (0x65c0_8020, "fadd z0.d, p0/m, z0.d, z1.d"),
            (0x65a2_0020, "fmla z0.s, p0/m, z1.s, z2.s"),
            (0x6e42_fc20, "bfdot v0.4s, v1.8h, v2.8h"),
        ],
    );
}

#[test]
fn vector_work_that_is_not_arithmetic_on_numbers() {
    check(
        InstructionClass::Vector,
        &[
            (0x9e67_0020, "fmov d0, x1"),
            (0x1e62_0c20, "fcsel d0, d1, d2, eq"),
            (0x4ea2_8420, "add v0.4s, v1.4s, v2.4s"),
            (0x6f00_e400, "movi v0.2d, #0000000000000000"),
            (0x6e20_1c00, "eor v0.16b, v0.16b, v0.16b"),
            (0x4e28_4820, "aese v0.16b, v1.16b"),
            (0x5e02_4020, "sha256h q0, q1, v2.4s"),
            (0x4e02_0020, "tbl v0.16b, { v1.16b }, v2.16b"),
            (0x04a2_0020, "add z0.s, z1.s, z2.s"),
            (0x25e1_1c00, "whilelo p0.d, x0, x1"),
        ],
    );
}

#[test]
fn integer_work_and_atomics() {
    check(
        InstructionClass::Int,
        &[
            (0x8b02_0020, "add x0, x1, x2"),
            (0x9b02_0c20, "madd x0, x1, x2, x3"),
            (0x9ac2_0820, "udiv x0, x1, x2"),
            (0xb000_0000, "adrp x0, #4096"),
            (0x9a82_1020, "csel x0, x1, x2, ne"),
            (0xf280_0020, "movk x0, #1"),
            (0xf820_0041, "ldadd x0, x1, [x2]"),
            (0x88e0_fc41, "casal w0, w1, [x2]"),
            (0xf820_8041, "swp x0, x1, [x2]"),
            (0x04f0_e3e0, "incd x0"),
            (0xb37d_0c20, "bfi x0, x1, #3, #4"),
            (0x9ac2_4c20, "crc32x w0, w1, x2"),
        ],
    );
}

#[test]
fn loads() {
    check(
        InstructionClass::Load,
        &[
            (0xf940_0020, "ldr x0, [x1]"),
            (0xf862_7820, "ldr x0, [x1, x2, lsl #3]"),
            (0xf840_8420, "ldr x0, [x1], #8"),
            (0xa8c1_7bfd, "ldp x29, x30, [sp], #16"),
            (0x3dc0_0020, "ldr q0, [x1]"),
            (0x4c40_7800, "ld1 { v0.4s }, [x0]"),
            (0xf980_0000, "prfm pldl1keep, [x0]"),
            (0x5800_0040, "ldr x0, #8"),
            (0x885f_fc20, "ldaxr w0, [x1]"),
            (0xa5e1_4000, "ld1d { z0.d }, p0/z, [x0, x1, lsl #3]"),
            (0xc5c1_c000, "ld1d { z0.d }, p0/z, [x0, z1.d]"),
        ],
    );
}

#[test]
fn stores() {
    check(
        InstructionClass::Store,
        &[
            (0xf900_0020, "str x0, [x1]"),
            (0xa9bf_7bfd, "stp x29, x30, [sp, #-16]!"),
            (0x4c00_7800, "st1 { v0.4s }, [x0]"),
            (0x8802_7c20, "stxr w2, w0, [x1]"),
            (0xe540_e000, "st1w { z0.s }, p0, [x0]"),
        ],
    );
}

#[test]
fn branches() {
    check(
        InstructionClass::Branch,
        &[
            (0x1400_0004, "b #16"),
            (0x54ff_ffc1, "b.ne #-8"),
            (0xb400_0040, "cbz x0, #8"),
            (0x3718_0040, "tbnz w0, #3, #8"),
            (0x9400_0010, "bl #64"),
            (0xd63f_0020, "blr x1"),
            (0xd61f_0020, "br x1"),
            (0xd65f_03c0, "ret"),
        ],
    );
}

#[test]
fn the_rest() {
    check(
        InstructionClass::Other,
        &[
            (0xd503_201f, "nop"),
            (0xd503_245f, "bti c"),
            (0xd503_233f, "paciasp"),
            (0xd503_3bbf, "dmb ish"),
            (0xd503_3fdf, "isb"),
            (0xd400_0001, "svc #0"),
            (0xd53b_d040, "mrs x0, TPIDR_EL0"),
            (0xd420_0020, "brk #0x1"),
        ],
    );
}

#[test]
fn memory_use() {
    let load = one(0xf940_0020);
    assert!(load.memory.reads && !load.memory.writes && !load.memory.stack);
    let atomic = one(0xf820_0041);
    assert!(atomic.memory.reads && atomic.memory.writes && atomic.serialising);
    let push = one(0xa9bf_7bfd);
    assert!(push.memory.writes && push.memory.stack);
    let literal = one(0x5800_0040);
    assert!(literal.memory.reads);
    let address = one(0xb000_0000);
    assert!(!address.memory.reads);
}

#[test]
fn registers_of_loads_and_of_write_back() {
    // ldr x0, [x1], #8
    let load = one(0xf840_8420);
    assert!(load.writes.contains(ArchRegister::General(0)));
    assert!(load.writes.contains(ArchRegister::General(1)));
    assert!(load.address_registers.contains(ArchRegister::General(1)));
    // ldr x0, [x1, x2, lsl #3]
    let indexed = one(0xf862_7820);
    assert!(indexed.address_registers.contains(ArchRegister::General(2)));
    // ldp x29, x30, [sp], #16
    let pair = one(0xa8c1_7bfd);
    assert!(pair.writes.contains(ArchRegister::General(29)));
    assert!(pair.writes.contains(ArchRegister::General(30)));
    // ld1d { z0.d }, p0/z, [x0, x1, lsl #3]
    let predicated = one(0xa5e1_4000);
    assert!(predicated.reads.contains(ArchRegister::Mask(0)));
    assert!(!predicated.writes.contains(ArchRegister::Mask(0)));
}

#[test]
fn sources_and_destinations() {
    // str x0, [x1]
    let store = one(0xf900_0020);
    assert!(store.reads.contains(ArchRegister::General(0)));
    assert!(store.writes.is_empty());
    // fmla v0.4s, v1.4s, v2.4s adds to what v0 holds.
    let accumulate = one(0x4e22_cc20);
    assert!(accumulate.reads.contains(ArchRegister::Vector(0)));
    // stxr w2, w0, [x1]
    let exclusive = one(0x8802_7c20);
    assert!(exclusive.writes.contains(ArchRegister::General(2)));
    assert!(exclusive.reads.contains(ArchRegister::General(0)));
    // casal w0, w1, [x2]
    let swap = one(0x88e0_fc41);
    assert!(swap.reads.contains(ArchRegister::General(0)));
    assert!(swap.writes.contains(ArchRegister::General(0)));
}

#[test]
fn branch_targets() {
    assert_eq!(one(0x1400_0004).flow, FlowKind::Jump(Some(BASE + 16)));
    assert_eq!(one(0x54ff_ffc1).flow, FlowKind::Conditional(Some(BASE - 8)));
    assert_eq!(one(0xb400_0040).flow, FlowKind::Conditional(Some(BASE + 8)));
    assert_eq!(one(0x3718_0040).flow, FlowKind::Conditional(Some(BASE + 8)));
    assert_eq!(one(0x9400_0010).flow, FlowKind::Call(Some(BASE + 64)));
    assert_eq!(one(0xd63f_0020).flow, FlowKind::Call(None));
    assert_eq!(one(0xd61f_0020).flow, FlowKind::Jump(None));
    assert_eq!(one(0xd65f_03c0).flow, FlowKind::Return);
    assert_eq!(one(0xd420_0020).flow, FlowKind::Stop);
    assert_eq!(one(0xd400_0001).flow, FlowKind::Next);
}

#[test]
fn long_units() {
    assert_eq!(one(0x9ac2_0820).unit, UnitLatency::Long);
    assert_eq!(one(0x1e61_c020).unit, UnitLatency::Long);
    assert_eq!(one(0x1e62_2820).unit, UnitLatency::Pipelined);
    assert_eq!(one(0x8b02_0020).unit, UnitLatency::Short);
}

#[test]
fn zeros_and_half_words_are_no_code() {
    assert!(decode(Arch::Aarch64, &[0; 4], BASE).is_err());
    assert!(decode(Arch::Aarch64, &[0x20, 0x28], BASE).is_err());
}
