//! Managing threads until nothing is left of them, and the report of it.

use super::daemon_watch::DaemonWatch;
use super::{ManageArgs, NONE, PolicySelection, PolicySetup, TrialArgs};
use crate::config::RunConfig;
use crate::progress::{ProgressLine, ProgressVisibility};
use crate::report::{AsymmetryReport, OwnCost, ReportBuilder, RunEnd, RunReport};
use crate::timelines::LiveTimeline;
use anyhow::{Result, anyhow};
use consort_core::policy::Wishes;
use consort_core::trial::Verdict;
use consort_core::{ControlLoop, Machine};
use consort_data::recording::RecordingWriter;
use consort_linux::group::Demands;
use consort_linux::live::{FollowOutcome, Follower, GroupMachine, RecordedMeasures, SettledTerms};
use std::cell::RefCell;
use std::time::Duration;

/// Settings that hold for the whole run.
pub(crate) struct ManageSession<'a> {
    pub(crate) args: &'a ManageArgs,
    pub(crate) trial: &'a TrialArgs,
    pub(crate) config: &'a RunConfig,
    /// Condition under which the line of progress is shown.
    pub(crate) line: ProgressVisibility,
    /// True if the managed command writes to stderr instead of stdout.
    pub(crate) stdout_taken: bool,
    /// Recorder of observations and plans; `None` if nothing is recorded.
    pub(crate) recorder: RefCell<Option<RecordingWriter>>,
    /// Timeline; `None` if none was requested.
    pub(crate) timeline: RefCell<Option<LiveTimeline>>,
}

