//! Matchings and assignments that are exact: which threads share a core, and which core each group
//! of threads gets.
//!
//! The crate solves the decision step of symbiotic scheduling (Feliu et al., HPCA 2016), but knows
//! nothing of processors: threads and cores are indices, and costs are numbers of your own. It is
//! for anyone who must split many items into pairs or small groups at the least total cost.
//!
//! - [`pairs()`] finds a minimum-weight matching into pairs and single threads. It proves its result:
//!   the duals of the blossom algorithm are a lower bound of every matching's cost.
//! - [`group_threads`] splits threads into larger groups, which is NP-hard, by pairing of groups and
//!   local search. [`exhaustive_grouping`] and [`visit_partitions`] are its measure for few threads.
//! - [`assign`] gives each group a core so that as few threads as possible move.
//!
//! For example, threads 0 and 1 disturb each other, and so do threads 2 and 3:
//!
//! ```
//! use consort_matching::{PairCosts, Seat, assign, pairs};
//!
//! let costs = PairCosts::from_fn(4, |i, j| if i / 2 == j / 2 { 4.0 } else { 2.0 })?;
//! let pairing = pairs(&costs, &[1.0; 4], 2)?;
//! assert_eq!(pairing.cost, 4.0);
//!
//! // Threads 0 and 1 ran on the first core until now, 2 and 3 on the second.
//! let on = [Some(0), Some(0), Some(1), Some(1)];
//! let seats = [Seat { pus: 2, move_cost: 1 }; 2];
//! let groups: Vec<Vec<usize>> = { pairing.pairs.iter() }
//!     .map(|&(first, second)| [first].into_iter().chain(second).collect())
//!     .collect();
//! let seating = assign(&groups, &on, &seats, |_, _| true)?;
//! assert_eq!(seating.moved, 2);
//! # Ok::<(), consort_matching::MatchingError>(())
//! ```
//!
//! All functions are pure and deterministic, but which one of several equally good matchings is
//! found depends on the order of threads. One matching takes at most [`MAX_THREADS`] threads.

mod blossom;
mod costs;
mod fractional;
mod groups;
mod pairs;
mod scaled_costs;
mod seats;
mod start;

pub use costs::{MAX_THREADS, PairCosts};
pub use groups::{GroupRoom, ThreadGrouping, exhaustive_grouping, group_threads, visit_partitions};
pub use pairs::{Pairing, pairs, pairs_from};
pub use seats::{Seat, Seating, assign, assign_priced};

/// Reason why no matching or assignment exists.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatchingError {
    /// A cost is NaN or minus infinity.
    #[error(
        "cost of threads {first} and {second} is {value}; it must be a number, or infinite where they must not meet"
    )]
    Cost {
        /// One thread.
        first: usize,
        /// The other.
        second: usize,
        /// The given value.
        value: f64,
    },
    /// A thread's cost of being alone is not finite.
    #[error("cost of thread {thread} alone is {value}; it must be a finite number")]
    Alone {
        /// The thread.
        thread: usize,
        /// The given value.
        value: f64,
    },
    /// Lists must have the same length and do not.
    #[error("{given} values of {what}, where {threads} threads need one each")]
    Length {
        /// Kind of the values.
        what: &'static str,
        /// Number of given values.
        given: usize,
        /// Number of threads, and so of values expected.
        threads: usize,
    },
    /// More threads than places.
    #[error("{threads} threads, where there is room for {most}")]
    TooMany {
        /// Number of given threads.
        threads: usize,
        /// Number of threads that would fit.
        most: usize,
    },
    /// A group finds no core next to the groups before it.
    #[error("no core is left that group {group} may use; give it more cores or fewer threads")]
    NoSeat {
        /// The group's number.
        group: usize,
    },
}
