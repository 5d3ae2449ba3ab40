//! Managing threads until nothing is left of them, and the report of it.

use super::setup::{PolicySelection, PolicySetup};
use crate::cli::ManageArgs;
use crate::config::RunConfig;
use crate::own_cost::OwnCost;
use crate::progress::{ProgressLine, ProgressVisibility};
use crate::report::{
    AsymmetryReport, GroupReport, QuantumLength, ReportBuilder, RunEnd, RunReport, SamplingCounts,
};
use anyhow::{Result, anyhow};
use consort_core::policy::Wishes;
use consort_core::{ControlLoop, ControlTurn, Machine};
use consort_data::recording::RecordingWriter;
use consort_linux::group::{Demands, GroupTerms};
use consort_linux::live::{
    FollowOutcome, Follower, GroupMachine, LiveRunOutcome, RecordedMeasures, SettledTerms,
};
use std::cell::RefCell;
use std::time::Duration;

/// Reason for a policy that another run has named.
const WHY: &str = "as a later run of the group asked";

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
    fn group_setup(&self, terms: &GroupTerms, machine: &GroupMachine) -> Result<PolicySetup> {
        let (topology, offers) = (machine.topology(), machine.offers());
        let interval = Duration::from_millis(terms.interval_ms);
        let made = |policy: &str| {
            PolicySetup::for_group(self.args, self.config, policy, interval, topology, offers)
        };
        made(&terms.policy).or_else(|_| made("none"))
    }

    /// Manages to the end.
    pub(crate) fn manage(
        &self,
        setup: PolicySetup,
        mut machine: GroupMachine,
    ) -> Result<RunReport> {
        let records = self.recorder.borrow().is_some();
        if records {
            machine.grant_wishes(Wishes::for_recording());
        }
        let mut chosen = setup.selection();
        machine.live_mut().set_watch(chosen.watch(records));
        let mut control_loop = ControlLoop::new(machine, setup.policy, setup.backoff, setup.seed);
        let mut ledger = ReportBuilder::default();
        let mut progress = self.progress(&chosen.policy);
        while let Some(turn) = control_loop.run_turn()? {
            ledger.add(&turn);
            self.record(&turn, &mut ledger);
            progress.show(&turn);
            if let Some(policy) = chosen.choose_again(control_loop.machine())? {
                control_loop.change_policy(policy);
                progress.set_policy(&chosen.policy);
                control_loop
                    .machine_mut()
                    .live_mut()
                    .set_watch(chosen.watch(records));
            }
            if let Some(other) = self.settle_terms(&mut control_loop, &chosen) {
                progress.set_policy(&other.policy);
                chosen = other;
                control_loop
                    .machine_mut()
                    .live_mut()
                    .set_watch(chosen.watch(records));
            }
        }
        progress.end();
        self.end_recording(&mut ledger);
        let (undone, not_held) = (
            control_loop.undone_plans(),
            control_loop.inconclusive_plans(),
        );
        let own = OwnCost::measure(Some(control_loop.machine().live().guardian_pid()));
        let asymmetry = self.asymmetry(control_loop.machine());
        let finished = control_loop.into_machine().finish();
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

    /// Settles the open terms that a member of the group demands, if one does; returns the selection
    /// if it is new.
    fn settle_terms(
        &self,
        control_loop: &mut ControlLoop<GroupMachine>,
        chosen: &PolicySelection,
    ) -> Option<PolicySelection> {
        let demands = control_loop.machine().proposal()?.clone();
        let made = self.resolve_terms(control_loop.machine(), chosen, &demands);
        let (settled, setup) = match made {
            Ok(made) => made,
            Err(error) => {
                let why = format!("it cannot run as was asked for: {error:#}");
                control_loop.machine_mut().settle_terms(Err(why));
                return None;
            }
        };
        let other = setup
            .as_ref()
            .map_or_else(|| chosen.clone(), PolicySetup::selection);
        let interval = settled.interval;
        control_loop.machine_mut().settle_terms(Ok(settled));
        if let Some(setup) = setup {
            control_loop.change_policy(setup.policy);
        }
        Some(PolicySelection { interval, ..other })
    }

    /// The terms with what is demanded, and the policy if that is another.
    fn resolve_terms(
        &self,
        machine: &GroupMachine,
        chosen: &PolicySelection,
        demands: &Demands,
    ) -> Result<(SettledTerms, Option<PolicySetup>)> {
        let fresh = |path| demands.profile.as_deref() == Some(path);
        let known = machine.terms().and_then(|terms| terms.profile.as_deref());
        let brought = demands
            .profile
            .as_deref()
            .filter(|_| !known.is_some_and(fresh));
        let recorded = brought.map(RecordedMeasures::read).transpose()?;
        let setup = self.setup_for(machine, chosen, demands, recorded.as_ref())?;
        let usual = setup.as_ref().map(|setup| setup.interval);
        let requested = demands.interval_ms.map(Duration::from_millis);
        let settled = SettledTerms {
            policy: demands.policy.clone().unwrap_or(chosen.requested.clone()),
            interval: requested.or(usual).unwrap_or(chosen.interval),
            recorded,
        };
        Ok((settled, setup))
    }

    fn setup_for(
        &self,
        machine: &GroupMachine,
        chosen: &PolicySelection,
        demands: &Demands,
        recorded: Option<&RecordedMeasures>,
    ) -> Result<Option<PolicySetup>> {
        let offers = match recorded {
            Some(recorded) => machine.offers_with(recorded).map_err(|why| anyhow!(why))?,
            None => machine.offers().clone(),
        };
        // Measures may feed another policy than the one that was chosen without them.
        let again = recorded.map(|_| &chosen.requested);
        let Some(policy) = demands.policy.as_ref().or(again) else {
            return Ok(None);
        };
        // The quantum is the policy's own unless one was given.
        let is_asked = machine.terms().is_some_and(|terms| !terms.open.interval);
        let args = ManageArgs {
            interval: is_asked.then_some(chosen.interval),
            model: None,
            ..self.args.clone()
        };
        let topology = machine.topology();
        let setup = PolicySetup::for_policy(&args, self.config, policy.clone(), topology, &offers)?;
        let why = WHY.to_owned();
        Ok(Some(PolicySetup { why, ..setup }))
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

    fn ending(&self, finished: LiveRunOutcome, requested: Duration, own: &OwnCost) -> RunEnd {
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
                asked_ms: 1e3 * requested.as_secs_f64(),
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

    fn asymmetry(&self, machine: &GroupMachine) -> Option<AsymmetryReport> {
        let emulated = self.args.emulate_asymmetry.is_some();
        AsymmetryReport::from_topology(machine.topology(), machine.offers(), emulated)
    }
}
