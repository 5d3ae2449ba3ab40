//! Ground of the studies of thread mappings: one sweep of pairs of programs over mappings, and its
//! tables and figures.
//!
//! [`sweep`] has the runs, made once for all studies that share them; [`measures`] the measures of
//! them; [`views`] values and cells by program and mapping; [`pair`] one pair, and [`of_pair`]
//! the studies of one, which [`pairs`] lists; [`choice`] the mapping that would be chosen by each
//! prediction. Pitfall: all pairs are measured for every study, so the first study of a set takes
//! the time of all.

pub(super) mod breakdown;
pub(super) mod choice;
pub(super) mod measures;
pub(super) mod notes;
pub(super) mod of_pair;
pub(super) mod pair;
pub(super) mod pairs;
pub(super) mod per_program;
pub(super) mod plan;
pub(super) mod subset;
pub(super) mod sweep;
pub(super) mod views;

pub(super) use crate::simulate::part_error;
