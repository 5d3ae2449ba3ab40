//! Machines that come with Consort, embedded from `machines/*.toml`.

use super::preset_files::PRESETS;
use super::spec::MachineSpec;
use crate::describe::DescribeError;
use consort_core::hint;
use thiserror::Error;

/// Reason why there is no such preset.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachinePresetError {
    /// No preset has the name.
    #[error("unknown machine '{name}'; {hint}")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The embedded file is broken, which a test of this crate rules out.
    #[error(transparent)]
    Broken(#[from] DescribeError),
}

/// Names of all presets, in the order of the registry.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The text of a preset's file.
pub fn text(name: &str) -> Option<&'static str> {
    let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
    Some(text)
}

/// The preset of a name.
///
/// # Errors
/// [`MachinePresetError::Unknown`] with the nearest name.
pub fn find(name: &str) -> Result<MachineSpec, MachinePresetError> {
    let text = text(name).ok_or_else(|| unknown_preset(name))?;
    Ok(super::parse(&format!("machines/{name}.toml"), text)?)
}

/// Returns the error for a name that no preset has.
pub(super) fn unknown_preset(name: &str) -> MachinePresetError {
    MachinePresetError::Unknown {
        name: name.to_owned(),
        hint: hint(name, names()),
    }
}
