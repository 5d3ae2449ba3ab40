//! Sources from which workloads take their programs.

use super::error::LoadError;
use super::file::WorkloadFile;
use crate::program::ProgramSpec;
use std::sync::Arc;

/// Presets, folders of the user, or whatever else knows programs.
pub trait ProgramSource {
    /// The program of that name, if there is one.
    ///
    /// # Errors
    /// When there is one and it cannot be read.
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError>;

    /// The programs of a suite, in any order; empty if there is no such suite.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn suite(&self, name: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError>;

    /// True if there is a file of this name, no folder.
    fn is_file(&self, path: &str) -> bool;

    /// Reads a file; see [`is_meant_by`](super::WorkloadSpec::is_workload_text) for telling the two kinds apart.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError>;

    /// Names of all programs.
    fn programs(&self) -> Vec<String>;

    /// Names of all suites.
    fn suites(&self) -> Vec<String>;
}

/// Thing that a file describes.
#[derive(Clone, Debug, PartialEq)]
pub enum DescriptionFile {
    /// A program.
    Program(Arc<ProgramSpec>),
    /// A workload.
    Workload(WorkloadFile),
}
