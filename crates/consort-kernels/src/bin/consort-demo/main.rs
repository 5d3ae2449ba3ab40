//! `consort-demo`: programs with known behaviour, for `consort run` to watch.
//!
//! Exit status: 0 when all results were right, 1 when one was wrong or the run
//! failed, 2 for bad usage or a program that this processor cannot run.

mod cli;
mod output;
mod programs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match cli::parse(std::env::args_os()) {
        Ok(command) => command.run(),
        Err(cli::DemoReply::Text(text)) => {
            output::print_line(&text).map(|()| output::DemoVerdict::Right)
        }
        Err(cli::DemoReply::BadUsage(message)) => return output::fail(2, &message),
    };
    match outcome {
        Ok(verdict) => verdict.into(),
        Err(error) => output::fail(error.exit_code(), &error.to_string()),
    }
}
