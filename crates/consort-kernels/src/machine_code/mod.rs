//! Machine code written at run time, for `jit` and `selfmod`.
//!
//! A [`CodePage`] is an anonymous mapping that is writable or executable, never
//! both (W^X), changed over by `mprotect`. The code is a loop with a result
//! that [`Body::result`] knows.

mod page;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod encode;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "unknown.rs"]
mod encode;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod encode;

pub(crate) use page::CodePage;

use crate::error::KernelError;

/// A function `extern "C" fn(iterations: u64) -> u64`, where `iterations` is at
/// least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Adds `addend`, a double, to seven sums each iteration; returns their sum.
    Fp {
        /// At most 127.
        addend: u8,
    },
    /// `x = x * factor + n` for `n` from `iterations` down to 1.
    Int {
        /// At most 127: an immediate byte that the processor extends by its sign.
        factor: u8,
    },
}

impl Body {
    /// Value that the function returns.
    pub(crate) fn result(self, iterations: u64) -> u64 {
        match self {
            Self::Fp { addend } => 7 * u64::from(addend) * iterations,
            Self::Int { factor } => (1..=iterations).rev().fold(0, |x: u64, n| {
                x.wrapping_mul(u64::from(factor)).wrapping_add(n)
            }),
        }
    }
}

/// An error on processors for which no code is known.
pub(crate) fn check_supported(kernel: &'static str) -> Result<(), KernelError> {
    let arch = std::env::consts::ARCH;
    match encode::KNOWN {
        true => Ok(()),
        false => Err(KernelError::Unsupported { kernel, arch }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skipped;
    use proptest::prelude::*;

    fn bodies() -> impl Strategy<Value = Body> {
        (any::<bool>(), 1_u8..128).prop_map(|(fp, n)| match fp {
            true => Body::Fp { addend: n },
            false => Body::Int { factor: n },
        })
    }

    proptest! {
        #[test]
        fn code_computes_what_its_body_says(
            rounds in prop::collection::vec((bodies(), 1_u64..2_000), 1..8),
        ) {
            if check_supported("test").is_err() {
                skipped("no code for this processor");
                return Ok(());
            }
            let mut page = CodePage::new().unwrap();
            for (body, iterations) in rounds {
                let result = page.write_and_run(body, iterations).unwrap();
                prop_assert_eq!(result, body.result(iterations));
            }
        }

        #[test]
        fn a_patch_changes_the_factor_alone(first in 1_u8..128, second in 1_u8..128) {
            let mut code = encode::encode(Body::Int { factor: first });
            encode::patch_factor(&mut code, second);
            prop_assert_eq!(code, encode::encode(Body::Int { factor: second }));
        }
    }
}
