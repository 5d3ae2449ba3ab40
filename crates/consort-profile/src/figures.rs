//! Figures of a program file, worked out from the counts of a profile.

use consort_ops::Kind;

use crate::measure::{PREDICTOR_KIB, PowerLaw, SCHEMES, WINDOWS, power_law};
use crate::profile::Figures;

/// The predictor, in KiB, for which a program file gives mispredictions, as an index of
/// [`PREDICTOR_KIB`].
pub(crate) const REFERENCE_PREDICTOR: usize = 3;

/// Shares of instructions as a program file has them. An instruction that loads and computes on
/// general registers counts as the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Floating point.
    pub fp: f64,
    /// Vectors of integers, and moves between vector registers.
    pub vector: f64,
    /// Everything else.
    pub int: f64,
    /// Loads.
    pub load: f64,
    /// Stores.
    pub store: f64,
    /// Branches.
    pub branch: f64,
}

impl Figures {
    /// Shares of the mix; they sum to 1.
    #[must_use]
    pub fn shares(&self) -> Shares {
        let mix = &self.mix;
        let of = |is: fn(Kind) -> bool| {
            mix.share(is) * mix.all() as f64 / mix.instructions.max(1) as f64
        };
        let raw = [
            of(Kind::is_floating),
            of(|kind| matches!(kind, Kind::Vector | Kind::VectorMove)),
            of(|kind| kind == Kind::Load),
            of(|kind| kind == Kind::Store),
            of(|kind| kind == Kind::Branch),
        ];
        // Strings have many accesses per instruction.
        let sum = raw.iter().sum::<f64>().max(1.0);
        let [fp, vector, load, store, branch] = raw.map(|share| rounded(share / sum));
        let int = (1.0 - fp - vector - load - store - branch).max(0.0);
        Shares {
            fp,
            vector,
            int,
            load,
            store,
            branch,
        }
    }

    /// The law of ILP against the window.
    #[must_use]
    pub fn ilp_law(&self) -> PowerLaw {
        law(&WINDOWS.map(|window| window as f64), &self.ilp)
    }

    /// Mispredictions per kilo-instruction with each of [`PREDICTOR_KIB`], by
    /// [`SCHEMES`].
    #[must_use]
    pub fn branch_mpki(&self) -> [[f64; PREDICTOR_KIB.len()]; SCHEMES.len()] {
        let per_kilo = |missed| self.per_kilo(missed);
        self.mispredictions.map(|scheme| scheme.map(per_kilo))
    }

    /// Mispredictions per kilo-instruction of a tagged predictor of 32 KiB.
    #[must_use]
    pub fn mispredicted(&self) -> f64 {
        self.branch_mpki()[0][REFERENCE_PREDICTOR]
    }

    /// A count per thousand instructions.
    #[must_use]
    pub fn per_kilo(&self, count: u64) -> f64 {
        1000.0 * count as f64 / self.mix.instructions.max(1) as f64
    }
}

/// The power law of measured values; constant and 0 where nothing was measured.
pub(crate) fn law(x: &[f64], y: &[f64]) -> PowerLaw {
    let points: Vec<_> = x.iter().copied().zip(y.iter().copied()).collect();
    power_law(&points).unwrap_or(PowerLaw {
        factor: 0.0,
        exponent: 0.0,
        error: 0.0,
    })
}

/// Four decimals, as files have them.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}
