//! Descriptions: TOML files of machines, programs and workloads, and what is wrong with them.

mod problems;

pub use problems::{Problem, Problems};
