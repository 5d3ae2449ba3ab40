//! Program files of any text: refused in one line that names file and line, or valid.

#![no_main]

#[path = "../../crates/consort-sim/tests/suite/fuzzed/bodies.rs"]
#[expect(dead_code, reason = "each target uses its own part of this")]
mod bodies;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| bodies::program_file(text));
