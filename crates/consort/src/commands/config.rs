//! `consort config`: what the configuration says, and having it read again.

use super::daemon_requests::{DaemonTarget, connect_to_daemon, refusal_as_input};
use super::manage::check_policies;
use crate::config;
use crate::failure::as_bad_input;
use crate::output::{self, OutputFormat};
use anyhow::Result;
use clap::{Args, Subcommand};
use consort_linux::control::DaemonRequest;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) task: ConfigTask,
}

/// Actions on a configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigTask {
    /// Read the configuration as `run` and `daemon` do, and print errors or the settings in force
    #[command(after_help = "Example: consort config check")]
    Check {
        /// File to check instead of the usual ones with their drop-ins
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Output format of the settings in force
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Make the daemon read its configuration again
    #[command(after_help = "Example: consort config reload")]
    Reload {
        #[command(flatten)]
        at: DaemonTarget,
    },
}

pub(crate) fn execute(args: &ConfigArgs) -> Result<ExitCode> {
    match &args.task {
        ConfigTask::Check { file, format } => {
            let config = config::load(file.as_deref()).map_err(|e| as_bad_input(&e))?;
            check_policies(&config)?;
            if *format == OutputFormat::Json {
                output::print_json(&config)?;
            } else {
                let files = { config.files.iter() }.map(|file| file.display().to_string());
                let files: Vec<String> = files.collect();
                let read = match files.as_slice() {
                    [] => "no configuration files: defaults hold".to_owned(),
                    files => format!("read: {}", files.join(", ")),
                };
                let text = toml::to_string(&config)?;
                output::print_text(&format!("# {read}\n{text}"))?;
            }
        }
        ConfigTask::Reload { at } => {
            let answer = connect_to_daemon(at.socket.as_deref())?
                .send_request(&DaemonRequest::Reload)
                .map_err(refusal_as_input)?;
            if at.format == OutputFormat::Json {
                output::print_json(&answer)?;
            } else {
                let keys = answer.get("after_restart").and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                let keys: Vec<&str> = keys.collect();
                let mut text = "the daemon has read its configuration again\n".to_owned();
                if !keys.is_empty() {
                    let keys = keys.join(", ");
                    text += &format!("not applied before the daemon is started again: {keys}\n");
                }
                output::print_text(&text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
