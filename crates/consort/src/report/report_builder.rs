//! Sums a run up, turn by turn.

use super::history::RunHistory;
use super::totals::{ProgramTotals, ThreadTotals, meet_on_cores};
use super::{
    AsymmetryReport, GroupReport, OtherThreads, OwnCost, OwnOverhead, QuantumLength, RunReport,
    SamplingCounts, ThreadRow,
};
use crate::output::percent;
use consort_core::trial::{Arm, Verdict};
use consort_core::{ControlTurn, Observation, ThreadId, Topology};
use consort_linux::enforce::EnactorKind;
use consort_linux::live::LiveRunOutcome;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Threads that a report lists one by one; the rest is counted.
pub(super) const LISTED: usize = 1_000;

/// Accounts that are kept while threads come and go; beyond it, the smallest accounts of ended threads
/// are folded into [`OtherThreads`].
const KEPT: usize = LISTED + LISTED / 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct ReportBuilder {
    accounts: BTreeMap<ThreadId, ThreadTotals>,
    ended: BTreeSet<ThreadId>,
    others: OtherThreads,
    programs: ProgramTotals,
    plans: u64,
    moves: u64,
    history: RunHistory,
    warnings: Vec<String>,
}

/// Facts that are known only when the run is over.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub(crate) policy: String,
    pub(crate) policy_requested: String,
    pub(crate) policy_reason: String,
    pub(crate) verdict: Verdict,
    pub(crate) dry_run: bool,
    /// Quantum that the user or the policy requested.
    pub(crate) interval: Duration,
    pub(crate) asymmetry: Option<AsymmetryReport>,
    pub(crate) own: OwnCost,
    pub(crate) undone: u64,
    pub(crate) inconclusive: u64,
    pub(crate) outcome: LiveRunOutcome,
}

/// Share of the managed CPU time above which managing costs enough for a warning.
const DEAR: f64 = 0.05;
/// CPU time, s, that a command must have had for that warning: one that ends at once, or sleeps,
/// cannot make up for the start.
const WORTH_JUDGING_S: f64 = 5.0;

/// Warns that managing took much, and shows how to make it less; `None` if it did not.
fn overhead_warning(share: Option<f64>, managed_s: f64) -> Option<String> {
    let share = share.filter(|&share| share > DEAR && managed_s > WORTH_JUDGING_S)?;
    Some(format!(
        "managing took {} percent (estimated) of the CPU time of what was managed; a longer --interval \
         takes less",
        percent(share, 0)
    ))
}

impl ReportBuilder {
    pub(crate) fn add(&mut self, turn: &ControlTurn, topology: &Topology) {
        self.observe(&turn.observation);
        self.history.add(turn);
        meet_on_cores(topology, &turn.observation, &mut self.accounts);
        self.plans += 1;
        self.moves += turn.enacted.moved.len() as u64;
        for thread in &turn.enacted.moved {
            self.accounts.entry(*thread).or_default().moves += 1;
        }
        for thread in &turn.enacted.nudged {
            self.accounts.entry(*thread).or_default().count_nudge();
        }
        for thread in &turn.enacted.pinned {
            self.accounts.entry(*thread).or_default().enactor = Some(EnactorKind::Pin);
        }
        for finding in &turn.findings {
            self.warn(format!("plan {}: {finding}", turn.plan.generation));
        }
        for warning in &turn.enacted.warnings {
            self.warn(warning.clone());
        }
        // Without management there is no placement that could be explained.
        let placements = turn.plan.placements.iter();
        for (id, placement) in placements.filter(|_| turn.arm == Arm::Managed) {
            let seen = turn.observation.thread(*id);
            if let (Some(account), Some(seen)) = (self.accounts.get_mut(id), seen) {
                let reason = turn.plan.report.threads.get(id);
                account.place(seen, placement, reason.map_or("", |r| &r.chosen));
            }
        }
        self.fold_small();
    }

