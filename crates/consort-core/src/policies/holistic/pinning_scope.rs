//! The last level of a choice: the hold on a program's threads, from their PUs to none.

use super::candidate::{ISO, MappingCandidate, NodeDivision};
use super::characteristics::ProgramCharacteristics;
use super::rules::{PricingCase, pinning_cost};
use super::shape::MappingShape;

/// Extent that a program's threads may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinningScope {
    /// Its PU, for each thread.
    Pu,
    /// The cache domain of their PUs.
    Domain,
    /// None.
    Free,
}

impl PinningScope {
    /// Description in a sentence.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Pu => "each thread stays on its PU",
            Self::Domain => "threads stay in their cache domain",
            Self::Free => "threads are free to run anywhere, as pinning costs more",
        }
    }
}

/// Chooses for each program the cheaper of pinning it and leaving it free. Where both cost the
/// same, it takes the one that the mapping needs: whole programs in domains need not be pinned
/// within.
pub(super) fn choose_pinning(
    candidate: MappingCandidate,
    known: &[ProgramCharacteristics],
    shape: &MappingShape,
) -> Vec<PinningScope> {
    let (pinned, free) = (
        shape_with_pinning(shape, true),
        shape_with_pinning(shape, false),
    );
    let pinned = PricingCase::new(known, &pinned, shape);
    let free = PricingCase::new(known, &free, shape);
    let hold = |group| {
        let (pinned, free) = (pinning_cost(&pinned, group), pinning_cost(&free, group));
        if free < pinned {
            PinningScope::Free
        } else if pinned < free || !keeps_to_domains(candidate) {
            PinningScope::Pu
        } else {
            PinningScope::Domain
        }
    };
    (0..known.len()).map(hold).collect()
}

/// Returns the mapping with all threads pinned, or none.
fn shape_with_pinning(shape: &MappingShape, pinned: bool) -> MappingShape {
    let mut shape = shape.clone();
    shape.groups.iter_mut().for_each(|m| m.pinned = pinned);
    shape
}

fn keeps_to_domains(candidate: MappingCandidate) -> bool {
    matches!(
        candidate,
        MappingCandidate::Placed { inside, .. } if inside == ISO || inside == NodeDivision::Balanced
    )
}
