//! `consort completions`: a completion script for a shell.

use crate::cli::{Cli, CompletionsArgs};
use crate::output;
use anyhow::Result;
use clap::CommandFactory;
use std::process::ExitCode;

pub(crate) fn execute(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "consort", &mut script);
    std::io::Write::write_all(&mut output::stdout(), &script)?;
    Ok(ExitCode::SUCCESS)
}
