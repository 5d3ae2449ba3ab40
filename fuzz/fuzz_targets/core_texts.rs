//! What people and kernels write: CPU lists and policies with options.
//!
//! What is accepted must come back the same after it was written out, and must
//! make a policy or a reason why not.

#![no_main]

use consort_core::PuSet;
use consort_core::policies;
use consort_core::policy::PolicySpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(pus) = text.parse::<PuSet>() {
        assert_eq!(pus.to_string().parse(), Ok(pus));
    }
    match text.parse::<PolicySpec>() {
        Ok(spec) => {
            let known = policies::find(&spec.name).is_ok();
            assert!(known || policies::check(&spec).is_err());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
