//! Descriptions: TOML files of machines, programs and workloads, and what is wrong with them.
//!
//! [`parse`] reads a description and has it validated; whatever is wrong comes
//! back as one line that names file, line and key and says what would be right.
//! [`machine_schema`] and [`program_schema`] publish the formats.

mod error;
mod key_scope;
mod load;
mod locate;
mod message;
mod problems;
mod schema;

pub use error::DescribeError;
pub(crate) use key_scope::KeyScope;
pub use load::parse;
pub use locate::Locations;
pub use problems::{DescriptionProblem, Problems};
pub use schema::{machine_schema, program_schema};
