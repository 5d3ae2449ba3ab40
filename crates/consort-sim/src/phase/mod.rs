//! A phase made ready for the solver: its miss curves, and the effect of a machine's line length.
//!
//! Curves are per line of 64 bytes. With lines of L bytes, `k = L/64`, two kinds of misses differ:
//!
//! - Where a program goes through memory in sequence, a longer line brings what would have missed
//!   next: `1/k` as many misses, each moving L bytes. Bytes per instruction stay the same.
//! - A scattered access uses 64 bytes of its line: as many misses, each moving L bytes, and of a
//!   cache's capacity only `1/k` is of use.
//!
//! With f the share that is sequential, `w = f + (1 − f)·k` bytes are brought in for every byte of
//! use. So a cache of C bytes misses `w/k` times as often as the curve says for `C/w` bytes, and
//! each miss moves L bytes: `misses_L(C) = (w/k)·misses₆₄(C/w)`.
//!
//! If a profile has curves for the lines at hand, they are used instead.
//!
//! The share f follows from data that profiles contain anyway, and is a lower bound in both cases,
//! because lines that are used together without being in sequence count as scattered:
//!
//! - data: what prefetching of full coverage removes, because that is what follows a stream
//!   (`prefetch.effectiveness`, 0 if it is negative);
//! - code: as measured (`code.sequential`); else it runs on from one branch to the next, `r` bytes
//!   per instruction over branches per instruction, and a run of r bytes touches `1 + r/L` lines on
//!   average, which is `f = r/(r + 64)`.

use crate::program::{PhaseSpec, StretchSpec};
use curve::LINE_BYTES;
pub use curve::MissCurve;

mod curve;

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

    /// The curve of data misses for lines of so many bytes, which [`LineEffect`] makes misses of.
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

/// Lines other than of 64 bytes for which misses can be measured, bytes.
pub(super) const MEASURED_BYTES: f64 = 128.0;

/// Effect of the length of lines on a miss curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LineEffect {
    /// Misses per miss of the curve.
    pub(crate) misses: f64,
    /// Bytes of a cache per byte of the curve's capacity; bytes moved per byte that the curve
    /// moves.
    pub(crate) space: f64,
    /// Share of the lines that do not follow one which was fetched just before, 0 to 1: next-line
    /// fetch does not bring them.
    pub(crate) not_next: f64,
    /// Long misses in a window, per long miss in it with lines of 64 bytes.
    pub(crate) long: f64,
}

impl LineEffect {
    fn new(sequential: f64, line_bytes: f64) -> Self {
        let ratio = line_bytes / LINE_BYTES;
        // In this form exactly 1 for lines as long as the curve's.
        let space = ratio - sequential * (ratio - 1.0);
        Self {
            misses: space / ratio,
            space,
            long: space / ratio,
            // Of runs of r bytes r/(r + L) of the lines of L bytes follow another.
            not_next: 1.0 - sequential / (sequential + ratio * (1.0 - sequential)),
        }
    }

    /// For a phase's data.
    pub(crate) fn for_data(phase: &PhaseSpec, line_bytes: f64) -> Self {
        let lines = Self::new(phase.prefetch.effectiveness.clamp(0.0, 1.0), line_bytes);
        match &phase.data_mpki_128 {
            Some(long) if line_bytes == MEASURED_BYTES => Self {
                long: long_miss_ratio(long, &phase.data_mpki),
                ..lines.with_measured_misses()
            },
            _ => lines,
        }
    }

    /// The same where misses were measured with such lines: a curve of twice the misses moves as
    /// many bytes with lines of half the length, and takes as much of a cache.
    fn with_measured_misses(self) -> Self {
        Self {
            misses: LINE_BYTES / MEASURED_BYTES,
            space: 1.0,
            ..self
        }
    }

    /// For a phase's code.
    pub(crate) fn for_code(phase: &PhaseSpec, line_bytes: f64) -> Self {
        let lines = Self::new(sequential_code(phase), line_bytes);
        match phase.instruction_mpki_128 {
            Some(_) if line_bytes == MEASURED_BYTES => lines.with_measured_misses(),
            _ => lines,
        }
    }
}

/// Index of 1 MiB among the sizes of a curve.
const LONG: usize = 7;

/// Misses beyond 1 MiB with long lines per miss with short ones.
fn long_miss_ratio(long: &[f64], short: &[f64]) -> f64 {
    match (long.get(LONG), short.get(LONG)) {
        (Some(&long), Some(&short)) if short > 0.0 => (long / short).min(1.0),
        _ => 1.0,
    }
}

/// Share of the lines of a phase's code that follow one fetched just before, 0 to 1.
pub(crate) fn sequential_code(phase: &PhaseSpec) -> f64 {
    let bytes = phase.code_bytes();
    let runs = bytes / (bytes + LINE_BYTES * phase.mix.branch);
    phase.code.sequential.unwrap_or(runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * b.abs()
    }

    #[test]
    fn lines_of_64_bytes_change_nothing() {
        for sequential in [0.0, 0.1, 0.7, 1.0] {
            let lines = LineEffect::new(sequential, 64.0);
            assert_eq!((lines.misses, lines.space), (1.0, 1.0));
            assert!(near(lines.not_next, 1.0 - sequential));
        }
    }

    #[test]
    fn code_of_line_long_runs_is_half_sequential() {
        let program = include_str!("../../../consort-describe/tests/small/program.toml");
        let program = crate::program::parse("small", program).unwrap();
        let mut phase = program.phases[0].clone();
        phase.mix.branch = 4.0 / 64.0;
        assert_eq!(LineEffect::for_code(&phase, 128.0).misses, 0.75);
        phase.mix.branch = 0.0;
        assert_eq!(LineEffect::for_code(&phase, 128.0).misses, 0.5);
    }

    proptest! {
        #[test]
        fn misses_move_sequential_and_scattered_bytes(
            sequential in 0.0f64..=1.0,
            log2 in 4i32..=10,
        ) {
            let bytes = f64::from(1 << log2);
            let lines = LineEffect::new(sequential, bytes);
            let misses = sequential * 64.0 / bytes + (1.0 - sequential);
            prop_assert!(near(lines.misses, misses), "{lines:?}");
            prop_assert!((0.0..=1.0).contains(&lines.not_next));
            prop_assert!(near(lines.misses * bytes, lines.space * 64.0), "{lines:?}");
        }
    }
}
