//! Threads in groups, one group per core: who takes part, and which core and PU each gets.
//!
//! `symbiotic`, `l1-bandwidth` and `sampling` differ in how they make
//! groups; [`Crew`] tells them of which threads, and [`seat`] carries them out with the fewest
//! moves. Public because the oracle, which only a simulation can have, makes groups as well.

mod crew;
mod nodes;
mod seats;

pub use crew::Crew;
pub use nodes::{Domain, Homes, inside};
pub use seats::{Prices, leave, priced_cores, seat, seat_on};
