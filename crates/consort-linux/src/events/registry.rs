//! The event files that are built in. A new one needs a line here.

use super::file::{EventFile, EventFileError};
use super::parse::parse_event_file;
use crate::topology::CpuIdentity;

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../events/", $name, ".toml")))),+]
    };
}

/// Name and text of each built-in event file.
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

/// All built-in event files.
///
/// # Errors
/// When one of them is malformed, which the tests rule out.
pub fn event_files() -> Result<Vec<EventFile>, EventFileError> {
    let parse = |&(name, text): &(&str, &str)| parse_event_file(&format!("{name}.toml"), text);
    EMBEDDED.iter().map(parse).collect()
}

/// The built-in event file for a CPU, if there is one.
///
/// # Errors
/// As [`event_files`].
pub fn event_file_for(identity: &CpuIdentity) -> Result<Option<EventFile>, EventFileError> {
    let fits = |file: &EventFile| file.matches.iter().any(|rule| rule.fits(identity));
    Ok(event_files()?.into_iter().find(fits))
}
