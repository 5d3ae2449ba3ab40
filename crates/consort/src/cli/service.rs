//! Arguments of what stays: the daemon, and the verbs that speak with it.

use super::{ListOut, ManageArgs, OutputFormat, parse_interval};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `daemon`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    /// Socket to listen on, not /run/consort/control.sock or $XDG_RUNTIME_DIR/consort/control.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Daemon to speak with, and the format of its answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonTarget {
    /// Socket of the daemon, instead of this user's or the host's
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Output format of its answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Processes, units or control groups to manage, or to manage no longer.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct TargetArgs {
    /// Processes, each with what it has started and will start
    #[arg(value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Control groups, as a path from the top of the hierarchy or a pattern: user.slice/**,
    /// system.slice/docker-*.scope
    #[arg(long, value_name = "PATTERN")]
    pub(crate) cgroup: Vec<String>,
    /// Systemd units, wherever their control groups lie
    #[arg(long, value_name = "NAME")]
    pub(crate) unit: Vec<String>,
}

/// Arguments of `attach`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
    /// Manage here, until nothing is left of it or Ctrl-C, even where a daemon runs
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Write the report as JSON to FILE in the end; managing here is needed for that
    #[arg(long, value_name = "FILE", requires = "foreground")]
    pub(crate) report: Option<PathBuf>,
    /// Write every number of the report to FILE.csv, FILE.arrow or FILE.parquet in the end, one per row: case, policy, seed, program, measure, value, unit; managing here is needed for that
    #[arg(long, value_name = "FILE", requires = "foreground")]
    pub(crate) out: Option<PathBuf>,
    /// No progress line and no table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `detach`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DetachArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
}

/// Arguments of `status`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
    #[command(flatten)]
    pub(crate) list: ListOut,
}

/// Arguments of `top`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TopArgs {
    /// Socket of the daemon, instead of this user's or the host's
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Between two looks
    #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "1s")]
    pub(crate) every: Duration,
    /// Print one view and end, as where stdout is no terminal
    #[arg(long)]
    pub(crate) once: bool,
}

/// Arguments of `explain`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Kernel thread id, as `consort status` lists them
    #[arg(value_name = "THREAD")]
    pub(crate) tid: u32,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
}

/// Arguments of `config`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConfigArgs {
    /// Action on it
    #[command(subcommand)]
    pub(crate) task: ConfigTask,
}

/// Actions on a configuration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigTask {
    /// Read it as `run` and `daemon` would, and tell what is wrong or what holds
    Check {
        /// The file, instead of those of the usual places with their drop-ins
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Output format of the settings in force
        #[arg(long, value_enum, default_value_t)]
        format: OutputFormat,
    },
    /// Tell the daemon to read its configuration again
    Reload {
        #[command(flatten)]
        at: DaemonTarget,
    },
}
