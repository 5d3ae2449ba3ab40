//! The command line: one definition for parsing, help, man pages and completions.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Watches what each thread does to the processor and places threads accordingly.
#[derive(Debug, Parser)]
#[command(name = "consort", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input. \
`consort run` exits with its command's status.\n\
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
    /// Run published experiments again: tables, figures, a report that opens from disk
    #[command(after_help = REPRODUCE_HELP)]
    Reproduce(ReproduceArgs),
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

/// How to print a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated, with a header line.
    Csv,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Policy, with options as NAME:key=value,key=value; `auto` takes the best that can be fed here
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Quantum between decisions, for example 200ms or 1s; the policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
    /// Decide and report, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the report as JSON to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// How to print the report; json and csv take stdout for themselves and send the command's
    /// output to stderr
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Seed of all randomness in the policy
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Also manage threads whose affinity somebody set on purpose
    #[arg(long = "override")]
    pub(crate) override_affinity: bool,
    /// Keep plans even when progress falls after them
    #[arg(long)]
    pub(crate) no_back_off: bool,
    /// Configuration file instead of ~/.config/consort/config.toml or /etc/consort/config.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// No progress line and no table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `machine`.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// How to print; csv lists the PUs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// A described machine instead of this one: NAME or FILE.toml, either with `:smt=N`; or `live`
    #[arg(long, value_name = "MACHINE", default_value = LIVE)]
    pub(crate) machine: String,
    /// List the described machines
    #[arg(long, conflicts_with_all = ["machine", "check"])]
    pub(crate) list: bool,
    /// Run built-in kernels under every event and compare with what they are known to do
    #[arg(long, conflicts_with = "machine")]
    pub(crate) check: bool,
}

/// How the machine that this runs on is called.
pub(crate) const LIVE: &str = "live";

/// Arguments of `policies`.
#[derive(Debug, Args)]
pub(crate) struct PoliciesArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `programs`.
#[derive(Debug, Args)]
pub(crate) struct ProgramsArgs {
    /// Describe this program: NAME or FILE.toml
    pub(crate) name: Option<String>,
    /// Only the programs of this suite
    #[arg(long, value_name = "NAME", conflicts_with = "name")]
    pub(crate) suite: Option<String>,
    /// How to print; json and csv of one program are its description and its phases
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The kind of file
    #[arg(value_enum)]
    pub(crate) kind: SchemaKind,
}

/// Kinds of description files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// A machine.
    Machine,
    /// A program.
    Program,
}

/// What is simulated.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Machine: a name or a file, with :smt=N for fewer PUs per core; see `consort machine --list`
    #[arg(short, long, value_name = "MACHINE")]
    pub(crate) machine: String,
    /// Programs: 4*hmmer+4*povray, streamcluster@4 (threads), mix:spec2006/10?seed=7, or a file
    #[arg(short, long, value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// Model of the operating system beneath the policies
    #[arg(long, value_name = "NAME", default_value = "linux")]
    pub(crate) os: String,
    /// Quantum between decisions; each policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_simulated)]
    pub(crate) interval: Option<Duration>,
    /// Time that each program's work takes alone
    #[arg(long, value_name = "TIME", value_parser = parse_simulated, default_value = "30s")]
    pub(crate) alone: Duration,
    /// Seed of all randomness; the same seed gives the same result on every host
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// What is simulated.
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policy with options as NAME:key=value,key=value, or linux, linux-itmt, pinned for none
    #[arg(short, long, value_name = "POLICY", default_value = "linux")]
    pub(crate) policy: String,
    /// Write a timeline for Perfetto (ui.perfetto.dev) to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Show where a thread's cycles go, term by term, at the end; by number, from 0
    #[arg(long, value_name = "THREAD")]
    pub(crate) explain: Option<usize>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What is simulated.
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policies, comma-separated; one with several options goes into a --policies of its own
    #[arg(short, long, value_name = "POLICIES", required = true)]
    pub(crate) policies: Vec<String>,
    /// The policy to which speedups refer; linux if it takes part, else the first
    #[arg(long, value_name = "POLICY")]
    pub(crate) baseline: Option<String>,
    /// Runs of each policy, with successive seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Worker threads; all PUs if not given
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Studies by id, `all` of them, or `list` to list them
    #[arg(required = true, value_name = "ID")]
    pub(crate) studies: Vec<String>,
    /// The shape of the results in seconds, from fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed in place of each study's own
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Folder for tables, figures and pages; made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = "consort-studies")]
    pub(crate) out: PathBuf,
    /// CSV file of published figures (study,row,column,value) to set beside ours
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Worker threads; all PUs if not given
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// How to print; csv has a line per number, with the columns of a reference file
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Benches; all of them if none is given
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// List the benches instead of running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Few and short repetitions: whether it works, not how fast it is
    #[arg(long)]
    pub(crate) quick: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Only this group of checks; can be given several times. consistency, independent,
    /// conservation, placement or speed
    #[arg(short, long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// Fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Worker threads; all PUs if not given
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Arguments of `train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Machine to train on: NAME or FILE.toml for a simulated one, or `live` for this one
    #[arg(short, long, value_name = "MACHINE", default_value = LIVE)]
    pub(crate) machine: String,
    /// Training programs by comma: simulated ones (all of spec2006 if not given), or kernels on
    /// the live machine
    #[arg(short, long, value_name = "PROGRAMS", value_delimiter = ',')]
    pub(crate) programs: Vec<String>,
    /// Threads per core to train for, by comma; 2 and, where a simulated core takes as many, 4
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=8))]
    pub(crate) ways: Vec<u32>,
    /// Time of each run; 10s simulated, 500ms live
    #[arg(long, value_name = "TIME", value_parser = parse_simulated)]
    pub(crate) seconds: Option<Duration>,
    /// Parts into which the programs are divided, each held out once to test on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) folds: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the model to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Shorter and fewer runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Treat two PUs of the live machine as if they shared a core
    #[arg(long, value_name = "PU,PU", value_delimiter = ',', num_args = 1)]
    pub(crate) as_siblings: Vec<u32>,
    /// Worker threads of simulated runs; all PUs if not given
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// How to print; csv lists the components
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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
    /// Folder to write to; must exist
    pub(crate) folder: PathBuf,
}

/// Shortest quantum that is accepted.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
/// Longest quantum that is accepted.
pub(crate) const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

/// Reads a simulated time, from 100 µs to an hour.
fn parse_simulated(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 1ms or 30s".to_owned())?;
    if (Duration::from_micros(100)..=LONGEST_INTERVAL).contains(&time) {
        Ok(time)
    } else {
        Err("expected a time from 100us to 1h".to_owned())
    }
}

/// Reads a quantum such as `200ms`, within the accepted range.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 200ms or 1s".to_owned())?;
    if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        Ok(interval)
    } else {
        Err("expected a time from 10ms to 1h".to_owned())
    }
}
