//! Event files: the hardware events of a microarchitecture, their encodings, the counters that can
//! hold them, and the signals that follow from them.
//!
//! [`event_file_for`] returns the built-in [`EventFile`] of a CPU; [`crate::counters`] plans groups
//! from it and computes signals.
//!
//! Pitfall: an encoding without a source stays out of the files, because a wrong event is worse than
//! none. [`crate::counters::check`] runs every event against loops of known counts.

mod expr;
mod file;

pub use expr::{Expr, ExprError, Operator};
pub use file::{
    CounterKind, EventDefinition, EventFile, EventFileError, EventUnit, FormulaPart, MatchRule,
    PmuEvents, SignalFormula, parse_event_file,
};

use crate::topology::CpuIdentity;

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../events/", $name, ".toml")))),+]
    };
}

/// Name and text of each built-in event file. A new file needs a line here.
pub const EMBEDDED: &[(&str, &str)] = embedded![
    "intel-skylake",
    "intel-ice-lake",
    "intel-alder-lake",
    "intel-meteor-lake",
    "intel-arrow-lake",
    "amd-zen2",
    "amd-zen3",
    "amd-zen4",
    "amd-zen5",
    "amd-bulldozer",
    "arm-neoverse-n1",
    "arm-neoverse-n2",
    "arm-neoverse-v1",
    "arm-neoverse-v2",
    "power7",
    "power8",
    "power9",
    "power10",
];

/// Parses all built-in event files.
///
/// # Errors
/// If one of them is malformed, which the tests rule out.
pub fn event_files() -> Result<Vec<EventFile>, EventFileError> {
    let parse = |&(name, text): &(&str, &str)| parse_event_file(&format!("{name}.toml"), text);
    EMBEDDED.iter().map(parse).collect()
}

/// Returns the built-in event file for a CPU; `None` if there is none.
///
/// # Errors
/// As [`event_files`].
pub fn event_file_for(identity: &CpuIdentity) -> Result<Option<EventFile>, EventFileError> {
    let fits = |file: &EventFile| file.matches.iter().any(|rule| rule.fits(identity));
    Ok(event_files()?.into_iter().find(fits))
}
