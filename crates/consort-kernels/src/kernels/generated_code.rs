//! `jit` and `selfmod`: kernels whose code changes while they run. A reader of such a thread's code
//! must not trust an earlier reading.

use crate::kernel::{ExpectedClass, Kernel, KernelEntry, KernelError, make_builders};
use crate::machine_code::{Body, CodePage, check_supported};
use crate::tally::{PERIOD, UnitTally};

/// `jit`: every unit writes a function into the mapping, floating point and integer by turns, and
/// calls it.
pub(crate) const JIT: KernelEntry = KernelEntry {
    name: "jit",
    summary: "writes fp and int functions into executable memory by turns, and runs them",
    stresses: "floating-point and integer units by turns, from code outside any file",
    class: ExpectedClass::Mixed,
    builders: |setup| make_builders(setup, |_| Jit::new()),
};

/// `selfmod`: an integer loop stays mapped; before each unit one constant inside its loop is
/// overwritten, so the same address holds another instruction than before.
pub(crate) const SELFMOD: KernelEntry = KernelEntry {
    name: "selfmod",
    summary: "an integer loop in executable memory whose code is patched before every run",
    stresses: "integer units, from code that changes in place",
    class: ExpectedClass::Int,
    builders: |setup| make_builders(setup, |_| SelfMod::new()),
};

/// Loop iterations per unit.
const ITERATIONS: u64 = 10_000;

/// Units until `jit` writes the other kind of function.
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

fn jit_body(seed: u64) -> Body {
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
            let body = jit_body(self.tally.seed(PERIOD));
            let result = self.page.write_and_run(body, ITERATIONS);
            // A page that cannot be written any more gives a wrong checksum.
            self.tally.add(result.unwrap_or(u64::MAX));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally
            .expected(PERIOD, |seed| jit_body(seed).result(ITERATIONS))
    }
}

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

fn patched_factor(seed: u64) -> u8 {
    u8::try_from(seed % 127).unwrap_or(0) + 1
}

impl Kernel for SelfMod {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let factor = patched_factor(self.tally.seed(PERIOD));
            let result = self.page.patch_factor_and_run(factor, ITERATIONS);
            self.tally.add(result.unwrap_or(u64::MAX));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(PERIOD, |seed| {
            let factor = patched_factor(seed);
            Body::Int { factor }.result(ITERATIONS)
        })
    }
}
