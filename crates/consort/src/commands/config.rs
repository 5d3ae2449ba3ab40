//! `consort config`: what the configuration says, and having it read again.

use super::ask::{reach, refused};
use super::manage::check_policies;
use crate::cli::{ConfigArgs, ConfigTask, Format};
use crate::config::{self, Config};
use crate::failure::as_bad_input;
use crate::output;
use anyhow::Result;
use consort_linux::control::Request;
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
            let answer = reach(at.socket.as_deref())?
                .ask(&Request::Reload)
                .map_err(refused)?;
            let mut out = output::stdout();
            match at.format {
                Format::Json => output::json(&mut out, &answer)?,
                Format::Table | Format::Csv => output::people(&mut out, &reloaded(&answer))?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Text for a reload, with the keys that it did not apply.
fn reloaded(answer: &Value) -> String {
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

fn show(config: &Config, format: Format) -> Result<()> {
    let mut out = output::stdout();
    if format == Format::Json {
        return output::json(&mut out, config);
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
    output::people(&mut out, &format!("# {read}\n{text}"))?;
    Ok(())
}