    /// Adds an observation without a plan.
    pub(crate) fn observe(&mut self, seen: &Observation) {
        self.programs.add(seen);
        for thread in &seen.threads {
            let account = self.accounts.entry(thread.id).or_default();
            account.add(thread, seen.interval_ns);
            account.add_throttle(seen.throttled.get(&thread.id), seen.interval_ns);
        }
        for thread in &seen.exited {
            // A thread that was never seen alive has lived for an unknown part of the interval, but at
            // least for its CPU time.
            let is_known = self.accounts.contains_key(&thread.id);
            let cpu_ns = thread.sample.cpu_time_ns() as u64;
            let lived_ns = if is_known { seen.interval_ns } else { cpu_ns };
            self.accounts
                .entry(thread.id)
                .or_default()
                .add(thread, lived_ns);
            self.ended.insert(thread.id);
        }
    }

    /// The same warning is kept once.
    pub(crate) fn warn(&mut self, warning: String) {
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
        for (cpu_ns, id) in ended.iter().take(ended.len().saturating_sub(LISTED)) {
            self.accounts.remove(id);
            self.ended.remove(id);
            self.others.count += 1;
            self.others.cpu_s += cpu_ns / 1e9;
        }
    }

    /// Scales estimated CPU times down if the total exceeds the time that the kernel counted.
    /// A thread's use after it was last seen is estimated from samples. Each sample stands for a whole
    /// period, so the estimates can be too high.
    fn fit_estimates(&mut self, counted_s: f64) {
        let (all_ns, estimated_ns) = self.accounts.values().fold((0.0, 0.0), |sum, account| {
            (sum.0 + account.cpu_ns, sum.1 + account.estimated_ns)
        });
        let excess_ns = all_ns + 1e9 * self.others.cpu_s - 1e9 * counted_s;
        if excess_ns <= 0.0 || estimated_ns <= 0.0 {
            return;
        }
        let too_much = (excess_ns / estimated_ns).min(1.0);
        for account in self.accounts.values_mut() {
            account.cpu_ns -= too_much * account.estimated_ns;
        }
    }

    /// Threads, in the order of their ids.
    pub(crate) fn thread_rows(&self) -> Vec<ThreadRow> {
        let accounts = self.accounts.iter();
        accounts
            .map(|(id, account)| account.row(id.pid, id.tid))
            .collect()
    }

