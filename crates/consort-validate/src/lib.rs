//! Validation: what the simulation gives beside what was published or measured.
//!
//! Purpose: one [`Check`] per figure, in [groups](GROUPS) that say what kind of
//! evidence they are. Usage: [`select`] groups by name, [`run`] them with the
//! published [`Data`], and print or serialize the [`Validation`]; [`of_checks`] makes a table of it.
//! Pitfalls: a disagreement is a finding and stays listed; parameters of
//! machines and programs are never changed to remove one. Only `conservation`
//! can fail, since its checks are laws. Everything but `speed` depends on the
//! seed and the scale alone.

mod alone;
mod check;
mod conservation;
mod consistency;
mod data;
mod error;
mod group;
mod groups;
mod independent;
mod long;
mod placement;
mod reference;
mod reference_summary;
mod speed;
mod statistics;
mod tables;
mod validation;

pub use check::{Check, ErrorKind, Published};
pub use data::Data;
pub use error::ValidateError;
pub use group::{Group, GroupOutput, Inputs};
pub use groups::{GROUPS, UnknownGroup, select};
pub use long::of_checks;
pub use reference_summary::{ReferenceSummary, Shares};
pub use validation::{Disagreement, GroupSummary, Note, Validation, run};

#[cfg(test)]
mod tests;
