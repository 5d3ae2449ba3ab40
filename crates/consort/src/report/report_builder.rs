//! Sums a run up, turn by turn.

use super::programs::ProgramTotals;
use super::thread_totals::ThreadTotals;
use super::{
    AsymmetryReport, GroupReport, OtherThreads, OwnOverhead, QuantumLength, RunReport,
    SamplingCounts,
};
use consort_core::{ControlTurn, Observation, ThreadId, ThreadObservation, Tier};
use consort_linux::live::AdherenceSummary;
use std::collections::{BTreeMap, BTreeSet};

/// Threads that a report lists one by one; the rest is counted.
pub(super) const LISTED: usize = 1_000;

/// Accounts that are kept while threads come and go; the smallest of those that
/// have ended are folded into [`OtherThreads`] beyond it.
const KEPT: usize = LISTED + LISTED / 2;

/// Everything that a report needs of the turns of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportBuilder {
    accounts: BTreeMap<ThreadId, ThreadTotals>,
    ended: BTreeSet<ThreadId>,
    others: OtherThreads,
    programs: ProgramTotals,
    plans: u64,
    moves: u64,
    warnings: Vec<String>,
}

/// Facts that are known only when the run is over.
#[derive(Clone, Debug)]
pub(crate) struct RunEnd {
    pub(crate) tier: Tier,
    pub(crate) policy: String,
    pub(crate) policy_requested: String,
    pub(crate) policy_reason: String,
    pub(crate) dry_run: bool,
    pub(crate) duration_s: f64,
    pub(crate) quantum: QuantumLength,
    pub(crate) asymmetry: Option<AsymmetryReport>,
    pub(crate) group: Option<GroupReport>,
    pub(crate) exit_code: i32,
    /// Number of threads that came and went unseen.
    pub(crate) unseen: u64,
    /// CPU time of Consort and its guardian, s.
    pub(crate) own_cpu_s: f64,
    /// CPU time that taking samples cost the managed threads, s; estimated.
    pub(crate) sampling_s: f64,
    /// CPU time that events cost the managed threads when they were switched and cloned, s;
    /// estimated.
    pub(crate) events_s: f64,
    /// CPU time that open events added to one switch of a thread at the end, ns.
    pub(crate) switch_ns: u64,
    /// CPU time of the command and its descendants, s.
    pub(crate) managed_cpu_s: f64,
    pub(crate) peak_rss_kib: u64,
    pub(crate) sampling: SamplingCounts,
    /// Programs by the pid at the root of each, with their names.
    pub(crate) programs: Vec<(u32, String)>,
    pub(crate) pauses: u64,
    pub(crate) held: AdherenceSummary,
    pub(crate) undone: u64,
    pub(crate) not_held: u64,
    pub(crate) restored: bool,
    pub(crate) warnings: Vec<String>,
}

/// Share of the managed CPU time above which managing costs enough to be warned of.
const DEAR: f64 = 0.05;
/// CPU time, s, that a command must have had for that warning: one that ends at once, or sleeps,
/// cannot make up for the start.
const WORTH_JUDGING_S: f64 = 5.0;

impl RunEnd {
    /// Returns the CPU time that managing took as a share of `managed_s`; estimated. `None` if
    /// nothing that was managed ran.
    fn overhead_share(&self, managed_s: f64) -> Option<f64> {
        (managed_s > 0.0).then(|| (self.own_cpu_s + self.sampling_s + self.events_s) / managed_s)
    }

    /// Warns that managing took much, and shows what would make it less; `None` if it did not.
    fn overhead_warning(&self, managed_s: f64) -> Option<String> {
        let share = self.overhead_share(managed_s)?;
        let is_dear = share > DEAR && managed_s > WORTH_JUDGING_S;
        is_dear.then(|| {
            format!(
                "managing took {:.0} percent (estimated) of the CPU time of what was managed; a \
                 longer --interval takes less",
                100.0 * share
            )
        })
    }
}

