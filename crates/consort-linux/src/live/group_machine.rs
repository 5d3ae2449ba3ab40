//! A live machine and the group that it leads: the terms, and the programs of the members.

use super::attachments::Attachments;
use super::launch::{RunResources, recover_earlier_runs};
use super::{AttachError, Host, LiveError, LiveMachine, LiveRunOutcome, RecordedMeasures};
use super::{AttachSpec, LiveSettings};
use crate::enact::{Enactor, SignalReader};
use crate::group::{
    Demands, GroupError, GroupName, GroupPlace, GroupTerms, JoiningCommand, Leader, OpenTerms,
    enter_group,
};
use crate::proc::read_stat;
use consort_core::policy::Wishes;
use consort_core::{EnactmentReport, Machine, Observation, Plan, SignalOffers, ThreadId, Topology};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The group that a command is to join.
#[derive(Clone, Debug)]
pub struct GroupTarget {
    /// Name of the group.
    pub name: GroupName,
    /// Terms that the user demands; a leader whose user demanded others refuses.
    pub demands: Demands,
    /// Policy, as text, that holds if this run leads and no member demands another.
    pub policy: String,
}

/// Summary of a run's part in its group, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipSummary {
    /// Name of the group.
    pub name: String,
    /// True if this run led the group in the end.
    pub led: bool,
    /// Pid of the last leader.
    pub leader: u32,
    /// Policy of the group with options, as text.
    pub policy: String,
    /// Most programs at a time, as far as this run can count them: a member counts itself and its
    /// leader.
    pub most_programs: usize,
}

/// Terms that hold for a group from now on.
#[derive(Clone, Debug)]
pub struct SettledTerms {
    /// Policy with options, as text.
    pub policy: String,
    /// Length of the quantum.
    pub interval: Duration,
    /// Measures that this host cannot count, if the member brings any.
    pub recorded: Option<RecordedMeasures>,
}

/// A live machine, with the group that it leads if it leads one. Members' messages are served while
/// a quantum passes.
pub struct GroupMachine {
    live: LiveMachine,
    // Dropped after the machine, so that another run leads only after every mask is restored.
    leader: Option<Leader>,
}

/// Leads the group of daemons, so that `consort run` can hand its commands over.
fn lead_daemon_group(
    enactor: &Enactor,
    spec: &AttachSpec,
    policy: &str,
) -> Result<Leader, GroupError> {
    let name = GroupName::for_daemon();
    let demands = Demands::default();
    let settings = &spec.settings;
    let candidate = match enter_group(&settings.enact.runtime_dirs, &name, &demands)? {
        GroupPlace::Leads(candidate) => candidate,
        GroupPlace::Follows(member) => {
            let why = format!("process {} leads it", member.terms().leader);
            let group = name.to_string();
            return Err(GroupError::Refused { group, why });
        }
    };
    candidate.lead(GroupTerms {
        leader: std::process::id(),
        run: enactor.run_id().to_owned(),
        policy: policy.to_owned(),
        interval_ms: whole_millis(settings.interval),
        dry_run: settings.dry_run,
        profile: None,
        open: OpenTerms::default(),
    })
}

impl GroupMachine {
    /// Manages this host without starting anything.
    ///
    /// # Errors
    /// If journal or guardian could not be set up, the daemons' group has another leader, or
    /// threads cannot be watched.
    pub fn manage_host(host: Host, spec: AttachSpec) -> Result<Self, LiveError> {
        let warnings = recover_earlier_runs(&spec.settings.enact);
        let signals = SignalReader::block_and_open().map_err(LiveError::Wait)?;
        let enactor = Enactor::start(&spec.settings.enact)?;
        let led = { spec.leads.as_ref() }.map(|policy| lead_daemon_group(&enactor, &spec, policy));
        let leader = match led.transpose() {
            Ok(leader) => leader,
            Err(error) => {
                enactor.close();
                return Err(error.into());
            }
        };
        let running = RunResources {
            child: None,
            name: String::new(),
            signals,
            enactor,
            start: Instant::now(),
            warnings,
        };
        let mut live = LiveMachine::take_over(host, spec.settings, running)?;
        live.attachments = Attachments::new(spec.until);
        Ok(Self::new(live, leader))
    }
}

impl Machine for GroupMachine {
    type Error = LiveError;

    fn topology(&self) -> &Topology {
        self.live.topology()
    }

    fn offers(&self) -> &SignalOffers {
        self.live.offers()
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        self.live.grant_wishes(wishes);
    }

    fn observe(&mut self) -> Result<Option<Observation>, LiveError> {
        self.live.observe_with(&mut self.leader)
    }

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, LiveError> {
        self.live.enact(plan)
    }
}

impl GroupMachine {
    /// A machine that leads this group, or none.
    pub fn new(live: LiveMachine, leader: Option<Leader>) -> Self {
        Self { live, leader }
    }

    /// The machine without its group.
    pub fn live(&self) -> &LiveMachine {
        &self.live
    }

    /// The machine without its group, to change it.
    pub fn live_mut(&mut self) -> &mut LiveMachine {
        &mut self.live
    }

    /// The machine and the group that it leads.
    pub fn into_parts(self) -> (LiveMachine, Option<Leader>) {
        (self.live, self.leader)
    }

