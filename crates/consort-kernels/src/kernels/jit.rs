//! `jit`: a program that makes its code while it runs.
//!
//! Every unit writes a function into the mapping, floating point and integer by
//! turns of 64 units, and calls it. Whoever reads the code of this thread must
//! not trust an earlier reading.

use crate::error::KernelError;
use crate::kernel::{ExpectedClass, Kernel, KernelEntry, make_builders};
use crate::machine_code::{Body, CodePage, check_supported};
use crate::tally::{PERIOD, UnitTally};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "jit",
    summary: "writes fp and int functions into executable memory by turns, and runs them",
    stresses: "floating-point and integer units by turns, from code outside any file",
    class: ExpectedClass::Mixed,
    seats: |setup| make_builders(setup, |_| Jit::new()),
};

/// Loop iterations per unit.
const ITERATIONS: u64 = 10_000;

/// Units until the other kind of function is written.
const TURN: u64 = 64;

#[derive(Debug)]
struct Jit {
    page: CodePage,
    tally: UnitTally,
}

impl Jit {
    fn new() -> Result<Self, KernelError> {
        check_supported("jit")?;
        Ok(Self {
            page: CodePage::new()?,
            tally: UnitTally::default(),
        })
    }
}

fn body(seed: u64) -> Body {
    let constant = u8::try_from(seed % 100).unwrap_or(0) + 1;
    if (seed / TURN).is_multiple_of(2) {
        Body::Fp { addend: constant }
    } else {
        Body::Int { factor: constant }
    }
}

impl Kernel for Jit {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let body = body(self.tally.seed(PERIOD));
            let result = self.page.write_and_run(body, ITERATIONS);
            self.tally.add(result.unwrap_or(u64::MAX));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally
            .expected(PERIOD, |seed| body(seed).result(ITERATIONS))
    }
}
