//! Faults that a run must survive: its command unharmed, every mask as before,
//! and one plain line about what is missing.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/compiled.rs"]
mod compiled;
mod crowds;
mod folders;
mod limits;
mod namespaces;
mod outputs;
mod planted;
mod relayed;
mod states;
mod under;
