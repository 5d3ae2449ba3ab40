//! Suspicions of instructions that are slow.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use consort_isa::{
    Arch, BlockEntry, BlockFacts, CodeBytes, GENERAL_REGISTERS, InstructionClass, RegisterValues,
    Suspicion,
};

const BASE: u64 = 0x1000;

fn block(arch: Arch, bytes: &[u8], offset: u64) -> BlockFacts {
    let code = CodeBytes {
        arch,
        bytes,
        base: BASE,
    };
    BlockFacts::build(code, BASE + offset, &[BASE]).unwrap()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn behind_the_load_of_a_walk_is_memory_for_certain() {
    // 1: mov rdi,[rdi]; dec rsi; jne 1b
    let bytes = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8];
    let block = block(Arch::X86_64, &bytes, 3);
    let behind = block.index_of(BASE + 3).unwrap();
    assert_eq!(block.instructions()[behind].class, InstructionClass::Int);
    let memory = Suspicion::Memory { chained: true };
    assert_eq!(block.suspicions()[..2], [Suspicion::None, memory]);
    assert_eq!(block.index_of(BASE + 1), None);
}

#[test]
fn a_load_behind_a_comparison_and_its_branch_is_seen() {
    // cmp rax,[rdi]; je +2; inc rcx; ret
    let bytes = [0x48, 0x3b, 0x07, 0x74, 0x04, 0x48, 0xff, 0xc1, 0xc3];
    let block = block(Arch::X86_64, &bytes, 5);
    assert_eq!(block.entry(), BlockEntry::Fallthrough);
    assert_eq!(block.suspicions()[0], Suspicion::Memory { chained: false });
}

#[test]
fn stack_loads_are_above_suspicion() {
    // mov rax,[rsp+8]; add rax,rcx; ret
    let bytes = [0x48, 0x8b, 0x44, 0x24, 0x08, 0x48, 0x01, 0xc8, 0xc3];
    let block = block(Arch::X86_64, &bytes, 0);
    assert!(
        block.suspicions().iter().all(|s| *s == Suspicion::None),
        "{block:?}"
    );
}

#[test]
fn the_first_user_of_a_load_is_suspected_and_later_ones_are_not() {
    // mov rax,[rdi]; inc rcx; add rdx,rax; add rbx,rax; ret
    let bytes = [
        0x48, 0x8b, 0x07, 0x48, 0xff, 0xc1, 0x48, 0x01, 0xc2, 0x48, 0x01, 0xc3, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 0);
    let memory = Suspicion::Memory { chained: false };
    assert_eq!(
        block.suspicions()[..4],
        [Suspicion::None, memory, memory, Suspicion::None]
    );
}

#[test]
fn division_and_arithmetic_on_memory() {
    // div rcx; inc rax; addsd xmm0,[rdi]; inc rax; ret
    let bytes = [
        0x48, 0xf7, 0xf1, 0x48, 0xff, 0xc0, 0xf2, 0x0f, 0x58, 0x07, 0x48, 0xff, 0xc0, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 0);
    let expected = [
        Suspicion::Unit,
        Suspicion::Unit,
        Suspicion::None,
        Suspicion::MemoryOrUnit,
    ];
    assert_eq!(block.suspicions()[..4], expected);
}

#[test]
fn arm_blames_the_load_itself_and_the_instruction_behind_it() {
    // 1: ldr x0,[x0]; subs x1,x1,#1; b.ne 1b
    let bytes = words(&[0xf940_0000, 0xf100_0421, 0x54ff_ffc1]);
    let block = block(Arch::Aarch64, &bytes, 4);
    assert!(block.is_loop());
    let walk = Suspicion::Memory { chained: true };
    assert_eq!(*block.suspicions(), [walk, walk, Suspicion::None]);
}

#[test]
fn a_block_behind_a_call_starts_at_the_front_end() {
    // call +0; inc rax; inc rcx; ret
    let bytes = [
        0xe8, 0, 0, 0, 0, 0x48, 0xff, 0xc0, 0x48, 0xff, 0xc1, 0x48, 0xff, 0xc2, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 8);
    assert_eq!(block.start(), BASE + 5);
    assert_eq!(block.suspicions()[0], Suspicion::FrontEnd);
    assert_eq!(block.suspicions()[2], Suspicion::None);
}

