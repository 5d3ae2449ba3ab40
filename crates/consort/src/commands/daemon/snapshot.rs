//! State that the daemon reports: the last turn, as each user may see it.

use super::hidden_names::HiddenNames;
use crate::commands::manage::PolicySelection;
use crate::report::OwnCost;
use consort_core::plan::Fact;
use consort_core::trial::{EffectEstimate, Verdict};
use consort_core::{
    Alternative, ControlTurn, Observation, Placement, PuId, Signal, ThreadId, ThreadObservation,
    Throttle, Tier, Topology,
};
use consort_linux::control::Peer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Share of a CPU from which a thread of a process is explained along with it.
const BUSY_FROM: f64 = 0.05;
/// Threads of a process that are explained at most.
const MOST_EXPLAINED: usize = 32;

/// Maximum number of warnings kept; the oldest are dropped.
const WARNINGS: usize = 50;

/// Name of a program that a user may not see, although threads of it are the user's.
const OF_ANOTHER_USER: &str = "a program of another user";

/// State of a daemon.
pub(crate) struct DaemonSnapshot {
    begun: Instant,
    requested: String,
    policy: String,
    reason: String,
    tier: Tier,
    guardian: u32,
    plans: u64,
    moves: u64,
    nudges: u64,
    undone: u64,
    effect: DaemonEffect,
    quantum_ms: f64,
    turn: Option<ControlTurn>,
    programs: Vec<(u32, String)>,
    cores: Vec<CoreLine>,
    warnings: Vec<String>,
}

/// Effect of managing so far.
#[derive(Clone, Debug, Default)]
pub(super) struct DaemonEffect {
    pub(super) verdict: Verdict,
    /// On all programs together.
    pub(super) total: Option<EffectEstimate>,
    /// By process that stands for a program.
    pub(super) programs: BTreeMap<u32, EffectEstimate>,
}

/// Numbers of the whole daemon.
#[derive(Clone, Debug, Default)]
pub(super) struct DaemonTotals {
    pub(super) policy: String,
    pub(super) plans: u64,
    pub(super) moves: u64,
    pub(super) nudges: u64,
    pub(super) undone: u64,
    /// CPU time of the daemon and its guardian, s.
    pub(super) own_cpu_s: f64,
    pub(super) programs: u64,
    /// Their threads.
    pub(super) threads: u64,
    /// Share of the running time of threads with a place that they spent there, 0 to 1.
    pub(super) adherence: Option<f64>,
    /// Effect on all programs together.
    pub(super) effect: Option<EffectEstimate>,
    /// Names of programs with the effect on each.
    pub(super) effects: Vec<(String, u32, EffectEstimate)>,
}

