//! Dividers: one division at a time each, for which those that come in a group wait.
//!
//! A profile says by what share the longest chain gets longer with one divider that each division takes
//! for so many cycles ([`DivisionSpec`]). Several dividers are one that is taken for less, what co-runners
//! leave of one is a divider that is taken for longer, and on a core whose chains take longer the same
//! groups wait less.

use super::core_model::DIVIDER_KINDS;
use super::thread_setting::{ResourceShares, ThreadSetting};
use crate::program::DivisionSpec;

impl ThreadSetting<'_> {
    /// Divisions per instruction, by kind.
    fn divisions(&self) -> [Option<DivisionSpec>; DIVIDER_KINDS] {
        let ilp = &self.demand.phase.spec.ilp;
        [ilp.int_divisions, ilp.fp_divisions]
    }

    /// Share of the dividers of a kind that it can reach which it uses, at so many cycles per
    /// instruction, 0 to 1.
    pub(crate) fn divider_use(&self, kind: usize, cpi: f64) -> f64 {
        let divider = &self.model.dividers[kind];
        let ports = divider.ports.reach(self.on_core as usize);
        match self.divisions()[kind] {
            Some(divisions) if ports > 0.0 && cpi > 0.0 => {
                (divisions.operations * divider.interval / (ports * cpi)).min(1.0)
            }
            _ => 0.0,
        }
    }

    /// Cycles per instruction that divisions wait for dividers, of a chain of so many cycles per
    /// instruction.
    pub(super) fn divider_wait(&self, held: &ResourceShares, chain: f64) -> f64 {
        let scale = self.latency / self.chain.reference_latency();
        let kinds = self.divisions().into_iter().zip(&self.model.dividers);
        let longer = kinds
            .zip(held.divided)
            .map(|((divisions, divider), taken)| {
                let ports = divider.ports.reach(self.on_core as usize);
                match divisions {
                    Some(divisions) if ports > 0.0 => {
                        let cycles = divider.interval / (ports * (1.0 - taken));
                        divisions.lengthening(cycles / scale)
                    }
                    _ => 0.0,
                }
            });
        chain * longer.sum::<f64>()
    }
}
