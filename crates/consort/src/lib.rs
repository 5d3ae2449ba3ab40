//! The command line.

mod cli;
mod commands;
mod config;
mod descriptions;
mod failure;
mod metric;
mod options;
mod output;
mod progress;
mod report;
mod timelines;
mod values;

use crate::values::COMPLETE;
use clap::FromArgMatches as _;
use clap_complete::CompleteEnv;
use cli::{Cli, Verb};
use consort_core::escape_invisible;
use std::io::{self, Stderr, Write};
use std::process::ExitCode;
use std::time::SystemTime;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs the verb that the arguments of this process name; its exit status.
#[must_use]
pub fn main() -> ExitCode {
    // Before the command line is parsed, because neither help nor completions show these arguments.
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == commands::manage::GUARDIAN)
    {
        return consort_linux::enact::guardian_main(arguments);
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == commands::manage::READER)
    {
        return consort_linux::reader::reader_main();
    }
    consort_linux::reader::use_helper(vec![commands::manage::READER.into()]);
    if let Some(worked) = consort_host::run_worker() {
        return match worked {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure::report(&error),
        };
    }
    // Ends the process if a shell has requested completions.
    CompleteEnv::with_factory(cli::command)
        .var(COMPLETE)
        .complete();
    start_log();
    let parsed = cli::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error, &cli::command()),
    };
    if cli.wide {
        output::page::set_wide();
    }
    consort_data::set_page_foot(page_foot());
    let result = match &cli.verb {
        Verb::Run(args) => commands::run::execute(args),
        Verb::Trial(args) => commands::trial::execute(args),
        Verb::Record(args) => commands::run::record(args),
        Verb::Replay(args) => commands::replay::execute(args),
        Verb::WhatIf(args) => commands::what_if::execute(args),
        Verb::Attach(args) => commands::attach::execute(args),
        Verb::Detach(args) => commands::daemon_requests::detach(args),
        Verb::Daemon(args) => commands::daemon::execute(args),
        Verb::Status(args) => commands::daemon_requests::show_status(args),
        Verb::Top(args) => commands::top::execute(args),
        Verb::Explain(args) => commands::daemon_requests::explain(args),
        Verb::Config(args) => commands::config::execute(args),
        Verb::Machine(args) => commands::machine::execute(args),
        Verb::List(args) => commands::list::execute(args),
        Verb::Policies(args) => commands::policies::execute(args).map(|()| ExitCode::SUCCESS),
        Verb::Glossary(args) => commands::glossary::execute(args),
        Verb::Simulate(args) => commands::simulate::execute(args),
        Verb::Compare(args) => commands::compare::execute(args),
        Verb::Map(args) => commands::map::execute(args),
        Verb::Reproduce(args) => commands::reproduce::execute(args),
        Verb::Sweep(args) => commands::sweep::execute(args),
        Verb::Profile(args) => commands::profile::execute(args),
        Verb::Programs(args) => commands::programs::execute(args).map(|()| ExitCode::SUCCESS),
        Verb::Bench(args) => commands::bench::execute(args),
        Verb::Validate(args) => commands::validate::execute(args),
        Verb::Schema(args) => {
            commands::listings::print_schema(args.kind).map(|()| ExitCode::SUCCESS)
        }
        Verb::Train(args) => commands::train::execute(args),
        Verb::Completions(args) => commands::listings::print_completions(args),
        Verb::Man(args) => commands::listings::write_man_pages(args, cli::command()),
    };
    result.unwrap_or_else(|error| failure::report(&error))
}

/// Version, date and command, for the foot of pages.
fn page_foot() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let date = now.split('T').next().unwrap_or_default();
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let words = shell_words::join(words);
    format!(
        "Consort {}, {date}: consort {words}",
        env!("CARGO_PKG_VERSION")
    )
}

/// The log goes to stderr and is silent unless CONSORT_LOG sets a level; stdout is for results.
fn start_log() {
    let requested = std::env::var("CONSORT_LOG").ok();
    let targets: Option<Targets> = requested.and_then(|text| text.parse().ok());
    let log = tracing_subscriber::fmt::layer().with_writer(LineWriter::new);
    tracing_subscriber::registry()
        .with(log.with_filter(targets.unwrap_or_default()))
        .init();
}

/// A writer of one event, which is written whole.
pub(crate) struct LineWriter<W = Stderr>(W);

impl LineWriter {
    /// A writer to stderr.
    pub(crate) fn new() -> Self {
        Self(io::stderr())
    }
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut line = escape_invisible(line).into_owned();
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_with_line_end_stays_one_line() {
        let mut out = LineWriter(Vec::new());
        out.write_all(b"INFO moved a\nWARN fake\x1b[2J\n").unwrap();
        let text = String::from_utf8(out.0).unwrap();
        assert_eq!(text, "INFO moved a\\nWARN fake\\x1b[2J\n");
    }
}
