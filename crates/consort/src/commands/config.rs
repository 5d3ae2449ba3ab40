//! `consort config`: what the configuration says, and having it read again.

use super::daemon_requests::{connect_to_daemon, refusal_as_input};
use super::manage::check_policies;
use crate::cli::{ConfigArgs, ConfigTask, OutputFormat};
use crate::config::{self, ConsortConfig};
use crate::failure::as_bad_input;
use crate::output;
use anyhow::Result;
use consort_linux::control::DaemonRequest;
use serde_json::Value;
use std::process::ExitCode;

pub(crate) fn execute(args: &ConfigArgs) -> Result<ExitCode> {
    match &args.task {
        ConfigTask::Check { file, format } => {
            let config = config::load(file.as_deref()).map_err(|e| as_bad_input(&e))?;
            check_policies(&config)?;
            show(&config, *format)?;
        }
        ConfigTask::Reload { at } => {
            let answer = connect_to_daemon(at.socket.as_deref())?
                .send_request(&DaemonRequest::Reload)
                .map_err(refusal_as_input)?;
            let mut out = output::stdout();
            match at.format {
                OutputFormat::Json => output::write_json(&mut out, &answer)?,
                OutputFormat::Table | OutputFormat::Csv => {
                    output::print_text(&mut out, &reload_text(&answer))?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Text for a reload, with the keys that it did not apply.
fn reload_text(answer: &Value) -> String {
    let keys = answer.get("after_restart").and_then(Value::as_array);
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut text = "the daemon has read its configuration again\n".to_owned();
    if !keys.is_empty() {
        let keys = keys.join(", ");
        text += &format!("not applied before the daemon is started again: {keys}\n");
    }
    text
}

fn show(config: &ConsortConfig, format: OutputFormat) -> Result<()> {
    let mut out = output::stdout();
    if format == OutputFormat::Json {
        return output::write_json(&mut out, config);
    }
    let files: Vec<String> = config
        .files
        .iter()
        .map(|f| f.display().to_string())
        .collect();
    let read = match files.as_slice() {
        [] => "no configuration files: defaults hold".to_owned(),
        files => format!("read: {}", files.join(", ")),
    };
    let text = toml::to_string(config)?;
    output::print_text(&mut out, &format!("# {read}\n{text}"))?;
    Ok(())
}