impl ManageSession<'_> {
    /// Follows the leader of a group, or leads it in the end.
    pub(crate) fn follow(&self, follower: Follower) -> Result<RunReport> {
        let watch = { follower.follows_daemon() }.then(|| DaemonWatch::start(follower.pid()));
        let followed = follower.follow();
        let watched = watch.map(DaemonWatch::stop).unwrap_or_default();
        let (machine, terms) = match followed? {
            FollowOutcome::Leads(machine, terms) => (machine, terms),
            FollowOutcome::Ended(outcome) => {
                // This run has managed nothing itself.
                let policy = outcome.group.as_ref().map(|group| group.policy.clone());
                let policy = policy.unwrap_or_default();
                let unmeasured = "effect not measured: the group's leader managed";
                let mut report = watched.builder.report(RunEnd {
                    policy: policy.clone(),
                    policy_requested: policy,
                    policy_reason: "as the group's leader has it".to_owned(),
                    verdict: { watched.verdict }.unwrap_or_else(|| Verdict::unmeasured(unmeasured)),
                    dry_run: self.args.dry_run,
                    interval: Duration::ZERO,
                    asymmetry: None,
                    own: OwnCost::measure(None),
                    undone: 0,
                    inconclusive: 0,
                    outcome: *outcome,
                });
                // Of the daemon, for all that it manages, while the command ran.
                (report.plans, report.moves) = watched.plans_and_moves;
                return Ok(report);
            }
        };
        let (topology, offers) = (machine.topology(), machine.offers());
        let open = |policy: &str| {
            PolicySetup::for_policy(self.args, self.config, policy, topology, offers)
        };
        // The old leader has opened the policy, so it can be opened again unless a file that it names
        // has disappeared. Then nothing is placed any more.
        let mut setup = open(&terms.policy).or_else(|_| open(NONE))?;
        setup.selection.interval = Duration::from_millis(terms.interval_ms);
        self.manage(setup, *machine)
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
        let mut chosen = setup.selection;
        machine.live_mut().set_watch(chosen.watch(records));
        let mut control_loop = ControlLoop::new(machine, setup.policy, setup.backoff, setup.seed);
        let terms = (setup.seed, self.args.dry_run);
        let meter = self.trial.begin(&mut control_loop, &chosen, terms)?;
        let mut builder = ReportBuilder::default();
        let mut progress = ProgressLine::new(self.line, self.stdout_taken, &chosen.policy);
        while let Some(turn) = control_loop.run_turn()? {
            builder.add(&turn, control_loop.machine().topology());
            meter.read(&mut control_loop);
            // A recording that cannot be continued must not disturb the managed programs.
            if let Some(recorder) = self.recorder.borrow_mut().as_mut()
                && let Err(error) = recorder.add(&turn)
            {
                builder.warn(format!("{error}; what was recorded before can be replayed"));
            }
            let mut timeline = self.timeline.borrow_mut();
            if let Some(Err(error)) = timeline.as_mut().map(|timeline| timeline.add(&turn)) {
                builder.warn(format!("no timeline is written: {error}"));
                *timeline = None;
            }
            drop(timeline);
            progress.show(&turn);
            let mut is_changed = false;
            if let Some(policy) = chosen.choose_again(control_loop.machine())? {
                control_loop.change_policy(policy);
                is_changed = true;
            }
            if let Some(other) = self.settle_terms(&mut control_loop, &chosen) {
                chosen = other;
                is_changed = true;
            }
            if is_changed {
                progress.set_policy(&chosen.policy);
                let live = control_loop.machine_mut().live_mut();
                live.set_watch(chosen.watch(records));
            }
        }
        progress.end();
        match self.recorder.take().map(RecordingWriter::finish) {
            None | Some(Ok(Some(_))) => {}
            Some(Ok(None)) => builder.warn("nothing was recorded".to_owned()),
            Some(Err(error)) => builder.warn(error.to_string()),
        }
        if let Some(Err(error)) = self.timeline.take().map(LiveTimeline::finish) {
            builder.warn(format!("{error:#}"));
        }
        if let Some(warning) = meter.warning() {
            builder.warn(warning);
        }
        let verdict = meter.verdict(&control_loop);
        let (undone, inconclusive) = (
            control_loop.undone_plans(),
            control_loop.inconclusive_plans(),
        );
        let machine = control_loop.into_machine();
        // Before the machine ends, and the guardian with it.
        let own = OwnCost::measure(Some(machine.live().guardian_pid()));
        let emulated = self.args.emulate_asymmetry.is_some();
        let asymmetry =
            AsymmetryReport::from_topology(machine.topology(), machine.offers(), emulated);
        Ok(builder.report(RunEnd {
            policy: chosen.policy,
            policy_requested: chosen.requested,
            policy_reason: chosen.why,
            verdict,
            dry_run: self.args.dry_run,
            interval: chosen.interval,
            asymmetry,
            own,
            undone,
            inconclusive,
            outcome: machine.finish(),
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
        let resolved = self.resolve_terms(control_loop.machine(), chosen, &demands);
        let (settled, setup) = match resolved {
            Ok(resolved) => resolved,
            Err(error) => {
                let why = format!("it cannot run with the requested settings: {error:#}");
                control_loop.machine_mut().settle_terms(Err(why));
                return None;
            }
        };
        let interval = settled.interval;
        control_loop.machine_mut().settle_terms(Ok(settled));
        let mut other = chosen.clone();
        if let Some(setup) = setup {
            other = setup.selection;
            control_loop.change_policy(setup.policy);
        }
        other.interval = interval;
        Some(other)
    }

    /// The terms with the demands, and the policy if it changes.
    fn resolve_terms(
        &self,
        machine: &GroupMachine,
        chosen: &PolicySelection,
        demands: &Demands,
    ) -> Result<(SettledTerms, Option<PolicySetup>)> {
        let known = machine.terms().and_then(|terms| terms.profile.as_deref());
        let profile = demands.profile.as_deref();
        let brought = profile.filter(|path| known != Some(path));
        let recorded = brought.map(RecordedMeasures::read).transpose()?;
        let setup = self.setup_for(machine, chosen, demands, recorded.as_ref())?;
        let usual = setup.as_ref().map(|setup| setup.selection.interval);
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
        let mut setup = PolicySetup::for_policy(&args, self.config, policy, topology, &offers)?;
        "as a later run of the group requested".clone_into(&mut setup.selection.why);
        Ok(Some(setup))
    }
}
