//! Recordings of any bytes: refused, or read to their end.

#![no_main]

use consort_data::recording::Recording;
use libfuzzer_sys::fuzz_target;
use std::io::Write;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else {
        return;
    };
    if file.write_all(bytes).is_err() {
        return;
    }
    if let Ok(recording) = Recording::open(file.path()) {
        for quantum in recording.quanta() {
            if quantum.is_err() {
                return;
            }
        }
    }
});
