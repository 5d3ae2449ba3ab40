//! Policies as arguments name them.

use crate::failure::Failure;
use crate::policy::{Raised, Written};
use consort_experiment::Contender;
use pyo3::prelude::*;

/// A policy as an argument names it.
pub(crate) enum AskedPolicy {
    /// Policy by name, with options.
    Named(String),
    /// Written in Python.
    Written(Written),
}

impl<'py> FromPyObject<'_, 'py> for AskedPolicy {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<String>() {
            Ok(name) => Ok(Self::Named(name)),
            Err(_) => Written::read(&object).map(Self::Written),
        }
    }
}

impl AskedPolicy {
    /// The contender, on a model of an operating system.
    pub(crate) fn contender(self, os: &str, raised: &Raised) -> Result<Contender, Failure> {
        match self {
            Self::Named(name) => Ok(Contender::new(&name, os)?),
            Self::Written(policy) => Ok(Contender::from_policy(policy.custom(raised), os)?),
        }
    }
}
