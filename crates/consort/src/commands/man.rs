//! `consort man`: the man pages, one for the program and one for each verb.

use crate::cli::{Cli, ManArgs};
use crate::failure::bad_input;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::process::ExitCode;

pub(crate) fn execute(args: &ManArgs) -> Result<ExitCode> {
    std::fs::create_dir_all(&args.folder).map_err(|error| {
        let folder = args.folder.display();
        bad_input(format!("cannot make folder {folder}: {error}"))
    })?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("cannot write man pages into {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