/// The JSON document of `consort status`. Keys are a contract: add, never rename.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DaemonStatus {
    /// Effect of managing on progress.
    #[serde(default)]
    pub(crate) verdict: Verdict,
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// Time since its start, s.
    pub(crate) uptime_s: f64,
    /// Policy for programs that were given none of their own.
    pub(crate) policy: String,
    /// Policy that was requested, or `auto`.
    pub(crate) policy_requested: String,
    /// Reason for this policy.
    pub(crate) policy_reason: String,
    /// The richest tier that is used.
    pub(crate) tier: String,
    /// Length of the last quantum, ms.
    pub(crate) quantum_ms: f64,
    pub(crate) plans: u64,
    /// Number of times that threads were sent to another place.
    pub(crate) moves: u64,
    /// Nudges to another place, and back to a place after drifting.
    pub(crate) nudges: u64,
    /// Plans that were undone because progress fell.
    pub(crate) undone: u64,
    /// Share of the running time of threads with a place that they spent there in the last quantum, 0
    /// to 1; `None` if no thread had a place.
    #[serde(default)]
    pub(crate) adherence: Option<f64>,
    /// CPU time of the daemon and its guardian, s.
    pub(crate) own_cpu_s: f64,
    /// The same as a share of one CPU since the start.
    pub(crate) own_cpu_share: f64,
    /// Cores, by package.
    pub(crate) cores: Vec<CoreLine>,
    pub(crate) programs: Vec<ProgramLine>,
    pub(crate) threads: Vec<ThreadLine>,
    /// Warnings of what did not go as planned, the latest last.
    pub(crate) warnings: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CoreLine {
    pub(crate) package: u32,
    pub(crate) pus: Vec<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProgramLine {
    /// The process that stands for it.
    pub(crate) pid: u32,
    /// Its name, or the path of its control group.
    pub(crate) name: String,
    /// Its policy, if it was given one.
    pub(crate) policy: Option<String>,
    /// Threads that are there.
    pub(crate) threads: usize,
    /// Effect of managing on it, if it was measured.
    #[serde(default)]
    pub(crate) effect: Option<EffectEstimate>,
}

/// One thread in the last quantum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadLine {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    /// The process that stands for its program.
    pub(crate) program: u32,
    pub(crate) name: String,
    /// Share of one CPU, 0 to 1.
    pub(crate) cpu_share: f64,
    /// Class of its work: `fp`, `int`, `memory`, `mixed`, `unknown`, `blocked` or `idle`.
    pub(crate) class: String,
    /// Share of floating point in its instructions, 0 to 1; estimated if sampled.
    pub(crate) fp_usage: Option<f64>,
    /// Share of its CPU time behind loads, 0 to 1; estimated if sampled.
    pub(crate) memory_stall: Option<f64>,
    /// Its cycles by component, as shares; empty if they are not known.
    pub(crate) stack: BTreeMap<String, f64>,
    /// CPU on which it was seen last; `None` if that is not known.
    pub(crate) last_pu: Option<u32>,
    pub(crate) managed: bool,
    /// CPUs that the plan lets it use, as a CPU list.
    pub(crate) cpus: String,
    /// Limit of its control group that held it in the last quantum, and the share of the group's
    /// periods in which it did; `None` if none did.
    #[serde(default)]
    pub(crate) throttled: Option<Throttle>,
    /// Rule by which the CPUs were chosen; empty if the plan gives none.
    pub(crate) chosen: String,
}

/// The JSON document of `consort explain`. Keys are a contract: add, never rename.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadExplanation {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// The process that stands for its program.
    pub(crate) program: u32,
    /// The policy that decides for it.
    pub(crate) policy: String,
    /// CPUs that it may use, as a CPU list.
    pub(crate) placement: String,
    /// Choices that were considered.
    pub(crate) considered: String,
    /// Choice that was made, and the rule behind it.
    pub(crate) chosen: String,
    /// Numbers that decided.
    pub(crate) facts: Vec<Fact>,
    /// Places that the policy compared by cost; empty if it places by a rule.
    #[serde(default)]
    pub(crate) alternatives: Vec<Alternative>,
    /// Notes on the plan as a whole.
    pub(crate) notes: Vec<String>,
    /// The other busy threads, where a process was named.
    #[serde(default)]
    pub(crate) others: Vec<ThreadExplanation>,
}

impl DaemonSnapshot {
    /// State before the first turn.
    pub(crate) fn new(selection: &PolicySelection) -> Self {
        let mut snapshot = Self {
            begun: Instant::now(),
            requested: String::new(),
            policy: String::new(),
            reason: String::new(),
            tier: Tier::Proc,
            guardian: 0,
            plans: 0,
            moves: 0,
            nudges: 0,
            undone: 0,
            effect: DaemonEffect::default(),
            quantum_ms: 1e3 * selection.interval.as_secs_f64(),
            turn: None,
            programs: Vec::new(),
            cores: Vec::new(),
            warnings: Vec::new(),
        };
        snapshot.set_policy(selection);
        snapshot
    }

    pub(crate) fn requested_policy(&self) -> &str {
        &self.requested
    }

    /// Notes that another policy holds.
    pub(crate) fn set_policy(&mut self, chosen: &PolicySelection) {
        (self.requested, self.policy, self.reason) = (
            chosen.requested.clone(),
            chosen.policy.clone(),
            chosen.why.clone(),
        );
    }