    /// Puts every mask back, resumes paused programs, lets another run lead, and reports on the run.
    pub fn finish(self) -> LiveRunOutcome {
        let outcome = self.live.finish();
        let group = self.leader.as_ref().map(|leader| MembershipSummary {
            name: leader.group().to_string(),
            led: true,
            leader: std::process::id(),
            policy: leader.terms().policy.clone(),
            most_programs: leader.most_programs(),
        });
        LiveRunOutcome { group, ..outcome }
    }

    /// Demands of a member that concern open terms. The control loop and its policy are the
    /// caller's, so it looks for a proposal after each turn, opens the policy and reports the
    /// outcome by [`GroupMachine::settle_terms`]. Until then the member waits, with nothing started.
    pub fn proposal(&self) -> Option<&Demands> {
        self.leader.as_ref().and_then(Leader::proposal)
    }

    /// The terms of the group that this run leads, if any.
    pub fn terms(&self) -> Option<&GroupTerms> {
        self.leader.as_ref().map(Leader::terms)
    }

    /// Signals that would be offered with these measures.
    ///
    /// # Errors
    /// If a program of the group is not among them.
    pub fn offers_with(&self, recorded: &RecordedMeasures) -> Result<SignalOffers, String> {
        for (_, name) in self.live.table.trees.names() {
            recorded.check(&name).map_err(|error| error.to_string())?;
        }
        let mut offers = self.live.observers.offers.clone();
        recorded.offer(&mut offers);
        Ok(offers)
    }

    /// Answers the [proposal](GroupMachine::proposal): with terms that hold from now on, or the
    /// reason against.
    pub fn settle_terms(&mut self, settled: Result<SettledTerms, String>) {
        let terms = settled.and_then(|settled| {
            let terms = self
                .new_terms(&settled)
                .ok_or("no member has demanded terms")?;
            self.live.clock.pace.requested = settled.interval;
            if let Some(recorded) = settled.recorded {
                let notice = self.live.observers.use_recording(recorded);
                self.live.warnings.insert(notice);
            }
            Ok(terms)
        });
        if let Some(leader) = &mut self.leader {
            leader.settle_terms(terms, Instant::now());
        }
    }

    /// The present terms, changed as the proposal settles them.
    fn new_terms(&self, settled: &SettledTerms) -> Option<GroupTerms> {
        let demands = self.proposal()?;
        let terms = self.terms()?;
        let profile = settled.recorded.as_ref().map(|r| r.origin().to_owned());
        let names_policy = demands.policy.is_some() || profile.is_some();
        Some(GroupTerms {
            policy: settled.policy.clone(),
            interval_ms: whole_millis(settled.interval),
            profile: profile.or_else(|| terms.profile.clone()),
            open: OpenTerms {
                policy: terms.open.policy && !names_policy,
                interval: terms.open.interval && demands.interval_ms.is_none(),
            },
            ..terms.clone()
        })
    }
}

/// The terms on which a run begins to lead.
pub(super) fn leader_terms(
    enactor: &Enactor,
    settings: &LiveSettings,
    group: &GroupTarget,
) -> GroupTerms {
    GroupTerms {
        leader: std::process::id(),
        run: enactor.run_id().to_owned(),
        policy: group.policy.clone(),
        interval_ms: whole_millis(settings.interval),
        dry_run: settings.dry_run,
        profile: settings.recorded.as_ref().map(|r| r.origin().to_owned()),
        open: OpenTerms {
            policy: group.demands.policy.is_none(),
            interval: group.demands.interval_ms.is_none(),
        },
    }
}

pub(super) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl LiveMachine {
    /// Manages a program that a member hands over, or returns the reason against it. A member may
    /// hand over only a program that it has started itself.
    pub(super) fn manage_member_program(
        &mut self,
        member: u32,
        program: JoiningCommand,
    ) -> Result<(), String> {
        let JoiningCommand {
            pid,
            start_ticks,
            name,
        } = program;
        let stat = read_stat(self.site.root(), pid, pid);
        let stat = stat.map_err(|error| AttachError::from_proc_error(pid, error).to_string())?;
        // The pid may belong to another process by now.
        if stat.start_ticks != start_ticks {
            return Err(format!(
                "process {pid} is not the command: it started at another time; start the command again"
            ));
        }
        // A peer may name only processes that it has started itself.
        if stat.parent_pid != member {
            return Err(format!(
                "process {pid} was not started by the member that hands it over, process {member}"
            ));
        }
        self.observers.check_recorded(&name)?;
        self.table.trees.insert_program(pid, name);
        self.scan.watch(pid);
        let (root, pus) = (self.site.root(), self.site.online_pus());
        if let Some(sampler) = self.observers.sampler_mut()
            && let Err(error) = sampler.join_tree(root, pid, pus)
        {
            let text = format!("program {pid} is not sampled: {error}");
            self.warnings.insert(text);
        }
        Ok(())
    }

    /// Restores the masks of a program and stops managing it: its command has ended, or its Consort
    /// was killed.
    pub(super) fn release_program(&mut self, root: u32) {
        self.table.trees.mark_unmanaged(root);
        // Collected first, because the release forgets which program a thread belonged to.
        self.scan.tracker.unwatch(root);
        let its: BTreeSet<ThreadId> = { self.table.ids() }
            .filter(|id| self.table.trees.root_of(id.pid) == Some(root))
            .collect();
        self.release_threads(|id| its.contains(id));
        let warnings = self.actuators.forget_ended(&self.table);
        self.warnings.extend(warnings);
    }
}
