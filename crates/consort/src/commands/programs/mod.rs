//! `consort programs`: the programs that can be simulated.

mod list;
mod one;

use crate::cli::ProgramsArgs;
use anyhow::Result;
use std::process::ExitCode;

pub(crate) fn execute(args: &ProgramsArgs) -> Result<ExitCode> {
    match &args.name {
        Some(name) => one::print(name, args)?,
        None => list::print(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
