//! The instruction set of a program, from the head of its ELF file
//! (`elf(5)`: `e_ident[EI_DATA]`, `e_machine`).

use consort_isa::Arch;
use std::fs::File;
use std::io::Read;

const MAGIC: &[u8] = b"\x7fELF";
/// Offset of `EI_DATA`, in which 1 means little-endian.
const DATA_AT: usize = 5;
const LITTLE_ENDIAN: u8 = 1;
/// Offset of `e_machine` in both classes.
const MACHINE_AT: usize = 18;
const HEAD_BYTES: usize = 20;

/// The instruction set of a file; `None` inside when it cannot be decoded,
/// `None` outside when the file cannot be read.
pub(super) fn arch_of_file(mut file: File) -> Option<Option<Arch>> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact(&mut head).ok()?;
    Some(arch_of_head(&head))
}

fn arch_of_head(head: &[u8; HEAD_BYTES]) -> Option<Arch> {
    if !head.starts_with(MAGIC) || head[DATA_AT] != LITTLE_ENDIAN {
        return None;
    }
    match u16::from_le_bytes([head[MACHINE_AT], head[MACHINE_AT + 1]]) {
        3 => Some(Arch::X86_32),
        62 => Some(Arch::X86_64),
        183 => Some(Arch::Aarch64),
        _ => None,
    }
}

/// The instruction set of this host's ordinary programs.
pub(super) fn host_arch() -> Option<Arch> {
    match std::env::consts::ARCH {
        "x86_64" => Some(Arch::X86_64),
        "x86" => Some(Arch::X86_32),
        "aarch64" => Some(Arch::Aarch64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(class: u8, data: u8, machine: u16) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(MAGIC);
        head[4] = class;
        head[5] = data;
        head[MACHINE_AT..].copy_from_slice(&machine.to_le_bytes());
        head
    }

    #[test]
    fn machines_are_told_apart() {
        let cases = [
            (head(2, 1, 62), Some(Arch::X86_64)),
            (head(1, 1, 62), Some(Arch::X86_64)), // x32: 64-bit code, short pointers
            (head(1, 1, 3), Some(Arch::X86_32)),
            (head(2, 1, 183), Some(Arch::Aarch64)),
            (head(2, 2, 21), None),
            ([0; HEAD_BYTES], None),
        ];
        for (head, expect) in cases {
            assert_eq!(arch_of_head(&head), expect);
        }
    }

    #[test]
    fn this_test_is_of_the_host() {
        let arch = arch_of_file(File::open("/proc/self/exe").unwrap());
        assert_eq!(arch, Some(host_arch()));
    }
}
