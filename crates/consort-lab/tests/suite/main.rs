//! Promises of the published studies, in one program, so that what several studies run is run once.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod asymmetry_programs;
mod beyond_the_sources;
mod common;
mod coscheduling;
mod coscheduling_studies;
mod hrrs_ideal;
mod occupancy;
mod recorded;
mod round_robin;
mod symbiosis;
mod thread_mappings;
