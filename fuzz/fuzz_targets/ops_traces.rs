//! Any bytes are a trace or a reason why not; a trace can be gone through and written again.
//!
//! Run with `cargo +nightly fuzz run ops_traces`, best from the files of `traces/`.

#![no_main]

use consort_ops::trace::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::from_bytes(bytes) else {
        return;
    };
    for (number, thread) in trace.threads().iter().enumerate() {
        let operations = trace.thread_ops(number).count();
        assert_eq!(operations as u64, thread.operations);
    }
    assert_eq!(Trace::from_bytes(&trace.to_bytes()), Ok(trace));
});
