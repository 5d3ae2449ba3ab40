//! The command line: one definition for parsing, help, man pages and completions.

mod count;
mod jobs;
mod lab;
mod listings;
mod map;
mod out;
mod probe;
mod profile;
mod recording;
mod run;
mod service;
mod simulated;
mod sweep;
mod time;
mod train;
mod values;

pub(crate) use jobs::Jobs;
pub(crate) use lab::{BenchArgs, ReproduceArgs, ValidateArgs};
pub(crate) use listings::{
    MachineArgs, MachineTask, PoliciesArgs, ProgramsArgs, SchemaArgs, SchemaKind,
};
pub(crate) use map::MapArgs;
pub(crate) use out::{ListOut, NumbersOut, own_output, table_output};
pub(crate) use probe::ProbeArgs;
pub(crate) use profile::{ProfileArgs, SamplingChoice};
pub(crate) use recording::{RecordArgs, ReplayArgs, WhatIfArgs};
pub(crate) use run::{ManageArgs, RunArgs};
pub(crate) use service::{
    AttachArgs, ConfigArgs, ConfigTask, DaemonArgs, DaemonTarget, DetachArgs, ExplainArgs,
    StatusArgs, TargetArgs, TopArgs,
};
pub(crate) use simulated::{CompareArgs, Fidelity, SetupArgs, SimulateArgs};
pub(crate) use sweep::{
    MergeArgs, PlanArgs, ShardArgs, SubmitArgs, SweepArgs, SweepFolder, SweepStatusArgs, SweepTask,
};
pub(crate) use time::parse_interval;
pub(crate) use train::TrainArgs;
pub(crate) use values::{COMPLETE, LIVE};

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Watches what each thread does to the processor and places threads accordingly.
#[derive(Debug, Parser)]
#[command(name = "consort", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Print tables as wide as what is in them, however narrow the terminal is
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    /// Command to carry out.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input. \
`consort run` exits with its command's status, or 127 where that is not found and 126 where it \
cannot be executed.\n\
Set CONSORT_LOG=debug for a log on stderr.";

const REPRODUCE_HELP: &str = "Example: consort reproduce list\n\
Example: consort reproduce W1 W2 --quick --out studies\n\
DIR gets ID.html, ID-*.csv and ID-*.svg of each study, index.html about all of them, and \
ID-SCALE.json, from which a later run with the same seed and version goes on.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a command and place its threads while it runs
    #[command(
        after_help = "Example: consort run --policy workover --interval 500ms -- ./solver input"
    )]
    Run(RunArgs),
    /// Run a command like `run`, and record what is seen, planned and done
    #[command(after_help = "Example: consort record -o monday.parquet -- ./solver input")]
    Record(RecordArgs),
    /// Tell what a policy would have planned for what was recorded
    #[command(after_help = "Example: consort replay monday.parquet --policy workover")]
    Replay(ReplayArgs),
    /// Simulate what was recorded on another machine, under several policies
    #[command(
        after_help = "Example: consort what-if monday.parquet --machine power8:smt=2 --policies linux,workover"
    )]
    WhatIf(WhatIfArgs),
    /// Place the threads of processes and control groups that run already
    #[command(after_help = "Example: consort attach 4711 --policy workover\n\
                      Example: consort attach --unit postgresql.service --foreground --report r.json\n\
                      Where a daemon runs, it manages them from now on, with the policy of their own \
                      if one is named; else this command does, until nothing is left of them or Ctrl-C.")]
    Attach(AttachArgs),
    /// Put threads that a daemon manages back, and let them alone
    #[command(after_help = "Example: consort detach 4711")]
    Detach(DetachArgs),
    /// Manage what a configuration names and what is attached, until told to stop
    #[command(after_help = "Example: consort daemon --policy auto\n\
                            Its configuration, requests and limits: docs/daemon.md")]
    Daemon(DaemonArgs),
    /// Tell what a daemon manages, how, and since when
    #[command(after_help = "Example: consort status --format json")]
    Status(StatusArgs),
    /// Watch what a daemon does: who runs where, what it does there, and why
    #[command(after_help = "Example: consort top\n\
                            Example: consort top --once | head -20")]
    Top(TopArgs),
    /// Tell why a thread is where it is: the numbers that decided
    #[command(after_help = "Example: consort explain 4711")]
    Explain(ExplainArgs),
    /// Check the configuration, or have a daemon read it again
    #[command(after_help = "Example: consort config check /etc/consort/config.toml")]
    Config(ConfigArgs),
    /// Show the processor, what can be seen of threads here, and what cannot and why
    #[command(after_help = "Example: consort machine --machine power7:smt=2 --format json")]
    Machine(MachineArgs),
    /// List the policies: what each needs, where it comes from, what it does
    #[command(after_help = "Example: consort policies --format csv")]
    Policies(PoliciesArgs),
    /// List the programs that can be simulated, or describe one
    #[command(after_help = "Example: consort programs --suite spec2006\n\
                            Example: consort programs hmmer --format json")]
    Programs(ProgramsArgs),
    /// Run a program under an emulator and write what it asks of a processor, for `simulate`
    #[command(
        after_help = "Example: consort profile -o gzip.toml -- gzip -kc FILE\n\
                      Example: consort profile --trace gzip.trace --skip 500M --instructions 1M -- gzip -kc FILE"
    )]
    Profile(ProfileArgs),
    /// Print the JSON Schema of a kind of description file
    #[command(after_help = "Example: consort schema machine > machine.schema.json")]
    Schema(SchemaArgs),
    /// Run a workload on a simulated machine under a policy
    #[command(
        after_help = "Example: consort simulate --machine bulldozer-6282se --workload '4*hmmer+4*povray' --policy workover"
    )]
    Simulate(SimulateArgs),
    /// Run a workload on a simulated machine under several policies, many times
    #[command(
        after_help = "Example: consort compare --machine power7:smt=2 --workload '8*h264ref+8*povray' --policies aggregate,linux,workover --runs 10"
    )]
    Compare(CompareArgs),
    /// Run a workload under thread mappings and tell which resource decides between them
    #[command(
        after_help = "Example: consort map --machine core2-q9550 --workload 'streamcluster@4+facesim@4' --out mapped\n\
                      Example: consort map --command 'xz -kc -T2 FILE' --command 'openssl speed -seconds 1 aes-128-cbc'"
    )]
    Map(MapArgs),
    /// Run published experiments again: tables, figures, a report that opens from disk
    #[command(after_help = REPRODUCE_HELP)]
    Reproduce(ReproduceArgs),
    /// Spread many runs over a cluster: plan, run, submit, status, merge
    #[command(
        after_help = "Example: consort sweep plan caches.toml && consort sweep run all && consort sweep merge --out caches.csv"
    )]
    Sweep(SweepArgs),
    /// Measure how fast the simulator and the policies are on this host
    #[command(after_help = "Example: consort bench simulate-acmp-1ms solve\n\
                            Example: consort bench --list")]
    Bench(BenchArgs),
    /// Check the simulation against published figures, laws and a real kernel
    #[command(after_help = "Example: consort validate --group conservation --format json")]
    Validate(ValidateArgs),
    /// Train an interference model: which programs slow which down on a core, and why
    #[command(after_help = "Example: consort train --machine power8 --ways 2,4 --out power8.toml")]
    Train(TrainArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: consort completions bash > /etc/bash_completion.d/consort")]
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    #[command(after_help = "Example: consort man ./man && man ./man/consort-run.1")]
    Man(ManArgs),
}

/// Output format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated, with a header line.
    Csv,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write to; made if it is not there
    pub(crate) folder: PathBuf,
}
