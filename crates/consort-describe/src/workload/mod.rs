//! Workloads: which programs run together, with how many threads, from when on.
//!
//! An expression such as `4*hmmer+4*povray`, `streamcluster@4+blackscholes@4`,
//! `mix:spec2006/10?seed=7` or `2*./mine.toml` is parsed into a
//! [`WorkloadExpr`]; [`Workload::resolve`] looks its programs up in a
//! [`ProgramSource`] and gives one [`ProgramInstance`] per copy. A workload file
//! ([`WorkloadFile`]) adds start delays.
//!
//! A name or path that contains signs of the notation stands in quotes, as in
//! `"./c++.toml"@2+hmmer`. Without quotes the longest existing file wins.

mod draw;
mod error;
mod expr;
mod file;
mod parse;
mod resolve;
mod source;
mod spec;

pub use error::{LoadError, WorkloadError};
pub use expr::{WorkloadExpr, WorkloadItem, WorkloadTerm};
pub use file::WorkloadFile;
pub use resolve::{ProgramInstance, Workload};
pub use source::{DescriptionFile, ProgramSource};
pub use spec::{EntrySpec, WorkloadSpec};

/// Most instances of one workload, and most threads of one instance.
pub const MAX_INSTANCES: u32 = 65_536;
