//! Workload expressions and workload files.
//!
//! What is accepted must come back the same after it was written out; what is
//! not must be told in one line.

#![no_main]

use consort_sim::describe::Problems;
use consort_sim::workload::{WorkloadExpr, WorkloadSpec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<WorkloadExpr>() {
        Ok(expr) => assert_eq!(expr.to_string().parse(), Ok(expr)),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    if let Ok(spec) = toml::from_str::<WorkloadSpec>(text) {
        assert!(WorkloadSpec::is_meant_by(text));
        spec.validate(&mut Problems::default());
    }
});