    /// Takes over the state of a completed turn.
    pub(crate) fn record_turn(
        &mut self,
        turn: ControlTurn,
        programs: Vec<(u32, String)>,
        (tier, topology): (Tier, &Topology),
        (undone, guardian): (u64, u32),
        effect: DaemonEffect,
    ) {
        self.effect = effect;
        let cores = topology.cores().iter().map(|core| CoreLine {
            package: topology.packages()[core.package].key,
            pus: core.pus.iter().map(|pu| pu.0).collect(),
        });
        self.cores = cores.collect();
        self.plans += 1;
        self.moves += turn.enacted.moved.len() as u64;
        self.nudges += turn.enacted.nudged.len() as u64;
        self.quantum_ms = turn.observation.interval_ns as f64 / 1e6;
        (self.undone, self.guardian) = (undone, guardian);
        (self.programs, self.tier) = (programs, tier);
        for warning in &turn.enacted.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        let surplus = self.warnings.len().saturating_sub(WARNINGS);
        self.warnings.drain(..surplus);
        self.turn = Some(turn);
    }

    /// Removes processes that are no longer managed, and programs that have no other process, so that
    /// clients need not wait for the next turn.
    pub(super) fn remove_processes(&mut self, pids: &BTreeSet<u32>) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let seen = &mut turn.observation;
        let threads = std::mem::take(&mut seen.threads);
        let (removed, kept): (Vec<_>, Vec<_>) =
            { threads.into_iter() }.partition(|thread| pids.contains(&thread.id.pid));
        let programs_of = |threads: &[ThreadObservation]| -> BTreeSet<u32> {
            { threads.iter() }
                .map(|thread| seen.program_of(thread.id).0)
                .collect()
        };
        let (left, emptied) = (programs_of(&kept), programs_of(&removed));
        self.programs
            .retain(|(pid, _)| left.contains(pid) || !emptied.contains(pid) && !pids.contains(pid));
        seen.threads = kept;
    }

    /// Plans undone up to the last turn.
    pub(super) fn undone_plans(&self) -> u64 {
        self.undone
    }

    /// Returns true for a warning of an earlier plan.
    pub(super) fn has_warning(&self, warning: &str) -> bool {
        self.warnings.iter().any(|reported| reported == warning)
    }

    /// Numbers of the whole daemon.
    pub(super) fn totals(&self) -> DaemonTotals {
        let seen = self.turn.as_ref().map(|turn| &turn.observation);
        DaemonTotals {
            policy: self.policy.clone(),
            plans: self.plans,
            moves: self.moves,
            nudges: self.nudges,
            undone: self.undone,
            own_cpu_s: self.own_cost().cpu_s,
            programs: self.programs.len() as u64,
            threads: seen.map_or(0, |seen| seen.threads.len() as u64),
            adherence: seen.and_then(Observation::adherence),
            effect: self.effect.total,
            effects: { self.programs.iter() }
                .filter_map(|(pid, name)| {
                    Some((name.clone(), *pid, *self.effect.programs.get(pid)?))
                })
                .collect(),
        }
    }

    fn own_cost(&self) -> OwnCost {
        OwnCost::measure(Some(self.guardian).filter(|&pid| pid > 0))
    }

    /// Returns the JSON document of `consort status`, with what the peer may see.
    pub(crate) fn status(&self, peer: Peer) -> Result<Value, String> {
        let cost = self.own_cost();
        let uptime_s = self.begun.elapsed().as_secs_f64();
        let sight = ClientView::from_peer(self, peer);
        let threads = self.threads(&sight);
        let status = DaemonStatus {
            verdict: self.effect.verdict.clone(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s,
            policy: self.policy.clone(),
            policy_requested: self.requested.clone(),
            policy_reason: self.reason.clone(),
            tier: self.tier.to_string(),
            quantum_ms: self.quantum_ms,
            plans: self.plans,
            moves: self.moves,
            nudges: self.nudges,
            undone: self.undone,
            adherence: { self.turn.as_ref() }.and_then(|turn| turn.observation.adherence()),
            own_cpu_s: cost.cpu_s,
            own_cpu_share: cost.cpu_s / uptime_s.max(1e-9),
            cores: self.cores.clone(),
            programs: self.program_lines(&sight, &threads),
            threads,
            // They name threads of other users too.
            warnings: if peer.is_master() {
                self.warnings.clone()
            } else {
                Vec::new()
            },
        };
        serde_json::to_value(status).map_err(|error| error.to_string())
    }

    /// Returns the JSON document of `consort explain` for a thread, or for the busy threads of a process
    /// or program, if the peer may see it.
    pub(crate) fn explain(&self, peer: Peer, id: u32) -> Result<Value, String> {
        let absent = || format!("thread {id} is not managed by this daemon");
        let turn = self.turn.as_ref().ok_or_else(absent)?;
        let seen = &turn.observation;
        let visible = seen.threads.iter().filter(|t| peer.may_see(t.id));
        let is_of_process =
            |thread: &ThreadObservation| thread.id.pid == id || seen.program_of(thread.id).0 == id;
        let mut threads: Vec<&ThreadObservation> = visible
            .filter(|t| t.id.tid == id || is_of_process(t))
            .collect();
        threads.sort_by(|a, b| seen.cpu_share(b).total_cmp(&seen.cpu_share(a)));
        let busy = { threads.iter() }
            .filter(|t| seen.cpu_share(t) >= BUSY_FROM)
            .count();
        threads.truncate(busy.clamp(1, MOST_EXPLAINED));
        let strangers = ClientView::from_peer(self, peer).strangers;
        let mut explained = threads
            .into_iter()
            .map(|t| self.explanation(turn, t, &strangers));
        let mut first = explained.next().ok_or_else(absent)?;
        // Notes are about the plan as a whole, so they are given once.
        first.others = explained
            .map(|other| ThreadExplanation {
                notes: Vec::new(),
                ..other
            })
            .collect();
        serde_json::to_value(first).map_err(|error| error.to_string())
    }

    fn explanation(
        &self,
        turn: &ControlTurn,
        seen: &ThreadObservation,
        strangers: &HiddenNames,
    ) -> ThreadExplanation {
        let reason = turn.plan.report.threads.get(&seen.id);
        let reason = reason.cloned().unwrap_or_default();
        let throttle = turn.observation.throttled.get(&seen.id);
        let throttled = throttle.into_iter().map(ToString::to_string);
        let program = turn.observation.program_of(seen.id);
        let assigned = turn.observation.assigned.get(&program);
        ThreadExplanation {
            tid: seen.id.tid,
            name: seen.name.to_string(),
            program: program.0,
            policy: assigned.map_or_else(|| self.policy.clone(), ToString::to_string),
            placement: placement(turn, seen),
            considered: strangers.conceal(reason.considered),
            chosen: strangers.conceal(reason.chosen),
            facts: { reason.facts.into_iter() }
                .filter(|fact| !strangers.are_named_in(&fact.name))
                .collect(),
            alternatives: { turn.plan.report.alternatives.get(&seen.id) }
                .into_iter()
                .flatten()
                .map(|alternative| Alternative {
                    place: strangers.conceal(alternative.place.clone()),
                    ..alternative.clone()
                })
                .collect(),
            notes: { throttled.chain(turn.plan.report.notes.iter().cloned()) }
                .filter(|note| !strangers.are_named_in(note))
                .collect(),
            others: Vec::new(),
        }
    }

    fn threads(&self, sight: &ClientView) -> Vec<ThreadLine> {
        let Some(turn) = &self.turn else {
            return Vec::new();
        };
        let threads = turn.observation.threads.iter();
        let seen = threads.filter(|thread| sight.sees(thread.id));
        let lines = seen.map(|thread| {
            let line = line(turn, thread);
            ThreadLine {
                chosen: sight.strangers.conceal(line.chosen),
                ..line
            }
        });
        lines.collect()
    }

    fn program_lines(&self, sight: &ClientView, threads: &[ThreadLine]) -> Vec<ProgramLine> {
        let count = |pid| threads.iter().filter(|t| t.program == pid).count();
        let assigned = |pid| {
            let turn = self.turn.as_ref()?;
            let assigned = &turn.observation.assigned;
            Some(assigned.get(&consort_core::ProgramId(pid))?.to_string())
        };
        let lines = self.programs.iter().map(|(pid, name)| ProgramLine {
            pid: *pid,
            name: match sight.peer.may_see_process(*pid) {
                true => name.clone(),
                false => OF_ANOTHER_USER.to_owned(),
            },
            policy: assigned(*pid),
            threads: count(*pid),
            effect: self.effect.programs.get(pid).copied(),
        });
        lines
            .filter(|p| p.threads > 0 || sight.peer.is_master())
            .collect()
    }
}

