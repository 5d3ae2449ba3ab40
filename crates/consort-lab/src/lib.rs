//! Studies: published experiments run again, and their reports; [sweeps](sweep) of many runs, and
//! [`validate`], which compares the simulation with published figures, laws and a real kernel.
//!
//! Pick studies from a [`Registry`], run them with [`runner::run`] against a [`StudyStore`], which
//! keeps finished ones, and write their reports with [`pages::write`]. Nearly all studies are files:
//! experiments that give a [`frame`], and views of it ([`mod@study`]). Results depend on the seed
//! and the scale, never on the number of workers or on time; a study that breaks this breaks
//! resuming.

pub mod descriptions;
pub mod frame;
pub mod mapping;
pub mod pages;
pub mod reference;
mod registry;
pub mod runner;
pub mod simulate;
mod store;
pub mod studies;
pub mod study;
pub mod sweep;
#[cfg(test)]
mod testing;
pub mod validate;

/// Version of results: the package's version and a fingerprint of the sources of the simulation and
/// the studies, of the described machines and programs, and of the versions of dependencies. A
/// result of another version is computed again.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("CONSORT_FINGERPRINT"));

pub use descriptions::Descriptions;
pub use registry::{Registry, UnknownStudy, registry};
pub use store::{StoreError, StoreKey, StudyStore};
pub use study::{
    FileStudy, Study, StudyError, StudyInfo, StudyOutput, StudyReport, study_to_long_table,
};
