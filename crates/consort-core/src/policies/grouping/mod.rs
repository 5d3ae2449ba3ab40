//! Threads in groups, one group per core: who takes part, and which core and PU each gets.
//!
//! `symbiotic`, `l1-bandwidth` and `sampling` differ in how they make
//! groups; [`GroupedThreads`] tells them of which threads, and [`place_groups`] carries them out with the fewest
//! moves. Public because the oracle, which only a simulation can have, makes groups as well.

mod group_placement;
mod grouped_threads;
mod nodes;

pub use group_placement::{CorePrices, leave_to_os, place_groups, place_groups_on, priced_cores};
pub use grouped_threads::GroupedThreads;
pub use nodes::{FillDomain, HomeNodes, is_in_own_domain};
