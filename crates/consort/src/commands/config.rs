//! `consort config`: what the configuration says, and having it read again.

use super::ask::{reach, refused};
use super::manage::check_policies;
use crate::cli::{ConfigArgs, ConfigTask, Format};
use crate::config::{self, Config};
use crate::failure::as_bad_input;
use crate::output;
use anyhow::Result;
use consort_linux::control::Request;
use std::process::ExitCode;

pub(crate) fn execute(args: &ConfigArgs) -> Result<ExitCode> {
    match &args.task {
        ConfigTask::Check { file, format } => {
            let config = config::load(file.as_deref()).map_err(|e| as_bad_input(&e))?;
            check_policies(&config)?;
            show(&config, *format)?;
        }
        ConfigTask::Reload { at } => {
            reach(at.socket.as_deref())?
                .ask(&Request::Reload)
                .map_err(refused)?;
            output::people(
                &mut output::stdout(),
                "the daemon has read its configuration again\n",
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
