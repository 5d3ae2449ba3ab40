//! `branchy` and `bigcode`: work for the front end of a core.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::PureKernel;

/// `branchy`: branches that depend on data no predictor knows.
pub(crate) const BRANCHY: KernelEntry = KernelEntry {
    name: "branchy",
    summary: "branches on the bits of a pseudo-random stream, half of them taken",
    stresses: "branch predictors",
    class: ExpectedClass::Int,
    builders: |setup| PureKernel::builders(setup, branchy_unit),
};

/// `bigcode`: more code than the nearest instruction caches and branch target buffers hold.
pub(crate) const BIGCODE: KernelEntry = KernelEntry {
    name: "bigcode",
    summary: "calls 1,024 distinct functions of some 300 bytes each in shuffled order",
    stresses: "instruction fetch, decoding and branch targets",
    class: ExpectedClass::Int,
    builders: |setup| PureKernel::builders(setup, bigcode_unit),
};

/// Branches on data per unit of `branchy`.
const STEPS: u64 = 4_000;

/// Each side is opaque, or a compiler would compute both and select without a branch.
fn branchy_unit(seed: u64) -> u64 {
    let mut stream = opaque::int(seed) + 1;
    let mut sum = 0_u64;
    for _ in 0..STEPS {
        stream = next_random(stream);
        sum = if stream >> 63 == 1 {
            opaque::int(sum.wrapping_mul(3))
        } else {
            opaque::int(sum ^ (stream >> 7))
        };
    }
    sum
}

/// Knuth's 64-bit linear congruential generator (MMIX), whose highest bit has
/// the full period of 2^64.
fn next_random(stream: u64) -> u64 {
    stream
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// A 64-bit constant for one step of one function (the finaliser of splitmix64, Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
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
fn bigcode_unit(seed: u64) -> u64 {
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

    #[test]
    fn results_match_a_transcription_in_python() {
        assert_eq!(
            [branchy_unit(0), branchy_unit(255)],
            [0x87ed_b6e7_827c_7d7f, 0xe637_902a_c2cd_6a06]
        );
        assert_eq!(
            [bigcode_unit(0), bigcode_unit(255)],
            [0x042d_a9c4_e523_9fda, 0x9b70_98c3_745a_a7f4]
        );
    }

    #[test]
    fn about_half_the_branches_are_taken() {
        let mut stream = 1;
        let taken = (0..STEPS).filter(|_| {
            stream = next_random(stream);
            stream >> 63 == 1
        });
        let share = taken.count() as f64 / STEPS as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
    }

    #[test]
    fn unit_calls_every_function() {
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
