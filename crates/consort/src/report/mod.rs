//! The report of a run: what was seen, what was done.

mod asymmetry;
mod file;
mod group;
mod long;
mod page;
mod programs;
mod render;
mod report_builder;
mod thread_totals;

pub(crate) use asymmetry::AsymmetryReport;
pub(crate) use file::ReportFile;
pub(crate) use group::GroupReport;
pub(crate) use page::html;
pub(crate) use programs::ProgramRow;
pub(crate) use render::{COLUMNS, text};
pub(crate) use report_builder::{ReportBuilder, RunEnd};

use consort_core::{Class, MemoryLimit, Mix, Throttle};
use consort_linux::enforce::{EnactorKind, WindowCounts};
use consort_linux::live::CookieCounts;
use serde::Serialize;
use std::collections::BTreeMap;

/// The JSON document of `consort run`. Keys are a contract: add, never rename.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunReport {
    /// The richest tier that was used.
    pub(crate) tier: String,
    /// The policy that decided.
    pub(crate) policy: String,
    /// Policy that was asked for, or `auto`.
    pub(crate) policy_requested: String,
    /// Reason for this policy.
    pub(crate) policy_reason: String,
    /// True where plans were made but not carried out.
    pub(crate) dry_run: bool,
    /// Wall-clock time of the command, s.
    pub(crate) duration_s: f64,
    /// Quanta between decisions.
    pub(crate) quantum: QuantumLength,
    /// Large and small cores; none where all are alike.
    pub(crate) asymmetry: Option<AsymmetryReport>,
    /// The group that the run was in; none without `--group`.
    pub(crate) group: Option<GroupReport>,
    /// The command's exit code; 128 + n when signal n ended it.
    pub(crate) exit_code: i32,
    /// CPU time of the command and all that it started, as the kernel counted it, s.
    pub(crate) cpu_s: f64,
    /// Threads by CPU time, at most [`report_builder::LISTED`].
    pub(crate) threads: Vec<ThreadRow>,
    /// Threads that are not listed one by one.
    pub(crate) others: OtherThreads,
    /// Programs with the measures of co-scheduling; `--profile` takes them.
    pub(crate) programs: Vec<ProgramRow>,
    /// Plans that were made.
    pub(crate) plans: u64,
    /// Number of times that threads were sent to another place.
    pub(crate) moves: u64,
    /// Enactor that was used first; none where nothing was to be changed.
    pub(crate) enactor: Option<EnactorKind>,
    /// Share of the running time of threads with a place that they spent there, 0 to 1; none where
    /// no thread had a place.
    pub(crate) adherence: Option<f64>,
    /// The same for threads that were to have a core together; a lower bound.
    pub(crate) pair_adherence: Option<f64>,
    /// Nudges: those that sent threads to another place, and those after they had drifted.
    pub(crate) nudges: u64,
    /// Times for which nudges could be seen; none without nudges.
    pub(crate) windows: Option<WindowCounts>,
    /// Core-scheduling cookies; none where they were not wanted.
    pub(crate) cookies: Option<CookieCounts>,
    /// Plans of which nothing could be concluded because threads did not stay in place.
    pub(crate) not_held: u64,
    /// Number of times that programs were paused.
    pub(crate) pauses: u64,
    /// Plans that were undone because progress fell.
    pub(crate) undone: u64,
    /// Cost of Consort itself.
    pub(crate) overhead: OwnOverhead,
    /// Samples of instruction addresses.
    pub(crate) sampling: SamplingCounts,
    /// True where every mask is as it was before the run.
    pub(crate) restored: bool,
    /// Everything that did not go as planned.
    pub(crate) warnings: Vec<String>,
}

/// One thread of a [`RunReport`].
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ThreadRow {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Time in which it could run and had no PU, s; none where it is not told.
    pub(crate) wait_s: Option<f64>,
    /// Limit of its control group that held it, and the share of the group's periods in which it did;
    /// `None` if none did.
    pub(crate) throttled: Option<Throttle>,
    pub(crate) class: Class,
    /// Use of the floating-point units, 0 to 1; none where it could not be told.
    pub(crate) fp_usage: Option<f64>,
    /// Instruction mix by time.
    pub(crate) mix: Option<Mix>,
    /// Share of CPU time stalled behind loads, 0 to 1.
    pub(crate) memory_stall: Option<f64>,
    /// The 95 percent confidence interval of that share, by the number of samples; `None` if it is not
    /// estimated from samples.
    pub(crate) memory_stall_ci95: Option<[f64; 2]>,
    /// Limit of a thread of the class `memory`; none for other classes, or where it is not told.
    pub(crate) memory_limit: Option<MemoryLimit>,
    /// Share of CPU time by cause.
    pub(crate) stack: BTreeMap<String, f64>,
    /// `counters`, `estimated` or `none`.
    pub(crate) stack_source: &'static str,
    /// Returns from futex calls; none where they are not counted.
    pub(crate) futex_returns: Option<u64>,
    /// Returns from other blocking calls; none where they are not counted.
    pub(crate) blocking_returns: Option<u64>,
    /// Number of times that it was sent to another place.
    pub(crate) moves: u64,
    /// Enactor that kept it in its place last; none if it never had one.
    pub(crate) enactor: Option<EnactorKind>,
    /// Share of its running time with a place that it spent there, 0 to 1.
    pub(crate) adherence: Option<f64>,
    /// Number of times that it was nudged.
    pub(crate) nudges: u64,
    /// PUs that it could run on at last, as a CPU list.
    pub(crate) cpus: String,
    /// Reason for that placement.
    pub(crate) reason: String,
}

/// Length of quanta.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct QuantumLength {
    /// Length that the user or the policy asked for, ms.
    pub(crate) asked_ms: f64,
    /// Mean length of those that were over before the command was, ms.
    pub(crate) mean_ms: Option<f64>,
}

/// Threads beyond those that are listed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct OtherThreads {
    /// Number of these threads.
    pub(crate) count: u64,
    /// Their CPU time, s: what the kernel counted beyond that of the listed ones.
    pub(crate) cpu_s: f64,
}

/// Cost of Consort itself.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct OwnOverhead {
    /// CPU time of Consort and its guardian, s.
    pub(crate) cpu_s: f64,
    /// CPU time that taking samples cost the managed threads, s; estimated.
    pub(crate) sampling_s_estimated: f64,
    /// CPU time that events cost the managed threads when they were switched and cloned, s;
    /// estimated.
    pub(crate) events_s: f64,
    /// CPU time that open events added to one switch of a thread at the end, ns; measured.
    pub(crate) switch_ns: u64,
    /// All of them, as a share of the managed threads' CPU time; `None` if they had none.
    pub(crate) share_of_managed: Option<f64>,
    /// Largest resident memory, KiB.
    pub(crate) peak_rss_kib: u64,
}

/// Samples of instruction addresses over the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct SamplingCounts {
    /// Samples that were taken.
    pub(crate) samples: u64,
    /// Of these, decoded to an instruction.
    pub(crate) decoded: u64,
    /// Records, mostly samples, that the kernel dropped because a ring buffer was full.
    pub(crate) lost: u64,
}
