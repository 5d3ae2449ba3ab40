//! Programs written byte by byte: static, without sections or symbols.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// mov ecx, 600,000,000; 4 x addsd/mulsd; dec ecx; jnz; exit(0).
pub(crate) const FP_64: &[u8] = &[
    0xb9, 0x00, 0x46, 0xc3, 0x23, 0xf2, 0x0f, 0x58, 0xc4, 0xf2, 0x0f, 0x58, 0xcc, 0xf2, 0x0f, 0x58,
    0xd4, 0xf2, 0x0f, 0x59, 0xdc, 0xff, 0xc9, 0x75, 0xec, 0xb8, 0x3c, 0x00, 0x00, 0x00, 0x31, 0xff,
    0x0f, 0x05,
];
/// mov ecx, 1,000,000,000; inc eax; inc edx; inc ebx; inc esi; dec ecx; jnz; exit(0). In 64-bit
/// mode the increments and the decrement would be prefixes of the branch.
pub(crate) const INT_32: &[u8] = &[
    0xb9, 0x00, 0xca, 0x9a, 0x3b, 0x40, 0x42, 0x43, 0x46, 0x49, 0x75, 0xf9, 0xb8, 0x01, 0x00, 0x00,
    0x00, 0x31, 0xdb, 0xcd, 0x80,
];

const BASE: u32 = 0x0040_0000;
/// Address of the first instruction of a 32-bit program, and of a 64-bit one.
const ENTRY_32: u32 = BASE + 52 + 32;
const ENTRY_64: u32 = BASE + 64 + 56;

/// jmp far 0x33:FP_64, out of 32-bit code into 64-bit code.
pub(crate) fn fp_64_behind_32() -> Vec<u8> {
    let mut code = vec![0xea];
    code.extend((ENTRY_32 + 7).to_le_bytes());
    code.extend([0x33, 0]);
    code.extend(FP_64);
    code
}

/// jmp far \[0x23:INT_32\], out of 64-bit code into 32-bit code.
pub(crate) fn int_32_behind_64() -> Vec<u8> {
    let mut code = vec![0xff, 0x2c, 0x25];
    code.extend((ENTRY_64 + 7).to_le_bytes());
    code.extend((ENTRY_64 + 13).to_le_bytes());
    code.extend([0x23, 0]);
    code.extend(INT_32);
    code
}

/// A program in a file of its own.
pub(crate) struct Elf {
    pub(crate) path: PathBuf,
    _dir: TempDir,
}

impl Elf {
    /// Addresses of the page that holds the code.
    pub(crate) const PAGE: Range<u64> = BASE as u64..BASE as u64 + 0x1000;

    pub(crate) fn class_64(code: &[u8]) -> Self {
        let mut image = ident(2, 62);
        let words = [ENTRY_64, 0, 64, 0, 0, 0, 0];
        image.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        image.extend(halves(&[64, 56, 1, 64, 0, 0]));
        let size = (64 + 56 + code.len()) as u32;
        let segment = [1, 5, 0, 0, BASE, 0, BASE, 0, size, 0, size, 0, 0x1000, 0];
        image.extend(segment.iter().flat_map(|w: &u32| w.to_le_bytes()));
        Self::write(image, code)
    }

    pub(crate) fn class_32(code: &[u8]) -> Self {
        let mut image = ident(1, 3);
        let words = [ENTRY_32, 52, 0, 0];
        image.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        image.extend(halves(&[52, 32, 1, 40, 0, 0]));
        let size = (52 + 32 + code.len()) as u32;
        let segment = [1, 0, BASE, BASE, size, size, 5, 0x1000];
        image.extend(segment.iter().flat_map(|w: &u32| w.to_le_bytes()));
        Self::write(image, code)
    }

    fn write(mut image: Vec<u8>, code: &[u8]) -> Self {
        image.extend(code);
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let path = dir.path().join("program");
        fs::write(&path, image).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        Self { path, _dir: dir }
    }
}

/// `e_ident`, executable, machine, version.
fn ident(class: u8, machine: u16) -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    bytes.extend([class, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(halves(&[2, machine, 1, 0]));
    bytes
}

fn halves(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}
