//! `selfmod`: code that is patched in place.
//!
//! An integer loop stays mapped; before each unit one constant inside its loop
//! is overwritten, so the same address holds another instruction than before.

use crate::error::KernelError;
use crate::kernel::{ExpectedClass, Kernel, KernelEntry, make_builders};
use crate::machine_code::{Body, CodePage, check_supported};
use crate::tally::{PERIOD, UnitTally};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "selfmod",
    summary: "an integer loop in executable memory whose code is patched before every run",
    stresses: "integer units, from code that changes in place",
    class: ExpectedClass::Int,
    seats: |setup| make_builders(setup, |_| SelfMod::new()),
};

/// Loop iterations per unit.
const ITERATIONS: u64 = 10_000;

#[derive(Debug)]
struct SelfMod {
    page: CodePage,
    tally: UnitTally,
}

impl SelfMod {
    fn new() -> Result<Self, KernelError> {
        check_supported("selfmod")?;
        let mut page = CodePage::new()?;
        page.write(Body::Int { factor: 1 })?;
        Ok(Self {
            page,
            tally: UnitTally::default(),
        })
    }
}

fn factor(seed: u64) -> u8 {
    u8::try_from(seed % 127).unwrap_or(0) + 1
}

impl Kernel for SelfMod {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let factor = factor(self.tally.seed(PERIOD));
            let result = self.page.patch_factor_and_run(factor, ITERATIONS);
            self.tally.add(result.unwrap_or(u64::MAX));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(PERIOD, |seed| {
            let factor = factor(seed);
            Body::Int { factor }.result(ITERATIONS)
        })
    }
}