/// The part of the last turn that a client may see: all of it for root and the daemon's user, and for
/// others their own threads.
struct ClientView {
    peer: Peer,
    /// Threads that the client may see; `None` for all.
    threads: Option<BTreeSet<ThreadId>>,
    strangers: HiddenNames,
}

impl ClientView {
    fn from_peer(snapshot: &DaemonSnapshot, peer: Peer) -> Self {
        let mut sight = Self {
            peer,
            threads: None,
            strangers: HiddenNames::default(),
        };
        if peer.is_master() {
            return sight;
        }
        let mut seen = BTreeSet::new();
        if let Some(turn) = &snapshot.turn {
            // The users of a process's first thread count for all: names are those of programs.
            let mut processes = BTreeMap::new();
            let mut sees =
                |id: ThreadId| *processes.entry(id.pid).or_insert_with(|| peer.may_see(id));
            let threads = turn.observation.threads.iter().map(|thread| thread.id);
            seen = threads.filter(|&id| sees(id)).collect();
            let sees_process = |pid| peer.may_see_process(pid);
            let (seen_of, programs) = (&turn.observation, &snapshot.programs);
            sight.strangers = HiddenNames::collect(seen_of, programs, sees, sees_process);
        }
        sight.threads = Some(seen);
        sight
    }

