//! Characteristics that trials tell and one observation cannot: the sharing of data among siblings,
//! and the excess of their prefetcher.

use super::active_programs::ActiveProgram;
use super::candidate::{MappingCandidate, NodeDivision, SPR};
use crate::mapping::MappingScheme;
use crate::sample::ThreadObservation;
use crate::signal::Signal;

/// Misses and cycles on the bus per instruction, as counted under one mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TrafficRates {
    misses: PerInstructionRate,
    bus: PerInstructionRate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PerInstructionRate {
    part: f64,
    instructions: f64,
}

impl TrafficRates {
    pub(super) fn add(&mut self, group: &ActiveProgram<'_>) {
        for thread in &group.members {
            self.misses.add(thread, Signal::LlcMisses);
            self.bus.add(thread, Signal::BusBusyCycles);
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            misses: self.misses.plus(other.misses),
            bus: self.bus.plus(other.bus),
        }
    }
}

impl PerInstructionRate {
    /// Adds the counts of a thread; those that are not of the last quantum alone are of no use
    /// here.
    fn add(&mut self, thread: &ThreadObservation, signal: Signal) {
        let fresh = thread.sample.reading(signal);
        let fresh = fresh.filter(|reading| !reading.is_multiplexed());
        let instructions = thread.sample.get(Signal::Instructions);
        if let Some((reading, instructions)) = fresh.zip(instructions) {
            self.part += reading.raw;
            self.instructions += instructions;
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            part: self.part + other.part,
            instructions: self.instructions + other.instructions,
        }
    }

    fn value(self) -> Option<f64> {
        (self.instructions > 0.0 && self.part > 0.0).then(|| self.part / self.instructions)
    }
}

/// Returns true for a mapping that keeps siblings together, false for one that keeps them apart;
/// none for the operating system's.
fn keeps_together(candidate: MappingCandidate) -> Option<bool> {
    match candidate {
        MappingCandidate::Os => None,
        MappingCandidate::Placed { inside, .. } if inside == SPR => Some(false),
        MappingCandidate::Placed { inside, .. } => {
            Some(inside != NodeDivision::Scheme(MappingScheme::Int))
        }
    }
}

/// Growth of misses when siblings are apart, relative to the misses, and that of the bus's use
/// beyond it; none where not both were seen.
pub(super) fn sharing_and_excess<'a>(
    seen: impl Iterator<Item = (MappingCandidate, &'a TrafficRates)>,
) -> (Option<f64>, Option<f64>) {
    let (mut together, mut apart) = (TrafficRates::default(), TrafficRates::default());
    for (candidate, seen) in seen {
        match keeps_together(candidate) {
            Some(true) => together = together.plus(seen),
            Some(false) => apart = apart.plus(seen),
            None => {}
        }
    }
    let growth = |of: fn(&TrafficRates) -> PerInstructionRate| {
        Some(of(&apart).value()? / of(&together).value()?)
    };
    let misses = growth(|s| s.misses);
    let bus = growth(|s| s.bus);
    let excess = bus.map(|bus| bus / misses.unwrap_or(1.0).max(1.0));
    let beyond_one = |ratio: f64| (ratio - 1.0).max(0.0);
    (misses.map(beyond_one), excess.map(beyond_one))
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{INT, ISO};
    use super::super::division::ProgramDivision;
    use super::*;

    /// Counts of a billion instructions with so many misses and cycles on the bus.
    fn seen(misses: f64, bus: f64) -> TrafficRates {
        let ratio = |part| PerInstructionRate {
            part,
            instructions: 1e9,
        };
        TrafficRates {
            misses: ratio(misses),
            bus: ratio(bus),
        }
    }

    fn learnt(iso: &TrafficRates, int: &TrafficRates) -> (Option<f64>, Option<f64>) {
        let placed = |inside| MappingCandidate::Placed {
            nodes: ProgramDivision::Together,
            inside,
        };
        let os = (MappingCandidate::Os, iso);
        let all = [os, (placed(ISO), iso), (placed(INT), int)];
        sharing_and_excess(all.into_iter())
    }

    #[test]
    fn misses_that_siblings_apart_add_are_sharing_and_other_lines_excess() {
        // Half as many misses again, and the bus busy three times as long: twice beyond that.
        let (sharing, excess) = learnt(&seen(1e6, 1e7), &seen(1.5e6, 3e7));
        assert_eq!((sharing, excess), (Some(0.5), Some(1.0)));
        // Fewer misses apart are no sharing.
        let (sharing, excess) = learnt(&seen(1e6, 1e7), &seen(0.5e6, 1e7));
        assert_eq!((sharing, excess), (Some(0.0), Some(0.0)));
        assert_eq!(learnt(&seen(0.0, 0.0), &seen(1.0, 1.0)), (None, None));
    }
}
