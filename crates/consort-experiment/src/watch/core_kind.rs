//! The two kinds of cores of an asymmetric machine.

use consort_sim::chip::Chip;
use consort_sim::machine::PipelineSpec;

/// A kind of core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreKind {
    /// Core that executes out of order.
    Large,
    /// Core that executes in order.
    Small,
}

impl CoreKind {
    /// The kind of a PU's core.
    pub fn from_pu(chip: &Chip, pu: usize) -> Self {
        match chip.core_spec(chip.places()[pu]).pipeline {
            PipelineSpec::OutOfOrder => Self::Large,
            PipelineSpec::InOrder => Self::Small,
        }
    }

    /// For each PU, whether it is of a large core.
    pub(super) fn large_pus(chip: &Chip) -> Vec<bool> {
        let pus = 0..chip.places().len();
        pus.map(|pu| Self::from_pu(chip, pu) == Self::Large)
            .collect()
    }
}
