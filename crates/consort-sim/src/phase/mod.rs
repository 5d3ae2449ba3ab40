//! A phase made ready for the solver.

mod curve;
mod lines;

pub use curve::MissCurve;
pub(crate) use lines::LineEffect;

use crate::program::{PhaseSpec, StretchSpec};
use lines::MEASURED_BYTES;

/// A phase with its miss curves tabulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The description.
    pub spec: PhaseSpec,
    /// Its short stretches.
    pub(crate) stretches: Vec<StretchSpec>,
    /// Data misses.
    pub data: MissCurve,
    /// Instruction misses.
    pub code: MissCurve,
    data_128: Option<MissCurve>,
    code_128: Option<MissCurve>,
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
            data_128: spec
                .data_mpki_128
                .as_deref()
                .map(|points| double_line_curve(data_accesses, points)),
            code_128: spec
                .instruction_mpki_128
                .as_deref()
                .map(|points| double_line_curve(fetches, points)),
            stretches: spec.stretches_or_default(),
            spec: spec.clone(),
        }
    }

    /// The curve of data misses for lines of so many bytes, which [`LineEffect`] makes
    /// misses of.
    pub(crate) fn data_for(&self, line_bytes: f64) -> &MissCurve {
        pick(&self.data, self.data_128.as_ref(), line_bytes)
    }

    /// The curve of instruction misses, likewise.
    pub(crate) fn code_for(&self, line_bytes: f64) -> &MissCurve {
        pick(&self.code, self.code_128.as_ref(), line_bytes)
    }
}

/// A curve measured with lines of 128 bytes, as one of twice the misses with lines of 64.
fn double_line_curve(accesses: f64, points: &[f64]) -> MissCurve {
    let doubled: Vec<f64> = points.iter().map(|mpki| 2.0 * mpki).collect();
    MissCurve::new(2.0 * accesses, &doubled)
}

fn pick<'a>(short: &'a MissCurve, long: Option<&'a MissCurve>, line_bytes: f64) -> &'a MissCurve {
    long.filter(|_| line_bytes == MEASURED_BYTES)
        .unwrap_or(short)
}
