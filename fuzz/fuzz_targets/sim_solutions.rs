//! Any valid machine and program are solved and run, within what the machine can do.

#![no_main]

#[path = "../../crates/consort-sim/tests/suite/small/exact.rs"]
mod exact;
#[path = "../../crates/consort-sim/tests/suite/small/possible.rs"]
mod possible;
#[path = "../../crates/consort-sim/tests/suite/fuzzed/solved.rs"]
mod solved;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    solved::description(input);
});
