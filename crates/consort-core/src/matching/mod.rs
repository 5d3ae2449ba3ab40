//! Matchings: the threads that share each core, and the core of each group of them.
//!
//! Purpose: the decision step of symbiotic scheduling (Feliu et al., HPCA
//! 2016). Usage: fill [`PairCosts`], ask [`pairs()`] for the exact
//! minimum-weight matching of threads into pairs, or [`group_threads()`] for more than two
//! per core, then [`assign`] for the cores with the fewest moves. Pitfalls: all
//! is pure and deterministic, but among equally good matchings the one that is
//! found depends on the order of threads.

mod ascent;
mod blossom;
mod candidates;
mod coarse;
mod costs;
mod error;
mod fractional;
mod groups;
mod pairs;
mod scaled_costs;
mod seats;
mod sweep;
#[cfg(test)]
mod tests;

pub use costs::{MAX_THREADS, PairCosts};
pub use error::MatchingError;
pub use groups::{GroupRoom, ThreadGrouping, exhaustive_grouping, group_threads, visit_partitions};
pub use pairs::{Pairing, pairs, pairs_from};
pub use seats::{Seat, Seating, assign, assign_priced};
