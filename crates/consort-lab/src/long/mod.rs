//! Studies and checks as tables for files and data frames; see
//! [`consort_experiment::long`].

mod measured;
mod tables;

pub use measured::of_checks;
pub use tables::{of_study, of_table};
