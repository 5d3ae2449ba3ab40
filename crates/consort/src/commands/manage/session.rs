//! Managing threads until nothing is left of them, and the report of it.

use super::setup::PolicySetup;
use crate::cli::ManageArgs;
use crate::config::RunConfig;
use crate::own_cost::OwnCost;
use crate::progress::{ProgressLine, ProgressVisibility};
use crate::report::{
    AsymmetryReport, GroupReport, QuantumLength, ReportBuilder, RunEnd, RunReport, SamplingCounts,
};
use anyhow::Result;
use consort_core::policy::Wishes;
use consort_core::{ControlLoop, ControlTurn, Machine};
use consort_data::recording::RecordingWriter;
use consort_linux::group::GroupTerms;
use consort_linux::live::{FollowOutcome, Follower, LiveMachine, LiveRunOutcome};
use std::cell::RefCell;
use std::time::Duration;

/// Settings that hold for the whole run.
pub(crate) struct ManageSession<'a> {
    /// Arguments about managing.
    pub(crate) args: &'a ManageArgs,
    /// Defaults from the configuration.
    pub(crate) config: &'a RunConfig,
    /// Condition under which the line of progress is shown.
    pub(crate) line: ProgressVisibility,
    /// True where the managed command writes to stderr instead of stdout.
    pub(crate) stdout_taken: bool,
    /// Recorder of what is seen and done; none where nothing is recorded.
    pub(crate) recorder: RefCell<Option<RecordingWriter>>,
}

impl ManageSession<'_> {
    /// Follows the leader of a group, or leads it in the end.
    pub(crate) fn follow(&self, follower: Follower) -> Result<RunReport> {
        match follower.follow()? {
            FollowOutcome::Ended(finished) => Ok(self.follower_report(*finished)),
            FollowOutcome::Leads(machine, terms) => {
                let setup = self.group_setup(&terms, &machine);
                self.manage(setup?, *machine)
            }
        }
    }

    /// The group's policy, made for this machine. It was made before by the old leader, so it can
    /// be made again, unless a file that it names is gone; then nothing is placed any more.
    fn group_setup(&self, terms: &GroupTerms, machine: &LiveMachine) -> Result<PolicySetup> {
        let (topology, offers) = (machine.topology(), machine.offers());
        let interval = Duration::from_millis(terms.interval_ms);
        let made = |policy: &str| {
            PolicySetup::for_group(self.args, self.config, policy, interval, topology, offers)
        };
        made(&terms.policy).or_else(|_| made("none"))
    }

    /// Manages to the end.
    pub(crate) fn manage(&self, setup: PolicySetup, mut machine: LiveMachine) -> Result<RunReport> {
        let records = self.recorder.borrow().is_some();
        if records {
            machine.grant_wishes(Wishes::for_recording());
        }
        let mut chosen = setup.selection();
        machine.set_watch(chosen.watch(records));
        let mut wheel = ControlLoop::new(machine, setup.policy, setup.backoff, setup.seed);
        let mut ledger = ReportBuilder::default();
        let mut progress = self.progress(&chosen.policy);
        while let Some(turn) = wheel.run_turn()? {
            ledger.add(&turn);
            self.record(&turn, &mut ledger);
            progress.show(&turn);
            if let Some(policy) = chosen.choose_again(wheel.machine())? {
                wheel.change_policy(policy);
                progress.set_policy(&chosen.policy);
                wheel.machine_mut().set_watch(chosen.watch(records));
            }
            if let Some(other) = self.settle_terms(&mut wheel, &chosen) {
                progress.set_policy(&other.policy);
                chosen = other;
                wheel.machine_mut().set_watch(chosen.watch(records));
            }
        }
        progress.end();
        self.end_recording(&mut ledger);
        let (undone, not_held) = (wheel.undone_plans(), wheel.inconclusive_plans());
        let own = OwnCost::measure(Some(wheel.machine().guardian_pid()));
        let asymmetry = self.asymmetry(wheel.machine());
        let finished = wheel.into_machine().finish();
        Ok(ledger.report(RunEnd {
            policy: chosen.policy,
            policy_requested: chosen.requested,
            policy_reason: chosen.why,
            asymmetry,
            undone,
            not_held,
            ..self.ending(finished, chosen.interval, &own)
        }))
    }

    /// A recording that cannot go on does not disturb what is managed.
    fn record(&self, turn: &ControlTurn, ledger: &mut ReportBuilder) {
        if let Some(recorder) = self.recorder.borrow_mut().as_mut()
            && let Err(error) = recorder.add(turn)
        {
            ledger.warn(format!("{error}; what was recorded before can be replayed"));
        }
    }

    fn end_recording(&self, ledger: &mut ReportBuilder) {
        match self.recorder.take().map(RecordingWriter::finish) {
            None | Some(Ok(Some(_))) => {}
            Some(Ok(None)) => ledger.warn("nothing was recorded".to_owned()),
            Some(Err(error)) => ledger.warn(error.to_string()),
        }
    }

    /// The report of a run that has managed nothing itself.
    fn follower_report(&self, finished: LiveRunOutcome) -> RunReport {
        let policy = finished.group.as_ref().map(|group| group.policy.clone());
        let policy = policy.unwrap_or_default();
        let own = OwnCost::measure(None);
        ReportBuilder::default().report(RunEnd {
            policy: policy.clone(),
            policy_requested: policy,
            policy_reason: "as the group's leader has it".to_owned(),
            ..self.ending(finished, Duration::ZERO, &own)
        })
    }

    fn ending(&self, finished: LiveRunOutcome, asked: Duration, own: &OwnCost) -> RunEnd {
        let mut warnings = finished.warnings;
        let group = finished.group.map(GroupReport::from);
        warnings.extend(group.as_ref().and_then(GroupReport::warning));
        RunEnd {
            tier: finished.tier,
            policy: String::new(),
            policy_requested: String::new(),
            policy_reason: String::new(),
            dry_run: self.args.dry_run,
            duration_s: finished.duration_s,
            quantum: QuantumLength {
                asked_ms: 1e3 * asked.as_secs_f64(),
                mean_ms: finished.quantum_ms,
            },
            asymmetry: None,
            group,
            exit_code: i32::from(finished.exit_code),
            unseen: finished.short_lived,
            own_cpu_s: own.cpu_s,
            sampling_s: finished.sampling_s,
            events_s: finished.events_s,
            switch_ns: finished.switch_ns,
            managed_cpu_s: finished.managed_cpu_s,
            peak_rss_kib: own.peak_rss_kib,
            sampling: SamplingCounts {
                samples: finished.samples.samples,
                decoded: finished.samples.decoded,
                lost: finished.samples.lost,
            },
            programs: finished.programs,
            pauses: finished.pauses,
            held: finished.held,
            undone: 0,
            not_held: 0,
            restored: finished.restored,
            warnings,
        }
    }

    fn progress(&self, policy: &str) -> ProgressLine {
        ProgressLine::new(self.line, self.stdout_taken, policy)
    }

    fn asymmetry(&self, machine: &LiveMachine) -> Option<AsymmetryReport> {
        let emulated = self.args.emulate_asymmetry.is_some();
        AsymmetryReport::from_topology(machine.topology(), machine.offers(), emulated)
    }
}
