//! Machines that come with Consort, embedded from `machines/*.toml`.

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

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*]
    };
}

/// Names and texts.
const PRESETS: &[(&str, &str)] = presets![
    "bulldozer-6282se",
    "power7",
    "power8",
    "acmp-1+1",
    "acmp-1+3",
    "acmp-1+7",
    "acmp-1+15",
    "acmp-2+6",
    "acmp-4+12",
    "acmp-8+24",
    "xeon-e5320",
    "core2-q9550",
    "core-i9-12900k",
    "epyc-7763",
    "rk3588",
    "xeon-silver-4110",
    "xeon-5120",
    "core-i7-6700",
    "xeon-e5-2630v4",
    "odroid-xu3",
    "jetson-tx2",
    "apple-m1",
    "ryzen-9-7950x3d",
];