#[test]
fn an_address_outside_is_an_error_that_says_so() {
    let code = CodeBytes {
        arch: Arch::X86_64,
        bytes: &[0x90],
        base: BASE,
    };
    let error = BlockFacts::build(code, BASE + 1, &[]).unwrap_err();
    let expected = "address 0x1001 lies outside the code at 0x1000 (1 bytes)";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_target_of_a_branch_that_compares_memory_is_suspected_of_memory() {
    // cmp rax,[rdi]; jae +4; inc rcx; ret; nop; inc rdx; inc rbx; ret
    let bytes = [
        0x48, 0x3b, 0x07, 0x73, 0x05, 0x48, 0xff, 0xc1, 0xc3, 0x90, 0x48, 0xff, 0xc2, 0x48, 0xff,
        0xc3, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 10);
    assert_eq!(block.start(), BASE + 10);
    assert_eq!(block.suspicions()[0], Suspicion::Memory { chained: false });
    // What it was about is known as long as the register is as it was.
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    values.0[7] = 0x7000;
    let access = block.memory_access_at(BASE + 10, &values).unwrap();
    assert_eq!(access.address, 0x7000);
}

#[test]
fn a_comparison_behind_the_block_that_jumps_back_to_it_is_seen() {
    // 1: inc rdx; test rsi,rsi; je 2f; inc rbx; cmp [rdi+8],rax; jne 1b; 2: ret
    let bytes = [
        0x48, 0xff, 0xc2, 0x48, 0x85, 0xf6, 0x74, 0x09, 0x48, 0xff, 0xc3, 0x48, 0x39, 0x47, 0x08,
        0x75, 0xef, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 0);
    assert_eq!(block.suspicions()[0], Suspicion::Memory { chained: false });
}

#[test]
fn a_branch_upon_registers_leaves_its_target_to_the_front_end() {
    // cmp rax,rdi; jae +5; inc rcx; ret; nop; inc rdx; inc rbx; ret
    let bytes = [
        0x48, 0x39, 0xf8, 0x73, 0x05, 0x48, 0xff, 0xc1, 0xc3, 0x90, 0x48, 0xff, 0xc2, 0x48, 0xff,
        0xc3, 0xc3,
    ];
    let block = block(Arch::X86_64, &bytes, 10);
    assert_eq!(block.suspicions()[0], Suspicion::FrontEnd);
}

#[test]
fn a_loop_knows_its_strides_and_its_least_time() {
    // 1: mov rax,[rdi+rcx*8]; add rdx,rax; inc rcx; cmp rcx,rsi; jb 1b
    let bytes = [
        0x48, 0x8b, 0x04, 0xcf, 0x48, 0x01, 0xc2, 0x48, 0xff, 0xc1, 0x48, 0x39, 0xf1, 0x72, 0xf1,
    ];
    let block = block(Arch::X86_64, &bytes, 0);
    let rounds = block.rounds().unwrap();
    assert_eq!(rounds.least_cycles, 1.0);
    let strides: Vec<i64> = rounds.strides.iter().map(|stride| stride.bytes).collect();
    assert_eq!(strides, [8]);
}

#[test]
fn a_walk_along_pointers_has_no_stride_and_takes_the_time_of_its_load() {
    // 1: mov rdi,[rdi]; dec rsi; jne 1b
    let bytes = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8];
    let block = block(Arch::X86_64, &bytes, 0);
    let rounds = block.rounds().unwrap();
    assert_eq!((rounds.least_cycles, rounds.strides.len()), (5.0, 0));
    // Behind the load its result is the address of the next one.
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    values.0[7] = 0x9000;
    assert_eq!(
        block.memory_access_at(BASE + 3, &values).unwrap().address,
        0x9000
    );
}

#[test]
fn a_walk_by_indices_with_a_check_of_bounds_is_chained_and_tells_its_addresses() {
    // 1: mov r8d,r8d; cmp rsi,r8; jbe +0x2d; shl r8,6; mov r8d,[rdx+r8]; dec rax; jne 1b
    let bytes = [
        0x45, 0x89, 0xc0, 0x4c, 0x39, 0xc6, 0x76, 0x2d, 0x49, 0xc1, 0xe0, 0x06, 0x46, 0x8b, 0x04,
        0x02, 0x48, 0xff, 0xc8, 0x75, 0xeb,
    ];
    let block = block(Arch::X86_64, &bytes, 8);
    assert_eq!(block.start(), BASE + 8);
    let behind_the_load = block.index_of(BASE + 16).unwrap();
    let chained = Suspicion::Memory { chained: true };
    assert_eq!(block.suspicions()[behind_the_load], chained);
    let mut values = RegisterValues([0; GENERAL_REGISTERS]);
    (values.0[2], values.0[8]) = (0x10_0000, 0xff_0000_0003);
    // The next line: the upper half of the index is dropped.
    let access = block.memory_access_at(BASE + 16, &values).unwrap();
    assert_eq!(access.address, 0x10_00c0);
}
