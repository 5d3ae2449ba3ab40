//! No bytes, addresses or weights make the crate panic, and what it hands out
//! keeps its promises whatever came in.

use std::sync::Arc;

use consort_isa::{Arch, BlockFacts, CodeBytes, Estimator, decode};
use proptest::prelude::*;

fn arch() -> impl Strategy<Value = Arch> {
    prop_oneof![Just(Arch::X86_64), Just(Arch::X86_32), Just(Arch::Aarch64),]
}

/// Bases at both ends of the address space and in the middle.
fn base() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..0x1_0000, any::<u64>(), (u64::MAX - 600)..=u64::MAX]
}

/// A weight, or something that should not be one.
fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..1e9_f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0)
    ]
}

proptest! {
    #[test]
    fn decoding_never_panics_and_stays_inside_the_bytes(
        arch in arch(),
        bytes in prop::collection::vec(any::<u8>(), 0..20),
        address in any::<u64>(),
    ) {
        if let Ok(instruction) = decode(arch, &bytes, address) {
            prop_assert!(instruction.len > 0);
            prop_assert!(usize::from(instruction.len) <= bytes.len());
        }
    }

    #[test]
    fn a_block_holds_its_address_and_is_contiguous(
        arch in arch(),
        bytes in prop::collection::vec(any::<u8>(), 1..600),
        base in base(),
        offset in 0_u64..600,
        anchors in prop::collection::vec(0_u64..600, 0..4),
    ) {
        let code = CodeBytes { arch, bytes: &bytes, base };
        let address = base.wrapping_add(offset);
        let anchors: Vec<u64> = anchors.iter().map(|a| base.wrapping_add(*a)).collect();
        if let Ok(block) = BlockFacts::build(code, address, &anchors) {
            prop_assert!(block.index_of(address).is_some());
            prop_assert_eq!(block.suspicions().len(), block.instructions().len());
            for pair in block.instructions().windows(2) {
                prop_assert_eq!(pair[0].end(), pair[1].address);
                prop_assert!(!pair[0].flow.ends_block());
            }
        }
    }

    #[test]
    fn shares_are_shares(
        arch in arch(),
        bytes in prop::collection::vec(any::<u8>(), 64..300),
        samples in prop::collection::vec((0_u64..300, weight()), 1..200),
    ) {
        let code = CodeBytes { arch, bytes: &bytes, base: 0x1000 };
        let mut estimator = Estimator::new();
        for (offset, weight) in samples {
            let address = 0x1000 + offset;
            match BlockFacts::build(code, address, &[]) {
                Ok(block) => {
                    estimator.add(&Arc::new(block), address, weight);
                }
                Err(_) => estimator.add_undecoded(weight),
            }
        }
        if let Some(estimate) = estimator.finish() {
            let stack = estimate.stack;
            let stack_sum = stack.base + stack.unit + stack.memory + stack.front_end;
            prop_assert!((stack_sum - 1.0).abs() < 1e-9, "{:?}", stack);
            for mix in [estimate.mix, estimate.mix_at_address] {
                let sum: f64 = mix.shares().iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-9, "{:?}", mix);
            }
            let bounds = estimate.memory_bounds;
            prop_assert!(0.0 <= bounds.low && bounds.high <= 1.0);
            prop_assert!(bounds.low <= estimate.memory_stall_share + 1e-9);
            prop_assert!(estimate.memory_stall_share <= bounds.high + 1e-9);
            prop_assert!((0.0..=1.0).contains(&estimate.decoded_share));
            prop_assert!(estimate.footprint.seen_bytes <= estimate.footprint.estimated_bytes);
        }
    }
}

#[test]
fn nothing_decoded_is_no_estimate() {
    let mut estimator = Estimator::new();
    assert_eq!(estimator.finish(), None);
    estimator.add_undecoded(1.0);
    assert_eq!(estimator.finish(), None);
}
