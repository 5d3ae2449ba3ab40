//! Descriptions of machines, programs and workloads that can be simulated.
//!
//! Each is a TOML file with the sources of its figures, which is read into a specification and
//! checked. Errors name file, line and key ([`describe`]). Presets ship with the crate.

pub mod describe;
pub mod input;
pub mod machine;
pub mod math;
pub mod program;
pub mod workload;
