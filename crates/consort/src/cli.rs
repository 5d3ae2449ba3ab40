//! The command line: one definition for parsing, help, man pages and completions.

use crate::commands::attach::AttachArgs;
use crate::commands::bench::BenchArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::daemon::DaemonArgs;
use crate::commands::daemon_requests::{DetachArgs, ExplainArgs, StatusArgs};
use crate::commands::listings::{CompletionsArgs, ManArgs, PoliciesArgs, SchemaArgs};
use crate::commands::machine::MachineArgs;
use crate::commands::map::MapArgs;
use crate::commands::profile::ProfileArgs;
use crate::commands::programs::ProgramsArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::run::{RecordArgs, RunArgs};
use crate::commands::simulate::SimulateArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::top::TopArgs;
use crate::commands::train::TrainArgs;
use crate::commands::trial::RunTrialArgs;
use crate::commands::validate::ValidateArgs;
use crate::commands::what_if::WhatIfArgs;
use clap::{Parser, Subcommand};

/// Watches what each thread does to the processor and places threads accordingly.
#[derive(Debug, Parser)]
#[command(name = "consort", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long, global = true)]
    pub(crate) wide: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input. \
`consort run` exits with its command's status, or 127 if it is not found and 126 if it cannot \
be executed.\n\
Set CONSORT_LOG=debug for a log on stderr.";

const REPRODUCE_HELP: &str = "Example: consort reproduce list\n\
Example: consort reproduce W1 W2 --quick --out studies\n\
DIR gets ID.html, ID-*.csv and ID-*.svg of each study, index.html about all of them, and \
ID-SCALE.json, from which a later run with the same seed and version continues.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a command and place its threads while it runs
    #[command(
        after_help = "Example: consort run --policy workover --interval 500ms -- ./solver input"
    )]
    Run(RunArgs),
    /// Run a command with and without management in turn, and report which is faster, and by how much
    #[command(after_help = "Example: consort trial -n 10 -- ./solver input\n\
                      Example: consort trial --policies workover,holistic --budget 10m --write -- make -j8\n\
                      Example: consort trial --metric 'print:tps =' -- pgbench -c 4 -T 10 bench\n\
                      Within one long run, use consort run --trial or consort attach --trial.")]
    Trial(RunTrialArgs),
    /// Run a command as `run` does, and record observations and plans for `replay` and `what-if`
    #[command(after_help = "Example: consort record -o monday.parquet -- ./solver input")]
    Record(RecordArgs),
    /// Replay a recording under a policy and show the plans it would have made
    #[command(after_help = "Example: consort replay monday.parquet --policy workover")]
    Replay(ReplayArgs),
    /// Simulate a recorded command on another machine, under several policies
    #[command(
        after_help = "Example: consort what-if monday.parquet --machine power8:smt=2 --policies linux,workover"
    )]
    WhatIf(WhatIfArgs),
    /// Place the threads of processes and control groups that run already
    #[command(after_help = "Example: consort attach 4711 --policy workover\n\
                      Example: consort attach --unit postgresql.service --foreground --report r.json\n\
                      If a daemon runs, it manages them from then on, with their own policy if --policy names \
                      one. Otherwise this command manages them until they end or you press Ctrl-C.")]
    Attach(AttachArgs),
    /// Stop managing processes and control groups, and restore their masks
    #[command(after_help = "Example: consort detach 4711")]
    Detach(DetachArgs),
    /// Manage configured control groups and attached processes until stopped
    #[command(after_help = "Example: consort daemon --policy auto\n\
                            Its configuration, requests and limits: docs/use/daemon.md")]
    Daemon(DaemonArgs),
    /// Show the programs and threads that a daemon manages, and where they are placed
    #[command(after_help = "Example: consort status --format json")]
    Status(StatusArgs),
    /// Watch the threads that a daemon manages: where each runs, its class, and the reason
    #[command(after_help = "Example: consort top\n\
                            Example: consort top --once | head -20")]
    Top(TopArgs),
    /// Show why a thread was placed where it is, with the numbers that decided
    #[command(after_help = "Example: consort explain 4711")]
    Explain(ExplainArgs),
    /// Check the configuration, or make a daemon read it again
    #[command(after_help = "Example: consort config check /etc/consort/config.toml")]
    Config(ConfigArgs),
    /// Show the processor, and which observations of threads it allows
    #[command(after_help = "Example: consort machine --machine power7:smt=2 --format json")]
    Machine(MachineArgs),
    /// List the policies with the signals they need, their sources and summaries
    #[command(after_help = "Example: consort policies --format csv")]
    Policies(PoliciesArgs),
    /// List the programs that can be simulated, or describe one
    #[command(after_help = "Example: consort programs --suite spec2006\n\
                            Example: consort programs hmmer --format json")]
    Programs(ProgramsArgs),
    /// Run a program under an emulator and describe its demands on a processor, for `simulate`
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
        after_help = "Example: consort simulate --machine bulldozer-6282se --workload '4*bzip2+4*povray' --explain bzip2"
    )]
    Simulate(SimulateArgs),
    /// Run a workload on a simulated machine under several policies, many times
    #[command(
        after_help = "Example: consort compare --machine bulldozer-6282se --workload '4*hmmer+4*povray' --policies aggregate,linux,workover --until all-finished\n\
                      Example: consort compare --machine power8:smt=2 --workload 'mix:spec2006/20?seed=7' --policies linux,symbiotic"
    )]
    Compare(CompareArgs),
    /// Run a workload under thread mappings and show which resource decides between them
    #[command(
        after_help = "Example: consort map --machine core2-q9550 --workload 'streamcluster@4+facesim@4' --runs 3 --out mapped\n\
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
    #[command(
        after_help = "Example: consort train --machine power8 --ways 2,4 --out power8.toml\n\
                      Example: consort train --rows docs/examples/pairs.csv --machine my-host --out my-host.toml"
    )]
    Train(TrainArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: consort completions bash > /etc/bash_completion.d/consort")]
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    #[command(after_help = "Example: consort man ./man && man ./man/consort-run.1")]
    Man(ManArgs),
}
