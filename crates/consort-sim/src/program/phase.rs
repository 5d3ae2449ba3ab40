//! A phase made ready for the solver.

use super::curve::MissCurve;
use super::spec::PhaseSpec;

/// A phase with its miss curves tabulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The description.
    pub spec: PhaseSpec,
    /// Data misses.
    pub data: MissCurve,
    /// Instruction misses.
    pub code: MissCurve,
}

/// Instructions that one access to the L1I brings.
const INSTRUCTIONS_PER_FETCH: f64 = 8.0;

impl Phase {
    /// Tabulates the curves of a valid description.
    pub fn new(spec: &PhaseSpec) -> Self {
        let data_accesses = 1000.0 * (spec.mix.load + spec.mix.store);
        let fetches = 1000.0 / INSTRUCTIONS_PER_FETCH;
        Self {
            data: MissCurve::new(data_accesses, &spec.data_mpki),
            code: MissCurve::new(fetches, &spec.instruction_mpki),
            spec: spec.clone(),
        }
    }
}
