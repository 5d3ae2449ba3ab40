//! `consort completions`: what a shell needs to complete words.
//!
//! The script asks this program for the words, so that they are those that it knows: policies,
//! machines and programs of the user's own among them.

use crate::cli::{COMPLETE, CompletionsArgs};
use crate::failure::bad_input;
use crate::output;
use anyhow::Result;
use clap_complete::env::Shells;
use std::io::Write;
use std::process::ExitCode;

/// Name by which shells call and find this program.
const NAME: &str = "consort";

pub(crate) fn execute(args: &CompletionsArgs) -> Result<ExitCode> {
    let shell = args.shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell);
    let completer = completer.ok_or_else(|| bad_input(format!("unknown shell '{shell}'")))?;
    let mut script = Vec::new();
    completer.write_registration(COMPLETE, NAME, NAME, NAME, &mut script)?;
    output::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