    pub(crate) fn report(mut self, end: RunEnd) -> RunReport {
        let RunEnd { outcome, own, .. } = end;
        // The kernel has counted nothing of attached programs that are not sampled: then the CPU times
        // that were read of their threads are all there is.
        if outcome.managed_cpu_s > 0.0 {
            self.fit_estimates(outcome.managed_cpu_s);
        }
        let mut rows = self.thread_rows();
        for row in rows.iter_mut().filter(|row| row.adherence.is_some()) {
            // A thread that was in its place already, or that the kernel keeps there.
            row.enactor = row.enactor.or(outcome.held.enactor);
        }
        rows.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s).then(a.tid.cmp(&b.tid)));
        let beyond = rows.split_off(rows.len().min(LISTED));
        // Threads that came and went unseen are among the rest of what the kernel has counted.
        let listed_s: f64 = rows.iter().map(|row| row.cpu_s).sum();
        let known_s = self.others.cpu_s + beyond.iter().map(|row| row.cpu_s).sum::<f64>();
        let others = OtherThreads {
            count: self.others.count + outcome.short_lived + beyond.len() as u64,
            cpu_s: known_s.max(outcome.managed_cpu_s - listed_s),
        };
        let managed_s = outcome.managed_cpu_s.max(listed_s + others.cpu_s);
        let cost_s = own.cpu_s + outcome.sampling_s + outcome.events_s;
        let share = (managed_s > 0.0).then(|| cost_s / managed_s);
        let group = outcome.group.map(GroupReport::from);
        let warnings = outcome.warnings.into_iter();
        let warnings = warnings.chain(group.as_ref().and_then(GroupReport::warning));
        for warning in warnings.chain(overhead_warning(share, managed_s)) {
            self.warn(warning);
        }
        let held = outcome.held;
        RunReport {
            tier: outcome.tier.to_string(),
            policy: end.policy,
            policy_requested: end.policy_requested,
            policy_reason: end.policy_reason,
            verdict: end.verdict,
            dry_run: end.dry_run,
            duration_s: outcome.duration_s,
            command: outcome.command,
            quantum: QuantumLength {
                asked_ms: 1e3 * end.interval.as_secs_f64(),
                mean_ms: outcome.quantum_ms,
            },
            asymmetry: end.asymmetry,
            group,
            exit_code: i32::from(outcome.exit_code),
            cpu_s: managed_s,
            threads: rows,
            others,
            programs: self.programs.rows(outcome.programs),
            plans: self.plans,
            moves: self.moves,
            enactor: held.enactor,
            adherence: held.adherence,
            pair_adherence: held.pair_adherence,
            nudges: held.windows.n,
            windows: (held.windows.n > 0).then_some(held.windows),
            cookies: held.cookies,
            not_held: end.inconclusive,
            pauses: outcome.pauses,
            undone: end.undone,
            overhead: OwnOverhead {
                cpu_s: own.cpu_s,
                sampling_s_estimated: outcome.sampling_s,
                events_s: outcome.events_s,
                switch_ns: outcome.switch_ns,
                share_of_managed: share,
                peak_rss_kib: own.peak_rss_kib,
            },
            sampling: SamplingCounts {
                samples: outcome.samples.samples,
                decoded: outcome.samples.decoded,
                lost: outcome.samples.lost,
            },
            restored: outcome.restored,
            warnings: self.warnings,
            history: self.history,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{
        Class, EnactmentReport, MemoryLimit, Mix, Plan, Reading, Sample, Signal, ThreadObservation,
        Throttle, Tier,
    };
    use consort_linux::live::{AdherenceSummary, SampleCounts};
    use std::sync::Arc;

    const SECOND_NS: u64 = 1_000_000_000;

    fn thread(tid: u32, cpu_ns: u64, fp: f64) -> ThreadObservation {
        let mut sample = Sample::default();
        let reading = |value| Reading::fully_counted(value, Tier::Sampling, SECOND_NS);
        sample.set(Signal::CpuTime, reading(cpu_ns as f64));
        sample.set(Signal::FpUsage, reading(fp));
        sample.mix = Some(Mix {
            fp,
            int: 1.0 - fp,
            ..Mix::default()
        });
        ThreadObservation {
            id: ThreadId {
                pid: 1,
                tid,
                start_ticks: 0,
            },
            name: format!("t{tid}").into(),
            original: Arc::new("0-3".parse().unwrap()),
            managed: true,
            last_pu: None,
            sample,
        }
    }

    fn seen(threads: Vec<ThreadObservation>, exited: Vec<ThreadObservation>) -> Observation {
        Observation {
            time_ns: SECOND_NS,
            interval_ns: SECOND_NS,
            threads,
            exited,
            ..Observation::default()
        }
    }

    fn run_end() -> RunEnd {
        RunEnd {
            policy: "none".to_owned(),
            policy_requested: "auto".to_owned(),
            policy_reason: "as requested".to_owned(),
            verdict: Verdict::default(),
            dry_run: false,
            interval: Duration::ZERO,
            asymmetry: None,
            own: OwnCost {
                cpu_s: 0.01,
                peak_rss_kib: 9000,
            },
            undone: 0,
            inconclusive: 0,
            outcome: LiveRunOutcome {
                exit_code: 0,
                duration_s: 2.0,
                command: None,
                tier: Tier::Sampling,
                managed_cpu_s: 1.5,
                sampling_s: 0.005,
                events_s: 0.0,
                switch_ns: 0,
                short_lived: 0,
                samples: SampleCounts::default(),
                restored: true,
                pauses: 0,
                held: AdherenceSummary::default(),
                quantum_ms: None,
                programs: Vec::new(),
                group: None,
                warnings: vec!["once".to_owned(), "once".to_owned()],
            },
        }
    }

    fn run_end_with_cpu(managed_cpu_s: f64) -> RunEnd {
        let mut end = run_end();
        end.outcome.managed_cpu_s = managed_cpu_s;
        end
    }

    #[test]
    fn shares_are_weighted_by_cpu_time() {
        let mut builder = ReportBuilder::default();
        builder.observe(&seen(vec![thread(1, SECOND_NS, 0.8)], vec![]));
        builder.observe(&seen(vec![thread(1, SECOND_NS / 4, 0.3)], vec![]));
        let report = builder.report(run_end());
        let row = &report.threads[0];
        assert_eq!(row.cpu_s, 1.25);
        assert!((row.fp_usage.unwrap() - 0.7).abs() < 1e-12);
        assert_eq!(row.class, Class::Fp);
        assert_eq!(report.overhead.share_of_managed, Some(0.01));
        assert_eq!(report.warnings, ["once"]);
    }

    #[test]
    fn stalled_share_has_the_interval_of_its_samples() {
        let mut stalled = thread(1, SECOND_NS, 0.1);
        let stall = Reading::fully_counted(0.5, Tier::Sampling, SECOND_NS);
        stalled.sample.set(Signal::MemoryStall, stall);
        let mut interval = |samples| {
            let mut builder = ReportBuilder::default();
            for _ in 0..2 {
                stalled.sample.samples = samples;
                builder.observe(&seen(vec![stalled.clone()], vec![]));
            }
            builder.report(run_end()).threads[0].memory_stall_ci95
        };
        let [low, high] = interval(200).unwrap();
        assert!((0.45..0.46).contains(&low) && (0.54..0.55).contains(&high));
        assert_eq!(interval(0), None);
    }

    #[test]
    fn memory_bound_thread_has_its_limit() {
        let waiting = |cpu_ns, limit| {
            let mut thread = thread(1, cpu_ns, 0.1);
            let stall = Reading::fully_counted(0.8, Tier::Sampling, SECOND_NS);
            thread.sample.set(Signal::MemoryStall, stall);
            thread.sample.memory_limit = Some(limit);
            seen(vec![thread], vec![])
        };
        let mut builder = ReportBuilder::default();
        builder.observe(&seen(vec![thread(2, SECOND_NS, 0.1)], vec![]));
        builder.observe(&waiting(SECOND_NS, MemoryLimit::Bandwidth));
        builder.observe(&waiting(SECOND_NS / 4, MemoryLimit::Latency));
        let report = builder.report(run_end());
        let limit_of = |tid| {
            report
                .threads
                .iter()
                .find(|row| row.tid == tid)?
                .memory_limit
        };
        assert_eq!(limit_of(1), Some(MemoryLimit::Bandwidth));
        assert_eq!(limit_of(2), None);
    }

    #[test]
    fn dear_managing_is_warned_of() {
        let dear = overhead_warning(Some(0.1), 6.0).unwrap();
        assert!(dear.starts_with("managing took 10 percent"), "{dear}");
        assert_eq!(overhead_warning(Some(0.01), 60.0), None);
        assert_eq!(overhead_warning(Some(0.5), 1.0), None);
    }

    #[test]
    fn overhead_share_needs_a_second_of_cpu() {
        let text = |managed_cpu_s| {
            let report = ReportBuilder::default().report(run_end_with_cpu(managed_cpu_s));
            assert!(report.overhead.share_of_managed.is_some());
            crate::report::text(&report, None)
        };
        let short = text(0.012);
        assert!(!short.contains("% of the managed"), "{short}");
        assert!(
            short.contains("used too little CPU time (12 ms) to express it as a share"),
            "{short}"
        );
        assert!(text(1.5).contains(": 1.00 % of the managed threads'"));
    }

    #[test]
    fn unsampled_attached_threads_are_the_managed_time() {
        let mut builder = ReportBuilder::default();
        builder.observe(&seen(vec![thread(1, SECOND_NS, 0.8)], vec![]));
        let report = builder.report(run_end_with_cpu(0.0));
        assert_eq!((report.cpu_s, report.threads[0].cpu_s), (1.0, 1.0));
        assert_eq!(report.overhead.share_of_managed, Some(0.015));
        let nothing = ReportBuilder::default().report(run_end_with_cpu(0.0));
        assert_eq!(nothing.overhead.share_of_managed, None);
        assert!(!crate::report::text(&nothing, None).contains("% of the managed"));
    }

    #[test]
    fn throttled_thread_is_not_starved() {
        let mut held = thread(1, SECOND_NS / 100, 0.0);
        let waited = Reading::fully_counted(0.99 * SECOND_NS as f64, Tier::Proc, SECOND_NS);
        held.sample.set(Signal::WaitTime, waited);
        let starved = |throttled: Option<Throttle>| {
            let mut builder = ReportBuilder::default();
            let mut seen = seen(vec![held.clone()], vec![]);
            seen.throttled = throttled.into_iter().map(|t| (held.id, t)).collect();
            builder.observe(&seen);
            let mut short = run_end();
            short.outcome.duration_s = 1.0;
            crate::report::text(&builder.report(short), None)
        };
        assert!(starved(None).contains("1 thread was starved"));
        let text = starved(Some(Throttle {
            group: "/c20".into(),
            cpus: 0.1,
            share: 0.98,
        }));
        assert!(!text.contains("starved"), "{text}");
        let expected =
            "1 thread was throttled by the limit of /c20 (0.1 CPU), 98 percent of the time";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn short_lived_thread_is_not_called_blocked() {
        let mut builder = ReportBuilder::default();
        builder.observe(&seen(vec![], vec![thread(1, 20_000_000, 0.0)]));
        assert_eq!(builder.report(run_end()).threads[0].class, Class::Int);
    }

    #[test]
    fn ended_threads_take_bounded_memory() {
        let mut builder = ReportBuilder::default();
        for round in 0..20 {
            let ended = (0..1_000).map(|i| thread(1 + round * 1_000 + i, 1_000_000, 0.0));
            builder.observe(&seen(vec![], ended.collect()));
            builder.fold_small();
            assert!(builder.accounts.len() <= KEPT + 1_000);
        }
        let report = builder.report(run_end_with_cpu(20.0));
        assert_eq!(report.threads.len(), LISTED);
        assert_eq!(report.others.count, 19_000);
        let total = report.others.cpu_s + report.threads.iter().map(|t| t.cpu_s).sum::<f64>();
        assert!((total - 20.0).abs() < 1e-6);
    }

    #[test]
    fn cpu_time_adds_up_to_the_counted_time() {
        let mut builder = ReportBuilder::default();
        builder.observe(&seen(vec![], vec![thread(1, SECOND_NS, 0.0)]));
        let short = builder.clone().report(run_end_with_cpu(0.8));
        assert!(
            (short.threads[0].cpu_s - 0.8).abs() < 1e-9,
            "an estimate gives way"
        );
        assert_eq!((short.others.cpu_s, short.cpu_s), (0.0, 0.8));
        let mut more = run_end_with_cpu(3.0);
        more.outcome.short_lived = 7;
        let more = builder.report(more);
        assert_eq!((more.others.count, more.others.cpu_s), (7, 2.0));
    }

    #[test]
    fn the_table_reads_well() {
        let mut builder = ReportBuilder::default();
        let threads = vec![thread(7, SECOND_NS, 0.6), thread(8, 1_000_000, 0.0)];
        builder.observe(&seen(threads, vec![]));
        insta::assert_snapshot!(crate::report::text(&builder.report(run_end()), None));
    }

    #[test]
    fn co_runners_are_on_other_cpus_of_the_core() {
        let topology = Topology::uniform(2, 2).unwrap();
        let on = |core: usize, pu: usize| Some(topology.cores()[core].pus[pu]);
        let place = |tid, share, last_pu| ThreadObservation {
            last_pu,
            ..thread(tid, SECOND_NS / 10 * share, 0.5)
        };
        let threads = vec![
            place(1, 10, on(0, 0)),
            place(2, 4, on(0, 1)),
            place(3, 10, on(1, 0)),
        ];
        let turn = ControlTurn {
            observation: seen(threads, vec![]),
            plan: Plan::default(),
            changed: Vec::new(),
            findings: Vec::new(),
            enacted: EnactmentReport::default(),
            arm: Arm::Managed,
        };
        let mut builder = ReportBuilder::default();
        builder.add(&turn, &topology);
        let report = builder.report(run_end());
        let first = report.threads.iter().find(|row| row.tid == 1).unwrap();
        let met: Vec<(&str, f64)> = first
            .co_runners
            .iter()
            .map(|c| (c.name.as_str(), c.share))
            .collect();
        assert_eq!(met, [("t2", 0.4)]);
        let alone = report.threads.iter().find(|row| row.tid == 3).unwrap();
        assert!(alone.co_runners.is_empty());
    }
}
