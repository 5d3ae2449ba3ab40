//! Managing threads: what `run`, `attach` and `daemon` share.

mod models;
mod session;
mod setup;

pub(crate) use session::ManageSession;
pub(crate) use setup::{PolicySelection, PolicySetup, check_policies, is_auto};

use crate::cli::ManageArgs;
use crate::config::RunConfig;
use crate::failure::bad_input;
use anyhow::{Result, anyhow};
use consort_linux::enact::{EnactConfig, runtime_dirs};
use consort_linux::enforce::{EnactChoice, EnactorKind};
use consort_linux::live::Host;

/// Hidden first argument of the process that becomes a guardian.
pub(crate) const GUARDIAN: &str = "__guardian";

/// Hidden first argument of the process that reads others' memory and files.
pub(crate) const READER: &str = "__reader";

/// The policy that changes nothing.
pub(crate) const NONE: &str = "none";

/// This machine, for a command that inherits the limits of this process, with what its PUs share
/// from the file that was named, if one was.
pub(crate) fn discover_host(args: &ManageArgs, config: &RunConfig) -> Result<Host> {
    let host = prepare_host(args, config)?;
    crate::host::emulate_asymmetry(host, args.emulate_asymmetry.as_ref())
}

/// The same, for threads that run already, which have limits of their own.
pub(crate) fn discover_host_for_others(args: &ManageArgs, config: &RunConfig) -> Result<Host> {
    let host = prepare_host(args, config)?.for_others();
    crate::host::emulate_asymmetry(host, args.emulate_asymmetry.as_ref())
}

/// Looks at the host, after this process was prepared for managing.
fn prepare_host(args: &ManageArgs, config: &RunConfig) -> Result<Host> {
    consort_linux::raise_descriptor_limit();
    match (&args.topology, &config.topology) {
        (None, Some(path)) => {
            let host = crate::host::discover_host(Some(path));
            host.map_err(|error| config.locate_error("topology", &error))
        }
        (named, _) => crate::host::discover_host(named.as_deref()),
    }
}

/// The enactors to use; one that is not there is refused before anything is started.
pub(crate) fn enactors(args: &ManageArgs, config: &RunConfig, host: &Host) -> Result<EnactChoice> {
    let choice = args.enact.or(config.enact).unwrap_or_default();
    let first = choice.first();
    let statuses = host.enactors.iter();
    match statuses.clone().find(|status| status.name == first) {
        Some(status) if !status.available => Err(bad_input(format!(
            "--enact {first}: {}; `consort machine` lists what there is",
            status.reason
        ))),
        _ => Ok(choice),
    }
}

/// Returns true where cores are to be kept to the threads that plans seat on them; refused where
/// that cannot be.
pub(crate) fn uses_cookies(
    args: &ManageArgs,
    config: &RunConfig,
    host: &Host,
    enactors: EnactChoice,
) -> Result<bool> {
    if !(args.cookies || config.cookies.unwrap_or(false)) {
        return Ok(false);
    }
    match (why_no_cookies(host, enactors), args.cookies) {
        (None, _) => Ok(true),
        (Some(why), true) => Err(bad_input(format!("--cookies: {why}"))),
        (Some(why), false) => Err(config.locate_error("cookies", &anyhow!(why))),
    }
}

/// Returns the reason why there can be no cookies; none where there can be.
fn why_no_cookies(host: &Host, enactors: EnactChoice) -> Option<String> {
    if enactors.first() == EnactorKind::Ext {
        let text = "not with the enactor ext; cookies and a sched_ext scheduler together hang hosts \
                    with SMT (sched-ext/scx#3715)";
        return Some(text.to_owned());
    }
    let status = &host.cookies;
    (!status.available).then(|| {
        let reason = &status.reason;
        format!("{reason}; `consort machine` lists what there is")
    })
}

/// Returns the folders of the journal and the arguments that start the guardian.
pub(crate) fn enact_config(changes_nothing: bool) -> EnactConfig {
    EnactConfig {
        guardian_args: vec![GUARDIAN.into()],
        runtime_dirs: runtime_dirs(),
        changes_nothing,
    }
}
