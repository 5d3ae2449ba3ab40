//! The last level of a choice: the hold on a program's threads, from their PUs to none.

use super::candidate::{Candidate, ISO, Inside};
use super::characteristics::Characteristics;
use super::rules::{Case, holding};
use super::shape::Shape;

/// Extent that a program's threads may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Its PU, for each thread.
    Pu,
    /// The cache domain of their PUs.
    Domain,
    /// None.
    Free,
}

impl Hold {
    /// Description in a sentence.
    pub(super) fn sentence(self) -> &'static str {
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
pub(super) fn holds(candidate: Candidate, known: &[Characteristics], shape: &Shape) -> Vec<Hold> {
    let (pinned, free) = (with_all(shape, true), with_all(shape, false));
    let pinned = Case::new(known, &pinned, shape);
    let free = Case::new(known, &free, shape);
    let hold = |group| {
        let (pinned, free) = (holding(&pinned, group), holding(&free, group));
        if free < pinned {
            Hold::Free
        } else if pinned < free || !keeps_to_domains(candidate) {
            Hold::Pu
        } else {
            Hold::Domain
        }
    };
    (0..known.len()).map(hold).collect()
}

/// Returns the mapping with all threads pinned, or none.
fn with_all(shape: &Shape, pinned: bool) -> Shape {
    let mut shape = shape.clone();
    shape.groups.iter_mut().for_each(|m| m.pinned = pinned);
    shape
}

fn keeps_to_domains(candidate: Candidate) -> bool {
    matches!(
        candidate,
        Candidate::Placed { inside, .. } if inside == ISO || inside == Inside::Balanced
    )
}
