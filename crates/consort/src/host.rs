//! This machine, as the kernel tells it or as a file has it.

use crate::failure::{as_bad_input, bad_input};
use anyhow::{Context, Result};
use consort_core::PuSet;
use consort_core::sharing::SharingMap;
use consort_linux::live::Host;
use std::path::Path;

/// Looks at this machine; what PUs share comes from `topology` where a file is given.
pub(crate) fn discover_host(topology: Option<&Path>) -> Result<Host> {
    let host = Host::detect(Path::new("/")).context("cannot see the processor")?;
    match topology {
        Some(path) => host
            .with_sharing(read(path)?, &path.display().to_string())
            .map_err(bad_input),
        None => Ok(host),
    }
}

/// The same machine with core types by decree: PUs in `large` count as large, where any are named.
pub(crate) fn emulate_asymmetry(host: Host, large: Option<&PuSet>) -> Result<Host> {
    match large {
        Some(large) => host
            .with_large(large.clone())
            .map_err(|error| bad_input(format!("--emulate-asymmetry: {error}"))),
        None => Ok(host),
    }
}

fn read(path: &Path) -> Result<SharingMap> {
    parse(path, consort_describe::input::read_text(path))
}

/// Checks a file of what PUs share, as a daemon does while it runs: it waits for no other process.
pub(crate) fn check_sharing(path: &Path) -> Result<()> {
    parse(path, consort_describe::input::read_regular_file(path)).map(drop)
}

fn parse(path: &Path, text: std::io::Result<String>) -> Result<SharingMap> {
    let origin = path.display().to_string();
    let text = text
        .with_context(|| format!("cannot read topology {origin}"))
        .map_err(|error| as_bad_input(&error))?;
    SharingMap::parse(&text, &origin).map_err(bad_input)
}
