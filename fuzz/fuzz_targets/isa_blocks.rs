//! Any bytes at any address, in any instruction set, make blocks and estimates
//! without a panic.
//!
//! Run with `cargo +nightly fuzz run isa_blocks`.

#![no_main]

use std::sync::Arc;

use consort_isa::{Arch, BlockFacts, CodeBytes, Estimator};
use libfuzzer_sys::fuzz_target;

/// Instruction set, where the code lies, which addresses are sampled.
struct Header {
    arch: Arch,
    base: u64,
    sampled: [u8; 7],
}

fn split(data: &[u8]) -> Option<(Header, &[u8])> {
    let (head, bytes) = data.split_first_chunk::<16>()?;
    let arch = match head[0] % 3 {
        0 => Arch::X86_64,
        1 => Arch::X86_32,
        _ => Arch::Aarch64,
    };
    let mut base = [0; 8];
    base.copy_from_slice(&head[1..9]);
    let mut sampled = [0; 7];
    sampled.copy_from_slice(&head[9..]);
    let base = u64::from_le_bytes(base);
    let header = Header {
        arch,
        base,
        sampled,
    };
    Some((header, bytes))
}

fuzz_target!(|data: &[u8]| {
    let Some((header, bytes)) = split(data) else {
        return;
    };
    let code = CodeBytes {
        arch: header.arch,
        bytes,
        base: header.base,
    };
    let mut estimator = Estimator::new();
    for offset in header.sampled {
        let address = header.base.wrapping_add(u64::from(offset));
        match BlockFacts::build(code, address, &[header.base]) {
            Ok(block) => {
                assert!(estimator.add(&Arc::new(block), address, f64::from(offset)));
            }
            Err(_) => estimator.add_undecoded(1.0),
        }
    }
    if let Some(estimate) = estimator.finish() {
        let sum: f64 = estimate.mix.shares().iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
});
