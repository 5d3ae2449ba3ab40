//! `bigcode`: more code than the nearest instruction caches and branch target
//! buffers hold.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::PureKernel;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "bigcode",
    summary: "calls 1,024 distinct functions of some 300 bytes each in shuffled order",
    stresses: "instruction fetch, decoding and branch targets",
    class: ExpectedClass::Int,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// A 64-bit constant for one step of one function (the finaliser of splitmix64,
/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014).
const fn constant(id: u64, step: u64) -> u64 {
    let mut z = (id * 1_000 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

macro_rules! steps {
    ($lanes:ident, $id:ident, $($step:literal)*) => {
        $(
            $lanes[0] = opaque::int($lanes[0] ^ const { constant($id, 4 * $step) });
            $lanes[1] = opaque::int($lanes[1].wrapping_add(const { constant($id, 4 * $step + 1) }));
            $lanes[2] = opaque::int($lanes[2] ^ const { constant($id, 4 * $step + 2) });
            $lanes[3] = opaque::int($lanes[3].wrapping_add(const { constant($id, 4 * $step + 3) }));
        )*
    };
}

/// Distinct code for every `ID`: the constants are part of the instructions,
/// so no two functions can be folded into one. Four lanes that do not wait for
/// each other want more bytes of code each cycle than the caches deliver.
#[inline(never)]
fn body<const ID: u64>(x: u64) -> u64 {
    let mut lanes = [x, !x, x.rotate_left(17), x.rotate_left(43)];
    steps!(lanes, ID, 1 2 3 4 5 6);
    let [a, b, c, d] = lanes;
    a.wrapping_add(b.rotate_left(13)) ^ c.rotate_left(29).wrapping_add(d)
}

/// Doubles a list of ids by each given bit, then makes a table of functions.
macro_rules! table {
    ([$($id:expr),*]) => { [$(body::<{ $id }>),*] };
    ([$($id:expr),*] $bit:literal $($rest:literal)*) => {
        table!([$($id, $id + $bit),*] $($rest)*)
    };
}

static TABLE: [fn(u64) -> u64; 1_024] = table!([0] 1 2 4 8 16 32 64 128 256 512);

/// The function to call after number `at`: a linear congruential sequence that
/// visits all 1,024 before it repeats (Hull and Dobell, 1962: odd increment,
/// multiplier one more than a multiple of four).
fn next_function(at: usize) -> usize {
    (at * 549 + 187) % TABLE.len()
}

/// Calls every function once.
fn unit(seed: u64) -> u64 {
    let mut at = usize::try_from(seed % 1_024).unwrap_or(0);
    let mut x = seed;
    for _ in 0..TABLE.len() {
        x = TABLE[at](x);
        at = next_function(at);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0x042d_a9c4_e523_9fda, 0x9b70_98c3_745a_a7f4]
        );
    }

    #[test]
    fn a_unit_calls_every_function() {
        let visited: BTreeSet<usize> =
            std::iter::successors(Some(0), |at| Some(next_function(*at)))
                .take(TABLE.len())
                .collect();
        assert_eq!(visited.len(), TABLE.len());
    }

    #[test]
    fn functions_are_distinct() {
        let results: BTreeSet<u64> = TABLE.iter().map(|f| f(1)).collect();
        assert_eq!(results.len(), TABLE.len());
    }
}
