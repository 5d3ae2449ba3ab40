//! Studies: published experiments run again, and the reports that they give.
//!
//! Purpose: a [`Study`] states what its source did and produces tables, figures
//! and notes; everything around that is here. Nearly all studies are files: experiments that give
//! a [`frame`], and views of it ([`mod@study`]). Usage: pick studies from a
//! [`Registry`], run them with [`runner::run`] against a [`Store`], so that
//! what is finished is not run again, and write them out with
//! [`report::write`]; [`mod@reference`] sets published figures beside ours.
//! Pitfall: results depend on the seed and the scale, never on the number of
//! workers or on time; a study that breaks this breaks resuming.

mod atomic;
pub mod bench;
mod context;
pub mod descriptions;
pub mod experiment;
pub mod frame;
pub mod long;
pub mod mapping;
pub mod reference;
mod registry;
pub mod report;
pub mod runner;
pub mod simulate;
mod stop;
mod store;
pub mod studies;
pub mod study;
pub mod sweep;
#[cfg(test)]
mod testing;
pub mod traced;
pub mod train;

/// What made a result: the package's version and a fingerprint of the sources of the
/// simulation and the studies, of the described machines and programs, and of the
/// versions of dependencies. A result that another version made is computed again.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("CONSORT_FINGERPRINT"));
pub mod validate;

pub use context::{Context, Made, Progress};
pub use descriptions::Descriptions;
pub use registry::{Registry, UnknownStudy};
pub use stop::Stop;
pub use store::{Store, StoreError, StoreKey};
pub use study::{FileStudy, Scale, Study, StudyError, StudyInfo, StudyOutput, StudyReport};
