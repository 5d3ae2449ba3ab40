//! Sums a run up, turn by turn.

use super::account::Account;
use super::{Others, Overhead, RunReport, SamplingCounts};
use consort_core::{Observation, ThreadId, ThreadObservation, Tier, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// Threads that a report lists one by one; the rest is counted.
pub(super) const LISTED: usize = 1_000;

/// Accounts that are kept while threads come and go; the smallest of those that
/// have ended are folded into [`Others`] beyond it.
const KEPT: usize = 4 * LISTED;

/// Everything that a report needs of the turns of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<ThreadId, Account>,
    ended: BTreeSet<ThreadId>,
    others: Others,
    plans: u64,
    moves: u64,
    warnings: Vec<String>,
}

/// What is known only when the run is over.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) tier: Tier,
    pub(crate) policy: String,
    pub(crate) policy_requested: String,
    pub(crate) policy_reason: String,
    pub(crate) dry_run: bool,
    pub(crate) duration_s: f64,
    pub(crate) exit_code: i32,
    /// Threads that came and went unseen, with their CPU time where it is known.
    pub(crate) unseen: Others,
    /// CPU time of Consort and its guardian, s.
    pub(crate) own_cpu_s: f64,
    /// What taking samples cost the managed threads, s of CPU time; estimated.
    pub(crate) sampling_s: f64,
    /// CPU time of the command and its descendants, s.
    pub(crate) managed_cpu_s: f64,
    pub(crate) peak_rss_kib: u64,
    pub(crate) sampling: SamplingCounts,
    pub(crate) undone: u64,
    pub(crate) restored: bool,
    pub(crate) warnings: Vec<String>,
}

impl Ledger {
    /// Adds one turn of the wheel.
    pub(crate) fn add(&mut self, turn: &Turn) {
        self.observe(&turn.observation);
        self.plans += 1;
        self.moves += turn.enacted.moved.len() as u64;
        for thread in &turn.enacted.moved {
            self.accounts.entry(*thread).or_default().moves += 1;
        }
        for finding in &turn.findings {
            self.warn(format!("plan {}: {finding}", turn.plan.generation));
        }
        turn.enacted
            .warnings
            .iter()
            .for_each(|w| self.warn(w.clone()));
        self.note_placements(turn);
        self.fold_small();
    }

    /// Adds what was seen after the last plan.
    pub(crate) fn observe(&mut self, seen: &Observation) {
        for thread in &seen.threads {
            self.add_thread(thread, seen.interval_ns);
        }
        for thread in &seen.exited {
            self.add_thread(thread, seen.interval_ns);
            self.ended.insert(thread.id);
        }
    }

    fn add_thread(&mut self, thread: &ThreadObservation, interval_ns: u64) {
        let account = self.accounts.entry(thread.id).or_default();
        account.add(thread, interval_ns);
    }

    fn note_placements(&mut self, turn: &Turn) {
        for (id, placement) in &turn.plan.placements {
            let seen = turn.observation.thread(*id);
            if let (Some(account), Some(seen)) = (self.accounts.get_mut(id), seen) {
                let reason = turn.plan.report.threads.get(id);
                account.place(seen, placement, reason.map_or("", |r| &r.chosen));
            }
        }
    }

    /// The same warning is kept once.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) && self.warnings.len() < 100 {
            self.warnings.push(warning);
        }
    }

    /// Folds the smallest accounts of ended threads together when there are too many.
    fn fold_small(&mut self) {
        if self.ended.len() <= KEPT {
            return;
        }
        let mut ended: Vec<(f64, ThreadId)> = self
            .ended
            .iter()
            .filter_map(|id| Some((self.accounts.get(id)?.cpu_ns, *id)))
            .collect();
        ended.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (cpu_ns, id) in ended.into_iter().take(KEPT / 2) {
            self.accounts.remove(&id);
            self.ended.remove(&id);
            self.others.count += 1;
            self.others.cpu_s += cpu_ns / 1e9;
        }
    }

    /// The report of the run.
    pub(crate) fn report(mut self, ending: Ending) -> RunReport {
        ending.warnings.into_iter().for_each(|w| self.warn(w));
        let mut rows: Vec<_> = self
            .accounts
            .iter()
            .map(|(id, account)| account.row(id.pid, id.tid))
            .collect();
        rows.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s).then(a.tid.cmp(&b.tid)));
        let beyond = rows.split_off(rows.len().min(LISTED));
        let others = Others {
            count: self.others.count + ending.unseen.count + beyond.len() as u64,
            cpu_s: self.others.cpu_s
                + ending.unseen.cpu_s
                + beyond.iter().map(|row| row.cpu_s).sum::<f64>(),
        };
        RunReport {
            tier: ending.tier.to_string(),
            policy: ending.policy,
            policy_requested: ending.policy_requested,
            policy_reason: ending.policy_reason,
            dry_run: ending.dry_run,
            duration_s: ending.duration_s,
            exit_code: ending.exit_code,
            threads: rows,
            others,
            plans: self.plans,
            moves: self.moves,
            undone: ending.undone,
            overhead: Overhead {
                cpu_s: ending.own_cpu_s,
                sampling_s_estimated: ending.sampling_s,
                share_of_managed: (ending.own_cpu_s + ending.sampling_s)
                    / ending.managed_cpu_s.max(1e-9),
                peak_rss_kib: ending.peak_rss_kib,
            },
            sampling: ending.sampling,
            restored: ending.restored,
            warnings: self.warnings,
        }
    }
}
