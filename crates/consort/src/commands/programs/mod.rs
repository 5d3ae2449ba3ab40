//! `consort programs`: the programs that can be simulated.

mod list;
mod single_program;

use crate::cli::ProgramsArgs;
use anyhow::Result;
use std::process::ExitCode;

pub(crate) fn execute(args: &ProgramsArgs) -> Result<ExitCode> {
    match &args.name {
        Some(name) => single_program::print(name, args)?,
        None => list::print(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
