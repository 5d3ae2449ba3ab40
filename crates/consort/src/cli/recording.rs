//! Arguments of the verbs that write and read recordings.

use super::count::{count_parser, seed_parser};
use super::{Jobs, NumbersOut, OutputFormat, RunArgs, values};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `record`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// The recording, as Parquet
    #[arg(short, long, value_name = "FILE", default_value = "recording.parquet")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording, or the folder FILE.parts that a killed one has left
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Policy with options that would have decided; the recorded one if not given
    #[arg(short, long, value_name = "POLICY", add = values::live_policies())]
    pub(crate) policy: Option<String>,
    /// Seed of all randomness in the policy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Write what ran when, and where it was and would have been placed, to FILE, for Perfetto
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Write the result as a page for browsers to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report_html: Option<PathBuf>,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `what-if`.
#[derive(Debug, Args)]
pub(crate) struct WhatIfArgs {
    /// The recording, or the folder FILE.parts that a killed one has left
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Machine to simulate: a name or a file; see `consort machine --list`
    #[arg(short, long, value_name = "MACHINE", add = values::machines())]
    pub(crate) machine: String,
    /// Policies, comma-separated
    #[arg(short, long, value_name = "POLICIES", required = true, add = values::policy_list())]
    pub(crate) policies: Vec<String>,
    /// A program file for the threads of this name, as `consort profile` writes it, instead of a
    /// guess
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) profile: Vec<String>,
    /// Runs of each policy, with successive seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count_parser::<u32>(1..=10_000))]
    pub(crate) runs: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Write the result as a page for browsers to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report_html: Option<PathBuf>,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}
