//! What the studies of thread mappings share: one sweep of pairs of programs over mappings, and
//! its tables and figures.
//!
//! [`sweep`] has the runs, made once for all studies that share them; [`measures`] what is read off them; [`views`]
//! tables and figures by program and mapping; [`pair`] one pair, and [`of_pair`] the studies of one; [`choice`] what
//! mapping would be chosen by what. Pitfall: all pairs are measured for every study, so the first
//! study of a set takes the time of all.

pub(super) mod breakdown;
pub(super) mod choice;
pub(super) mod gains;
pub(super) mod measures;
pub(super) mod notes;
pub(super) mod of_pair;
pub(super) mod pair;
pub(super) mod per_program;
pub(super) mod plan;
pub(super) mod subset;
pub(super) mod sweep;
pub(super) mod views;

use crate::study::StudyError;

/// Names what part of a study failed.
pub(super) fn failed<E>(part: &str) -> impl Fn(E) -> StudyError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let part = part.to_owned();
    move |error| StudyError::part(part.as_str(), error)
}