impl ReportBuilder {
    /// Adds one turn of the wheel.
    pub(crate) fn add(&mut self, turn: &ControlTurn) {
        self.observe(&turn.observation);
        self.plans += 1;
        self.moves += turn.enacted.moved.len() as u64;
        for thread in &turn.enacted.moved {
            self.accounts.entry(*thread).or_default().moves += 1;
        }
        for thread in &turn.enacted.nudged {
            self.accounts.entry(*thread).or_default().count_nudge();
        }
        for thread in &turn.enacted.pinned {
            self.accounts.entry(*thread).or_default().set_pinned();
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
        self.programs.add(seen);
        for thread in &seen.threads {
            self.add_thread(thread, seen.interval_ns);
            let throttle = seen.throttled.get(&thread.id);
            let account = self.accounts.entry(thread.id).or_default();
            account.add_throttle(throttle, seen.interval_ns);
        }
        for thread in &seen.exited {
            // One that was never seen alive has lived for an unknown part of the interval, but at
            // least for its CPU time.
            let known = self.accounts.contains_key(&thread.id);
            let cpu_ns = thread.sample.cpu_time_ns() as u64;
            self.add_thread(thread, if known { seen.interval_ns } else { cpu_ns });
            self.ended.insert(thread.id);
        }
    }

    fn add_thread(&mut self, thread: &ThreadObservation, interval_ns: u64) {
        let account = self.accounts.entry(thread.id).or_default();
        account.add(thread, interval_ns);
    }

    fn note_placements(&mut self, turn: &ControlTurn) {
        for (id, placement) in &turn.plan.placements {
            let seen = turn.observation.thread(*id);
            if let (Some(account), Some(seen)) = (self.accounts.get_mut(id), seen) {
                let reason = turn.plan.report.threads.get(id);
                account.place(seen, placement, reason.map_or("", |r| &r.chosen));
            }
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

    /// Scales estimated CPU times down where the total exceeds `counted_s`, which the kernel told.
    /// A thread's use after it was last seen is estimated from samples, each of which stands for a
    /// whole period, so that the estimates can be too high.
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

    /// The report of the run.
    pub(crate) fn report(mut self, ending: RunEnd) -> RunReport {
        // The kernel has counted nothing of attached programs that nobody samples: what was read of
        // their threads then is all there is.
        if ending.managed_cpu_s > 0.0 {
            self.fit_estimates(ending.managed_cpu_s);
        }
        let mut rows: Vec<_> = self
            .accounts
            .iter()
            .map(|(id, account)| account.row(id.pid, id.tid))
            .collect();
        for row in rows.iter_mut().filter(|row| row.adherence.is_some()) {
            // One that was in its place already, or that the kernel keeps there.
            row.enactor = row.enactor.or(ending.held.enactor);
        }
        rows.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s).then(a.tid.cmp(&b.tid)));
        let beyond = rows.split_off(rows.len().min(LISTED));
        // Threads that came and went unseen are among the rest of what the kernel has counted.
        let listed_s: f64 = rows.iter().map(|row| row.cpu_s).sum();
        let known_s = self.others.cpu_s + beyond.iter().map(|row| row.cpu_s).sum::<f64>();
        let others = OtherThreads {
            count: self.others.count + ending.unseen + beyond.len() as u64,
            cpu_s: known_s.max(ending.managed_cpu_s - listed_s),
        };
        let managed_s = ending.managed_cpu_s.max(listed_s + others.cpu_s);
        let (share, dear) = (
            ending.overhead_share(managed_s),
            ending.overhead_warning(managed_s),
        );
        ending
            .warnings
            .into_iter()
            .chain(dear)
            .for_each(|w| self.warn(w));
        RunReport {
            tier: ending.tier.to_string(),
            policy: ending.policy,
            policy_requested: ending.policy_requested,
            policy_reason: ending.policy_reason,
            dry_run: ending.dry_run,
            duration_s: ending.duration_s,
            quantum: ending.quantum,
            asymmetry: ending.asymmetry,
            group: ending.group,
            exit_code: ending.exit_code,
            cpu_s: managed_s,
            threads: rows,
            others,
            programs: self.programs.rows(ending.programs),
            plans: self.plans,
            moves: self.moves,
            enactor: ending.held.enactor,
            adherence: ending.held.adherence,
            pair_adherence: ending.held.pair_adherence,
            nudges: ending.held.windows.n,
            windows: (ending.held.windows.n > 0).then_some(ending.held.windows),
            cookies: ending.held.cookies,
            not_held: ending.not_held,
            pauses: ending.pauses,
            undone: ending.undone,
            overhead: OwnOverhead {
                cpu_s: ending.own_cpu_s,
                sampling_s_estimated: ending.sampling_s,
                events_s: ending.events_s,
                switch_ns: ending.switch_ns,
                share_of_managed: share,
                peak_rss_kib: ending.peak_rss_kib,
            },
            sampling: ending.sampling,
            restored: ending.restored,
            warnings: self.warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Class, MemoryLimit, Mix, Reading, Sample, Signal, Throttle};
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

    fn ending() -> RunEnd {
        RunEnd {
            tier: Tier::Sampling,
            policy: "none".to_owned(),
            policy_requested: "auto".to_owned(),
            policy_reason: "as asked".to_owned(),
            dry_run: false,
            duration_s: 2.0,
            quantum: QuantumLength::default(),
            asymmetry: None,
            group: None,
            exit_code: 0,
            unseen: 0,
            own_cpu_s: 0.01,
            sampling_s: 0.005,
            events_s: 0.0,
            switch_ns: 0,
            managed_cpu_s: 1.5,
            peak_rss_kib: 9000,
            sampling: SamplingCounts::default(),
            programs: Vec::new(),
            pauses: 0,
            held: AdherenceSummary::default(),
            undone: 0,
            not_held: 0,
            restored: true,
            warnings: vec!["once".to_owned(), "once".to_owned()],
        }
    }

    #[test]
    fn shares_are_weighted_by_cpu_time() {
        let mut ledger = ReportBuilder::default();
        ledger.observe(&seen(vec![thread(1, SECOND_NS, 0.8)], vec![]));
        ledger.observe(&seen(vec![thread(1, SECOND_NS / 4, 0.3)], vec![]));
        let report = ledger.report(ending());
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
            let mut ledger = ReportBuilder::default();
            for _ in 0..2 {
                stalled.sample.samples = samples;
                ledger.observe(&seen(vec![stalled.clone()], vec![]));
            }
            ledger.report(ending()).threads[0].memory_stall_ci95
        };
        let [low, high] = interval(200).unwrap();
        assert!((0.45..0.46).contains(&low) && (0.54..0.55).contains(&high));
        assert_eq!(interval(0), None);
    }

    #[test]
    fn what_limits_a_thread_that_waits_for_memory_is_told() {
        let waiting = |cpu_ns, limit| {
            let mut thread = thread(1, cpu_ns, 0.1);
            let stall = Reading::fully_counted(0.8, Tier::Sampling, SECOND_NS);
            thread.sample.set(Signal::MemoryStall, stall);
            thread.sample.memory_limit = Some(limit);
            seen(vec![thread], vec![])
        };
        let mut ledger = ReportBuilder::default();
        ledger.observe(&seen(vec![thread(2, SECOND_NS, 0.1)], vec![]));
        ledger.observe(&waiting(SECOND_NS, MemoryLimit::Bandwidth));
        ledger.observe(&waiting(SECOND_NS / 4, MemoryLimit::Latency));
        let report = ledger.report(ending());
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
    fn managing_that_is_dear_is_told_but_not_for_a_command_of_a_moment() {
        let reported = |own_cpu_s, managed_cpu_s| {
            let ending = RunEnd {
                own_cpu_s,
                ..ending()
            };
            ending.overhead_warning(managed_cpu_s)
        };
        let dear = reported(0.6, 6.0).unwrap();
        assert!(dear.starts_with("managing took 10 percent"), "{dear}");
        assert_eq!(reported(0.6, 60.0), None);
        assert_eq!(reported(0.5, 1.0), None);
    }

    #[test]
    fn attached_threads_that_are_not_sampled_are_the_managed_time() {
        let counted = |managed_cpu_s| RunEnd {
            managed_cpu_s,
            ..ending()
        };
        let mut ledger = ReportBuilder::default();
        ledger.observe(&seen(vec![thread(1, SECOND_NS, 0.8)], vec![]));
        let report = ledger.report(counted(0.0));
        assert_eq!((report.cpu_s, report.threads[0].cpu_s), (1.0, 1.0));
        assert_eq!(report.overhead.share_of_managed, Some(0.015));
        let nothing = ReportBuilder::default().report(counted(0.0));
        assert_eq!(nothing.overhead.share_of_managed, None);
        assert!(!crate::report::text(&nothing, None).contains("percent of the managed"));
    }

    #[test]
    fn thread_that_a_limit_holds_is_throttled_and_not_starved() {
        let mut held = thread(1, SECOND_NS / 100, 0.0);
        let waited = Reading::fully_counted(0.99 * SECOND_NS as f64, Tier::Proc, SECOND_NS);
        held.sample.set(Signal::WaitTime, waited);
        let starved = |throttled: Option<Throttle>| {
            let mut ledger = ReportBuilder::default();
            let mut seen = seen(vec![held.clone()], vec![]);
            seen.throttled = throttled.into_iter().map(|t| (held.id, t)).collect();
            ledger.observe(&seen);
            let short = RunEnd {
                duration_s: 1.0,
                ..ending()
            };
            crate::report::text(&ledger.report(short), None)
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
    fn a_thread_that_lived_a_moment_is_not_called_blocked() {
        let mut ledger = ReportBuilder::default();
        ledger.observe(&seen(vec![], vec![thread(1, 20_000_000, 0.0)]));
        assert_eq!(ledger.report(ending()).threads[0].class, Class::Int);
    }

    #[test]
    fn thousands_of_ended_threads_take_bounded_memory_and_lose_no_time() {
        let mut ledger = ReportBuilder::default();
        for round in 0..20 {
            let ended = (0..1_000).map(|i| thread(1 + round * 1_000 + i, 1_000_000, 0.0));
            ledger.observe(&seen(vec![], ended.collect()));
            ledger.fold_small();
            assert!(ledger.accounts.len() <= KEPT + 1_000);
        }
        let report = ledger.report(RunEnd {
            managed_cpu_s: 20.0,
            ..ending()
        });
        assert_eq!(report.threads.len(), LISTED);
        assert_eq!(report.others.count, 19_000);
        let total = report.others.cpu_s + report.threads.iter().map(|t| t.cpu_s).sum::<f64>();
        assert!((total - 20.0).abs() < 1e-6);
    }

    #[test]
    fn cpu_time_adds_up_to_what_the_kernel_counted() {
        let mut ledger = ReportBuilder::default();
        ledger.observe(&seen(vec![], vec![thread(1, SECOND_NS, 0.0)]));
        let short = ledger.clone().report(RunEnd {
            managed_cpu_s: 0.8,
            ..ending()
        });
        assert!(
            (short.threads[0].cpu_s - 0.8).abs() < 1e-9,
            "an estimate gives way"
        );
        assert_eq!((short.others.cpu_s, short.cpu_s), (0.0, 0.8));
        let more = ledger.report(RunEnd {
            managed_cpu_s: 3.0,
            unseen: 7,
            ..ending()
        });
        assert_eq!((more.others.count, more.others.cpu_s), (7, 2.0));
    }

    #[test]
    fn the_table_reads_well() {
        let mut ledger = ReportBuilder::default();
        let threads = vec![thread(7, SECOND_NS, 0.6), thread(8, 1_000_000, 0.0)];
        ledger.observe(&seen(threads, vec![]));
        insta::assert_snapshot!(crate::report::text(&ledger.report(ending()), None));
    }
}
