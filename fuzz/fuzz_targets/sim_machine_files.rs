//! Machine files of any text: refused in one line that names file and line, or laid out.

#![no_main]

use consort_sim::chip::Chip;
use consort_sim::machine::{MAX_PUS, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse("fuzzed.toml", text) {
        Ok(spec) => {
            let chip = Chip::new(&spec, None).expect("a valid machine has PUs");
            assert!(chip.places().len() as u64 <= MAX_PUS);
        }
        Err(error) => {
            assert!((1..=text.lines().count() + 1).contains(&error.line));
            assert!(!error.to_string().contains(char::is_control));
        }
    }
});
