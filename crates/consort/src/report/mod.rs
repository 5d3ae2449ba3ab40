//! The report of a run: its document, and its numbers one per row.

mod history;
mod render;
mod report_builder;
mod totals;
mod whereabouts;

use history::RunHistory;
#[cfg(test)]
pub(crate) use render::text;
pub(crate) use render::{print, write_files};
pub(crate) use report_builder::{ReportBuilder, RunEnd};
pub(crate) use totals::{OwnCost, ProgramRow};
pub(crate) use whereabouts::{CoRunnerShare, CpuShare};

use crate::options::LIVE;
use crate::output::count;
use consort_core::trial::Verdict;
use consort_core::{
    Class, MemoryLimit, Mix, PuSet, Signal, SignalOffers, Throttle, Topology, escape_invisible,
};
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_linux::enact::CommandTimes;
use consort_linux::enforce::{EnactorKind, WindowCounts};
use consort_linux::group::GroupName;
use consort_linux::live::{CookieCounts, MembershipSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The JSON document of `consort run`. Keys are a contract: add, never rename.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunReport {
    /// Effect of managing on progress.
    pub(crate) verdict: Verdict,
    /// The richest tier that was used.
    pub(crate) tier: String,
    /// The policy that decided.
    pub(crate) policy: String,
    /// Policy that was requested, or `auto`.
    pub(crate) policy_requested: String,
    /// Reason for this policy.
    pub(crate) policy_reason: String,
    /// True if plans were made but not carried out.
    pub(crate) dry_run: bool,
    /// Wall-clock time of the command, or of managing what was attached, s.
    pub(crate) duration_s: f64,
    /// Times of the command from its exec to its end; `None` if nothing was started.
    pub(crate) command: Option<CommandTimes>,
    /// Quanta between decisions.
    pub(crate) quantum: QuantumLength,
    /// Large and small cores; `None` if all are alike.
    pub(crate) asymmetry: Option<AsymmetryReport>,
    /// The group that the run was in; `None` without `--group`.
    pub(crate) group: Option<GroupReport>,
    /// The command's exit code; 128 + n when signal n ended it.
    pub(crate) exit_code: i32,
    /// CPU time of the command and its descendants, as the kernel counted it, s.
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
    /// Enactor that was used first; `None` if nothing was to be changed.
    pub(crate) enactor: Option<EnactorKind>,
    /// Share of the running time of threads with a place that they spent there, 0 to 1;
    /// `None` if no thread had a place.
    pub(crate) adherence: Option<f64>,
    /// The same for threads that were to have a core together; a lower bound.
    pub(crate) pair_adherence: Option<f64>,
    /// Nudges to another place, and back to a place after drifting.
    pub(crate) nudges: u64,
    /// Times for which masks were narrow because of nudges; `None` without nudges.
    pub(crate) windows: Option<WindowCounts>,
    /// Core-scheduling cookies; `None` if they were not requested.
    pub(crate) cookies: Option<CookieCounts>,
    /// Plans that could not be judged because threads did not stay in place.
    pub(crate) not_held: u64,
    /// Number of times that programs were paused.
    pub(crate) pauses: u64,
    /// Plans that were undone because progress fell.
    pub(crate) undone: u64,
    /// Cost of Consort itself.
    pub(crate) overhead: OwnOverhead,
    /// Samples of instruction addresses.
    pub(crate) sampling: SamplingCounts,
    /// True if every mask is as it was before the run.
    pub(crate) restored: bool,
    /// Everything that did not go as planned.
    pub(crate) warnings: Vec<String>,
    /// CPUs of threads over time, for the page.
    #[serde(skip)]
    pub(crate) history: RunHistory,
}

/// One thread of a [`RunReport`].
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ThreadRow {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Time in which it could run and had no CPU, s; `None` if it is not known.
    pub(crate) wait_s: Option<f64>,
    /// Limit of its control group that held it, and the share of the group's periods in which it did;
    /// `None` if none did.
    pub(crate) throttled: Option<Throttle>,
    pub(crate) class: Class,
    /// Use of the floating-point units, 0 to 1; `None` if it is not known.
    pub(crate) fp_usage: Option<f64>,
    /// Instruction mix by time.
    pub(crate) mix: Option<Mix>,
    /// Share of CPU time stalled behind loads, 0 to 1.
    pub(crate) memory_stall: Option<f64>,
    /// The 95 percent confidence interval of that share, by the number of samples; `None` if it is not
    /// estimated from samples.
    pub(crate) memory_stall_ci95: Option<[f64; 2]>,
    /// Limit of a thread of the class `memory`; `None` for other classes, or if it is not known.
    pub(crate) memory_limit: Option<MemoryLimit>,
    /// Share of CPU time by cause.
    pub(crate) stack: BTreeMap<String, f64>,
    /// `counters`, `estimated` or `none`.
    pub(crate) stack_source: &'static str,
    /// Returns from futex calls; `None` if they are not counted.
    pub(crate) futex_returns: Option<u64>,
    /// Returns from other blocking calls; `None` if they are not counted.
    pub(crate) blocking_returns: Option<u64>,
    /// Number of times that it was sent to another place.
    pub(crate) moves: u64,
    /// Enactor that kept it in its place last; `None` if it never had one.
    pub(crate) enactor: Option<EnactorKind>,
    /// Share of its running time with a place that it spent there, 0 to 1.
    pub(crate) adherence: Option<f64>,
    /// Number of times that it was nudged.
    pub(crate) nudges: u64,
    /// CPUs of the placement that held longest, as a CPU list.
    pub(crate) cpus: String,
    /// Reason for that placement.
    pub(crate) reason: String,
    /// Share of the managed time in which it held, 0 to 1; `None` if that is not known.
    pub(crate) placement_share: Option<f64>,
    /// Number of times that the placement changed.
    pub(crate) placement_changes: u64,
    /// CPUs that it ran on, by share of its running time.
    pub(crate) ran_on: Vec<CpuShare>,
    /// Threads that ran on other CPUs of its core, by share of its running time.
    pub(crate) co_runners: Vec<CoRunnerShare>,
}

/// Length of quanta.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct QuantumLength {
    /// Length that the user or the policy requested, ms.
    pub(crate) asked_ms: f64,
    /// Mean length of the quanta that ended before the command did, ms.
    pub(crate) mean_ms: Option<f64>,
}

