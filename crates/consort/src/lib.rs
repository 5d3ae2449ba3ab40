//! The command line.

mod cli;
mod commands;
mod config;
mod descriptions;
mod failure;
mod host;
mod log;
mod out_file;
mod output;
mod own_cost;
mod progress;
mod report;
mod table_file;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use cli::{Cli, Verb};
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs the verb that the arguments of this process name; its exit status.
#[must_use]
pub fn main() -> ExitCode {
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
    CompleteEnv::with_factory(Cli::command)
        .var(cli::COMPLETE)
        .complete();
    start_log();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error),
    };
    if cli.wide {
        output::page::set_wide();
    }
    let result = match &cli.verb {
        Verb::Run(args) => commands::run::execute(args),
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
        Verb::Policies(args) => commands::policies::execute(args),
        Verb::Simulate(args) => commands::simulate::execute(args),
        Verb::Compare(args) => commands::compare::execute(args),
        Verb::Map(args) => commands::map::execute(args),
        Verb::Reproduce(args) => commands::reproduce::execute(args),
        Verb::Sweep(args) => commands::sweep::execute(args),
        Verb::Profile(args) => commands::profile::execute(args),
        Verb::Programs(args) => commands::programs::execute(args),
        Verb::Bench(args) => commands::bench::execute(args),
        Verb::Validate(args) => commands::validate::execute(args),
        Verb::Schema(args) => commands::schema::execute(args),
        Verb::Train(args) => commands::train::execute(args),
        Verb::Completions(args) => commands::completions::execute(args),
        Verb::Man(args) => commands::man::execute(args),
    };
    result.unwrap_or_else(|error| failure::report(&error))
}

/// The log goes to stderr and is silent unless CONSORT_LOG asks for it; stdout is for results.
fn start_log() {
    let requested = std::env::var("CONSORT_LOG").ok();
    let targets: Option<Targets> = requested.and_then(|text| text.parse().ok());
    let log = tracing_subscriber::fmt::layer().with_writer(log::LineWriter::new);
    tracing_subscriber::registry()
        .with(log.with_filter(targets.unwrap_or_default()))
        .init();
}
