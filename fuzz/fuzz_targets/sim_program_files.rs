//! Program files of any text: refused in one line that names file and line, or read.

#![no_main]

use consort_sim::describe::parse;
use consort_sim::program::ProgramSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = parse::<ProgramSpec>("fuzzed.toml", text, |_, _| ()) {
        assert!((1..=text.lines().count() + 1).contains(&error.line));
        assert!(!error.to_string().contains(char::is_control));
    }
});
