//! Analysis of thread mappings: tables and figures of the resources that decide between them.
//!
//! [`Analysis`] makes them of a table that was simulated ([`consort_experiment::mapping`]) or
//! counted on a live machine.

mod analysis;
mod answers;
mod figures;
mod tables;

pub use analysis::Analysis;
pub use answers::Question;
pub(crate) use tables::variation_cell;
