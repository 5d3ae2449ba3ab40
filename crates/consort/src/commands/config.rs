//! `consort config`: what the configuration says, and having it read again.

use super::ask::{reach, refused};
use crate::cli::{ConfigArgs, ConfigTask, Format};
use crate::config::{self, Config};
use crate::failure::{as_bad_input, bad_input};
use crate::output;
use anyhow::Result;
use consort_core::policies;
use consort_core::policy::PolicySpec;
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

/// Policies that cannot exist anywhere are told before a daemon meets them.
pub(crate) fn check_policies(config: &Config) -> Result<()> {
    let tables = [("run", &config.run), ("daemon", &config.daemon)];
    let named = tables
        .into_iter()
        .filter_map(|(table, of)| Some((table, of.policy.as_ref()?)));
    let entries = config.manage.iter();
    let assigned = entries.filter_map(|entry| Some(("[[manage]]", entry.policy.as_ref()?)));
    for (table, policy) in named.chain(assigned) {
        let spec: PolicySpec = policy
            .parse()
            .map_err(|error| bad_input(format!("{table}: {error}")))?;
        let known = spec.name == super::manage::AUTO || policies::find(&spec.name).is_ok();
        if let (false, Err(error)) = (known, policies::find(&spec.name)) {
            return Err(bad_input(format!("{table}: {error}")));
        }
    }
    Ok(())
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
