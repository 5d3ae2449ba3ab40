//! Validation: what the simulation gives beside what was published or measured.
//!
//! Purpose: one [`ValidationCheck`] per figure, in [groups](GROUPS) that say what kind of
//! evidence they are. Usage: [`select`] groups by name, [`run`] them with the
//! published [`PublishedData`], and print or serialize the [`Validation`]; [`checks_to_long_table`] makes a table of it.
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
mod placement;
mod reference;
mod reference_summary;
mod speed;
mod statistics;
mod tables;
mod validation;

pub use check::{CheckErrorKind, PublishedFigure, ValidationCheck};
pub use data::PublishedData;
pub use error::ValidateError;
pub use group::{CheckGroup, GroupInputs, GroupOutput};
pub use groups::{GROUPS, UnknownGroup, select};
pub use reference_summary::{ReferenceSummary, VarianceShares};
pub use tables::checks_to_long_table;
pub use validation::{CheckGroupSummary, Disagreement, GroupNote, Validation, run};

#[cfg(test)]
mod tests;