/// Threads beyond the listed ones.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct OtherThreads {
    /// Number of these threads.
    pub(crate) count: u64,
    /// Their CPU time, s: the time that the kernel counted beyond that of the listed ones.
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
    /// All of them, as a share of the managed threads' CPU time; `None` if these had none. For a command
    /// that hardly computes it is far above 1, because the start costs the same for every command.
    pub(crate) share_of_managed: Option<f64>,
    /// Largest resident memory, KiB.
    pub(crate) peak_rss_kib: u64,
}

/// Samples of instruction addresses over the run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct SamplingCounts {
    pub(crate) samples: u64,
    /// Samples that were decoded to an instruction.
    pub(crate) decoded: u64,
    /// Records, mostly samples, that the kernel dropped because a ring buffer was full.
    pub(crate) lost: u64,
}

/// Large and small cores, and the measure of progress for the policies that use them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AsymmetryReport {
    /// CPUs of the cores with the highest capacity.
    pub(crate) large: PuSet,
    /// All others.
    pub(crate) small: PuSet,
    /// True if the user has named the large ones, so that they need not be any faster.
    pub(crate) emulated: bool,
    /// Measure of threads' progress: `instructions`, or `cpu-time` if none are counted.
    pub(crate) progress: &'static str,
}

impl AsymmetryReport {
    /// Returns the asymmetry of a machine; `None` if all cores have the same capacity.
    pub(crate) fn from_topology(
        topology: &Topology,
        offers: &SignalOffers,
        emulated: bool,
    ) -> Option<Self> {
        let capacity = |i: usize| topology.core_types().get(i).map_or(0, |t| t.capacity);
        let cores = topology.cores().iter();
        let most = cores.map(|c| capacity(c.core_type)).max()?;
        let pus_of = |is_large: bool| -> PuSet {
            let cores = topology.cores().iter();
            let kind = cores.filter(|c| (capacity(c.core_type) == most) == is_large);
            kind.flat_map(|c| c.pus.iter().copied()).collect()
        };
        let counted = offers.tier_of(Signal::Instructions).is_some();
        let (large, small) = (pus_of(true), pus_of(false));
        (!small.is_empty()).then_some(Self {
            large,
            small,
            emulated,
            progress: if counted { "instructions" } else { "cpu-time" },
        })
    }

    fn sentence(&self) -> String {
        let (large, small) = (&self.large, &self.small);
        let mut text = format!("large cores: CPUs {large}, small ones: {small}");
        if self.emulated {
            text.push_str(" (emulated: they need not differ in speed)");
        }
        let _ = match self.progress {
            "instructions" => write!(text, "; progress is counted in instructions"),
            _ => write!(
                text,
                "; no instructions are counted here, so progress is CPU time"
            ),
        };
        text
    }
}

/// The group of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GroupReport {
    pub(crate) name: String,
    /// `leader` if this run managed the group in the end, else `member`.
    pub(crate) role: &'static str,
    /// Pid of the last leader.
    pub(crate) leader: u32,
    /// Most programs at a time; of a member, as far as it knows.
    pub(crate) most_programs: usize,
}

impl GroupReport {
    /// Warns if the group never had a second program.
    pub(crate) fn warning(&self) -> Option<String> {
        (self.most_programs < 2 && !self.is_daemon_group()).then(|| {
            format!(
                "no other run joined group {0}: the command had the machine to itself; start others \
                 with --group {0} while it runs",
                self.name
            )
        })
    }

    pub(crate) fn is_daemon_group(&self) -> bool {
        self.name == GroupName::for_daemon().as_str()
    }

