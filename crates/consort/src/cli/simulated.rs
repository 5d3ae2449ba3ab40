//! Arguments of the verbs that run a workload on a described machine.

use super::count::{count_parser, seed_parser};
use super::time::parse_simulated;
use super::values;
use super::{Jobs, OutputFormat};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Machine and workload to simulate.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Machine: a name or a file, with :smt=N for fewer PUs per core, :memory=NODE+NODE for memory on those nodes alone, :prefetch=off without prefetchers; see `consort machine --list`
    #[arg(short, long, value_name = "MACHINE", add = values::machines())]
    pub(crate) machine: String,
    /// Programs: 4*hmmer+4*povray, streamcluster@4 (threads), mix:spec2006/10?seed=7, or a file; quotes let a path contain + * @, as in '"./c++.toml"@2+hmmer'
    #[arg(short, long, value_name = "WORKLOAD", add = values::workloads())]
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
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Write every number to FILE.csv, FILE.arrow or FILE.parquet, one per row: case, policy, seed, program, measure, value, unit
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Machine and workload to simulate.
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policy with options as NAME:key=value,key=value, or linux, linux-acmp, linux-grouped, linux-itmt, pinned for none
    #[arg(short, long, value_name = "POLICY", default_value = "linux", add = values::simulated_policy())]
    pub(crate) policy: String,
    /// Write a timeline for Perfetto (ui.perfetto.dev) to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Show where a thread's cycles go, term by term, at the end; by number, from 0
    #[arg(long, value_name = "THREAD")]
    pub(crate) explain: Option<usize>,
    /// Engine: fast, or the reference that executes instructions
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fidelity: Fidelity,
    /// Instructions of each program that the reference measures, after as many to warm caches; all of its trace if not given
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(1..=1_000_000_000))]
    pub(crate) instructions: Option<u64>,
}

/// Engines that simulate a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fidelity {
    /// By rates of described programs; whole runs under policies.
    #[default]
    Fast,
    /// Cycle by cycle: traced programs (traces/index.csv in the sources, or files that consort profile --trace wrote), one per PU from the first.
    Reference,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Machine and workload to simulate.
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Policies, comma-separated; one with several options goes into a --policies of its own
    #[arg(short, long, value_name = "POLICIES", required = true, add = values::policy_list())]
    pub(crate) policies: Vec<String>,
    /// The policy to which speedups refer; linux if it takes part, else the first
    #[arg(long, value_name = "POLICY", add = values::simulated_policy())]
    pub(crate) baseline: Option<String>,
    /// Runs of each policy, with successive seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count_parser::<u32>(1..=10_000))]
    pub(crate) runs: u32,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}
