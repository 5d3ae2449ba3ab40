//! What clients and daemons say over the control socket; patterns of control groups.

#![no_main]

use consort_linux::cgroup::CgroupPattern;
use consort_linux::control::{DaemonAnswer, DaemonRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(request) = DaemonRequest::parse(line) {
        // What was left out is written, so that it may be too long now.
        if let Ok(again) = request.to_line() {
            assert_eq!(DaemonRequest::parse(&again[..again.len() - 1]).ok(), Some(request));
        }
    }
    let _ = DaemonAnswer::parse(line);
    if let Ok(text) = std::str::from_utf8(line) {
        if let Ok(pattern) = text.parse::<CgroupPattern>() {
            assert!(!pattern.as_str().split('/').any(|name| name == ".."));
        }
    }
});