    fn sentence(&self) -> String {
        let (name, most) = (&self.name, self.most_programs);
        if self.is_daemon_group() {
            return format!(
                "managed by the daemon, process {}; figures are samples of its state, one per second",
                self.leader
            );
        }
        match self.role {
            "leader" => format!(
                "group {name}: led by this run, up to {} at a time",
                count(most, "program")
            ),
            _ => format!(
                "group {name}: managed by its leader, process {}, whose report has the threads",
                self.leader
            ),
        }
    }
}

impl From<MembershipSummary> for GroupReport {
    fn from(summary: MembershipSummary) -> Self {
        Self {
            name: summary.name,
            role: if summary.led { "leader" } else { "member" },
            leader: summary.leader,
            most_programs: summary.most_programs,
        }
    }
}

impl RunReport {
    /// Every number of the run, its programs (`NAME:PID`) and its threads (`NAME:TID`).
    pub(crate) fn table(&self, seed: Option<u64>) -> Table {
        let mut rows = LongRows::default();
        let run = RowOwner {
            case: LIVE,
            policy: Some(&self.policy),
            seed,
            program: None,
        };
        rows.push(run, "duration_s", self.duration_s, Some("s"));
        rows.push(run, "cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(run, "quantum_ms", self.quantum.mean_ms, Some("ms"));
        rows.push(run, "plans", self.plans as f64, None);
        rows.push(run, "moves", self.moves as f64, None);
        rows.push(run, "nudges", self.nudges as f64, None);
        rows.push_if_some(run, "adherence", self.adherence, None);
        rows.push(run, "own_cpu_s", self.overhead.cpu_s, Some("s"));
        for program in &self.programs {
            let name = format!("{}:{}", escape_invisible(&program.name), program.pid);
            program.add(&mut rows, run.with_program(&name));
        }
        for thread in &self.threads {
            let name = format!("{}:{}", escape_invisible(&thread.name), thread.tid);
            thread.add(&mut rows, run.with_program(&name));
        }
        rows.table()
    }
}

impl ProgramRow {
    fn add(&self, rows: &mut LongRows, owner: RowOwner<'_>) {
        rows.push(owner, "program_cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(owner, "energy_j", self.energy_j, Some("J"));
        let rate = self.instructions_per_cpu_s;
        rows.push_if_some(owner, "instructions_per_cpu_s", rate, Some("1/s"));
        rows.push_if_some(owner, "llc_miss_rate", self.llc_miss_rate, None);
        rows.push_if_some(owner, "bus_occupancy", self.bus_occupancy, None);
        rows.push_if_some(owner, "bus_queue_time", self.bus_queue_time, None);
    }
}

impl ThreadRow {
    fn add(&self, rows: &mut LongRows, owner: RowOwner<'_>) {
        rows.push(owner, "cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(owner, "wait_s", self.wait_s, Some("s"));
        rows.push_if_some(owner, "fp_usage", self.fp_usage, None);
        if let Some(mix) = self.mix {
            let parts = [
                ("mix_fp", mix.fp),
                ("mix_vector", mix.vector),
                ("mix_int", mix.int),
                ("mix_load", mix.load),
                ("mix_store", mix.store),
                ("mix_branch", mix.branch),
            ];
            for (key, share) in parts {
                rows.push(owner, key, share, None);
            }
        }
        rows.push_if_some(owner, "memory_stall", self.memory_stall, None);
        for (cause, share) in &self.stack {
            rows.push(owner, &format!("stack_{cause}"), *share, None);
        }
        rows.push(owner, "moves", self.moves as f64, None);
        rows.push_if_some(owner, "adherence", self.adherence, None);
        rows.push(owner, "nudges", self.nudges as f64, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::Tier;

    #[test]
    fn symmetric_machines_have_none() {
        let topology = Topology::uniform(2, 1).unwrap();
        assert_eq!(
            AsymmetryReport::from_topology(&topology, &SignalOffers::default(), false),
            None
        );
    }

    #[test]
    fn sentence_names_emulation_and_progress() {
        let topology = Topology::uniform(4, 1).unwrap();
        let topology = topology.with_large_cores(&"1".parse().unwrap()).unwrap();
        let reported = |offers: &SignalOffers, emulated| {
            AsymmetryReport::from_topology(&topology, offers, emulated)
                .unwrap()
                .sentence()
        };
        assert_eq!(
            reported(&SignalOffers::default(), true),
            "large cores: CPUs 1, small ones: 0,2-3 (emulated: they need not differ in speed); \
             no instructions are counted here, so progress is CPU time"
        );
        let counted = [(Signal::Instructions, Tier::Counters)]
            .into_iter()
            .collect();
        assert_eq!(
            reported(&counted, false),
            "large cores: CPUs 1, small ones: 0,2-3; progress is counted in instructions"
        );
    }

    fn group(most_programs: usize) -> GroupReport {
        GroupReport::from(MembershipSummary {
            name: "suite".to_owned(),
            led: true,
            leader: 7,
            policy: "gang".to_owned(),
            most_programs,
        })
    }

    #[test]
    fn group_of_one_is_warned_of() {
        assert!(
            group(1)
                .warning()
                .unwrap()
                .contains("no other run joined group suite")
        );
        assert_eq!(group(2).warning(), None);
    }
}
