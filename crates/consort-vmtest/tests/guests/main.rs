//! Promise: on real kernels with real topologies, Consort sees the processor as it is, places
//! threads as its policy says, and leaves every mask as it was.
//!
//! A boot takes seconds, so all tests of a topology share one.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may fail loudly")]

mod clock;
mod cookies;
mod endings;
mod four_by_two;
mod four_ways;
mod held;
mod isolated;
mod nodes;
mod spread;
mod support;
mod symbiotic;
mod trial;
