//! `consort machine`: this processor or a described one, and what can be seen of threads on it.

mod caches;
mod described;
mod list;
mod live;
mod probe;
mod report;
mod sheet;
mod tree;

use crate::cli::{LIVE, MachineArgs, MachineTask};
use anyhow::Result;
use std::process::ExitCode;

pub(crate) fn execute(args: &MachineArgs) -> Result<ExitCode> {
    if let Some(MachineTask::Probe(args)) = &args.task {
        return probe::execute(args);
    }
    if args.list {
        list::print(args)?;
    } else if args.machine != LIVE {
        described::print(args)?;
    } else {
        return live::execute(args);
    }
    Ok(ExitCode::SUCCESS)
}