    fn sees(&self, id: ThreadId) -> bool {
        let threads = self.threads.as_ref();
        threads.is_none_or(|threads| threads.contains(&id))
    }
}

fn line(turn: &ControlTurn, thread: &ThreadObservation) -> ThreadLine {
    let reason = turn.plan.report.threads.get(&thread.id);
    let throttled = turn.observation.throttled.get(&thread.id);
    let chosen = reason.map(|reason| reason.chosen.clone());
    ThreadLine {
        tid: thread.id.tid,
        pid: thread.id.pid,
        program: turn.observation.program_of(thread.id).0,
        name: thread.name.to_string(),
        cpu_share: turn.observation.cpu_share(thread),
        class: turn.observation.class_of(thread).to_string(),
        fp_usage: thread.sample.get(Signal::FpUsage),
        memory_stall: thread.sample.get(Signal::MemoryStall),
        stack: stack(thread),
        last_pu: thread.last_pu.map(|PuId(pu)| pu),
        managed: thread.managed,
        cpus: placement(turn, thread),
        chosen: chosen
            .or_else(|| throttled.map(ToString::to_string))
            .unwrap_or_default(),
        throttled: throttled.cloned(),
    }
}

fn stack(thread: &ThreadObservation) -> BTreeMap<String, f64> {
    let stacks = thread.sample.stack.iter();
    let components = stacks.flat_map(|(stack, _)| stack.components());
    components
        .map(|component| (component.name.to_string(), component.share))
        .collect()
}

fn placement(turn: &ControlTurn, thread: &ThreadObservation) -> String {
    match turn.plan.placements.get(&thread.id) {
        Some(Placement::Restricted(pus)) => pus.to_string(),
        Some(Placement::Unrestricted) | None => thread.original.to_string(),
    }
}
