//! `consort-demo`: programs with known behaviour, for `consort run` to watch.
//!
//! The command line has one subcommand per kernel, made from the registry, and those of the whole
//! programs. Exit status: 0 when all results were right, 1 when one was wrong or the run failed, 2
//! for bad usage or a program that this processor cannot run.

mod output;
mod programs;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use consort_kernels::{KernelEntry, kernels};
use output::{DemoFormat, DemoVerdict};
use programs::{DemoProgram, KernelArgs};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match parse(std::env::args_os()) {
        Ok(DemoRequest { what, format }) => match what {
            DemoTarget::Kernel(entry, args) => args.run(entry, format),
            DemoTarget::Program(program) => program.run(format),
        },
        Err(DemoReply::Text(text)) => output::print_line(&text).map(|()| DemoVerdict::Right),
        Err(DemoReply::BadUsage(message)) => return output::fail(2, &message),
    };
    match outcome {
        Ok(verdict) => verdict.into(),
        Err(error) => output::fail(error.exit_code(), &error.to_string()),
    }
}

/// Programs with known behaviour, for `consort run` to watch.
///
/// Each program knows the results that it must come to: it exits with 0 if they
/// are right, 1 if not, 2 for bad usage.
#[derive(Parser)]
#[command(
    name = "consort-demo",
    version,
    subcommand_required = true,
    after_help = "Example: consort-demo mixed --seconds 5"
)]
struct DemoCli {
    /// Output format of results.
    #[arg(long, value_enum, default_value = "table", global = true)]
    format: DemoFormat,
}

struct DemoRequest {
    what: DemoTarget,
    format: DemoFormat,
}

enum DemoTarget {
    Kernel(&'static KernelEntry, KernelArgs),
    Program(DemoProgram),
}

/// Reply to a command line that runs nothing.
enum DemoReply {
    /// Help or the version.
    Text(String),
    /// One line: what was wrong and what would be right.
    BadUsage(String),
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<DemoRequest, DemoReply> {
    command()
        .try_get_matches_from(args)
        .and_then(|matches| request(&matches))
        .map_err(|error| answer(&error))
}

fn command() -> Command {
    let kernels = kernels::REGISTRY.iter().map(|entry| {
        let about = format!("Kernel: {}", entry.summary);
        // Behind the arguments, whose own description would take its place.
        KernelArgs::augment_args(Command::new(entry.name)).about(about)
    });
    let top = DemoCli::augment_args(Command::new("consort-demo")).subcommands(kernels);
    DemoProgram::augment_subcommands(top).about("Programs with known behaviour, for `consort run`")
}

fn request(matches: &ArgMatches) -> Result<DemoRequest, clap::Error> {
    let format = DemoCli::from_arg_matches(matches)?.format;
    let kernel = matches
        .subcommand()
        .and_then(|(name, args)| Some((kernels::find(name)?, args)));
    let what = match kernel {
        Some((entry, args)) => DemoTarget::Kernel(entry, KernelArgs::for_kernel(entry, args)?),
        None => DemoTarget::Program(DemoProgram::from_arg_matches(matches)?),
    };
    Ok(DemoRequest { what, format })
}

fn answer(error: &clap::Error) -> DemoReply {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => DemoReply::Text(text),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            DemoReply::BadUsage("no program named; `consort-demo list` shows them".to_owned())
        }
        _ => DemoReply::BadUsage(one_line(&text)),
    }
}

/// clap's message without its usage, on one line.
fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:"))
        .map(|line| line.trim().trim_start_matches("error: "))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    parts.join("; ")
}
