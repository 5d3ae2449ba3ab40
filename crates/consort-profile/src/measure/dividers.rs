//! Effect on the data flow of dividers that take one division at a time.
//!
//! Divisions come in groups: where a loop has several, they wait for each other, however few they
//! are on average. The schedule of [`super::timing`] is therefore repeated with one divider that each
//! division takes for 4, 8, 16 or 32 cycles, once for divisions of integers and once for those of
//! floating point and its square roots. Several dividers that are taken for longer are taken as one
//! that is taken for less.

use consort_ops::OpKind;

/// Cycles that a division takes the divider, in each schedule.
pub const DIVIDERS: [u64; 4] = [4, 8, 16, 32];

const COUNT: usize = DIVIDERS.len();

/// A cycle, or a number of cycles, in each schedule: those of integers, those of floating point.
pub type DividerCycles = [[u64; COUNT]; 2];

/// Divider that a kind of operation uses: 0 of integers, 1 of floating point; none where it does
/// not divide.
const fn divider_index(kind: OpKind) -> Option<usize> {
    match kind {
        OpKind::Divide => Some(0),
        OpKind::FpDivide => Some(1),
        _ => None,
    }
}

/// Until when the divider of each schedule is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Dividers {
    free: DividerCycles,
}

impl Dividers {
    /// Cycles at which the result of an operation is there that has its operands at `start`.
    pub(super) fn schedule_op(
        &mut self,
        kind: OpKind,
        start: DividerCycles,
        latency: u64,
    ) -> DividerCycles {
        let mut done = start.map(|each| each.map(|cycle| cycle + latency));
        if let Some(kind) = divider_index(kind) {
            for (schedule, taken) in DIVIDERS.into_iter().enumerate() {
                let begin = start[kind][schedule].max(self.free[kind][schedule]);
                self.free[kind][schedule] = begin + taken;
                done[kind][schedule] = begin + latency.max(taken);
            }
        }
        done
    }
}

/// Has every schedule wait for another value.
pub(super) fn raise_cycles(ready: &mut DividerCycles, other: &DividerCycles) {
    for (ready, other) in ready
        .as_flattened_mut()
        .iter_mut()
        .zip(other.as_flattened())
    {
        *ready = (*ready).max(*other);
    }
}
