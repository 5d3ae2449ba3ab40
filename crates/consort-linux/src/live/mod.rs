//! The live machine: a launched command as a [`Machine`].
//!
//! [`Host::detect`] finds the means of observing and placing threads on a host;
//! [`LiveMachine::launch`] starts a command under management; the control loop then observes and
//! enacts; and [`LiveMachine::finish`] restores every mask and reports on the run. [`join_group`]
//! starts a command in a group, whose programs one of its runs manages for all ([`crate::group`]).
//! [`GroupMachine::manage_host`] starts nothing: it manages processes and control groups on request.
//!
//! [`LiveMachine`] only brings its parts together. The observers read threads, the actuators change
//! them, the table lists them, the scan finds them, and the lifecycle is that of the command. It holds
//! no socket: a [`CommandSource`] passes it the commands of clients
//! and group members while a quantum passes.
//!
//! Pitfalls: signals are taken for the whole process, so there is one `LiveMachine` per
//! process, and it must be started before other threads are.

mod actuators;
mod attachments;
mod cgroups;
mod clock;
mod command;
mod command_lifecycle;
mod follower;
mod group_machine;
mod group_review;
mod host;
mod launch;
mod live_topology;
mod observe;
mod observers;
mod program_trees;
mod thread_scan;
mod thread_table;
mod urgency;
mod warnings;

pub use crate::sampling::WatchRate;
pub use cgroups::GroupAttachOutcome;
pub use command::{Command, CommandAnswer, CommandSource};
pub use follower::{FollowOutcome, Follower, JoinOutcome, join_group};
pub use group_machine::{GroupMachine, GroupTarget, MembershipSummary, SettledTerms};
pub use host::{Host, HostError};
pub use launch::program_name;
pub use observers::{RecordedMeasures, RecordedMeasuresError};

use crate::discovery::{ProcError, UnmanageableReason};
use crate::enact::{CommandTimes, EnactConfig, EnactError, LaunchError, children_cpu_s};
use crate::enforce::{EnactChoice, EnactorKind, WindowCounts};
use crate::group::{GroupError, Leader};
use crate::pause::PauseKind;
use actuators::{ActuationContext, Actuators};
use attachments::Attachments;
use clock::QuantumClock;
use command_lifecycle::CommandLifecycle;
use consort_core::policy::Wishes;
use consort_core::{
    EnactmentReport, Machine, Observation, Plan, SignalOffers, ThreadId, Tier, Topology,
};
use live_topology::LiveTopology;
use nix::errno::Errno;
use observers::{SamplingTier, ThreadObservers};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use thread_scan::ThreadScan;
use thread_table::ThreadTable;
use warnings::Warnings;

/// The way in which a run manages programs.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// The quantum.
    pub interval: Duration,
    /// Rate at which programs are watched.
    pub watch: WatchRate,
    /// True if plans are made and not carried out.
    pub dry_run: bool,
    /// True if threads are managed although their affinity was set on purpose.
    pub override_affinity: bool,
    /// Enactors that may keep threads in their places.
    pub enactors: EnactChoice,
    /// True if core-scheduling cookies are to keep other threads off the cores of a plan.
    pub cookies: bool,
    /// Mechanisms that may pause programs, best first, usually [`PauseKind::ALL`]. Consort skips the
    /// ones that the host does not have.
    pub pausing: Vec<PauseKind>,
    /// Measures that this host cannot count.
    pub recorded: Option<RecordedMeasures>,
    /// Folders for the journal, and the words that start the guardian.
    pub enact: EnactConfig,
}

/// The way in which a run manages the processes and groups that are attached to it.
#[derive(Clone, Debug)]
pub struct AttachSpec {
    /// The way in which programs are managed.
    pub settings: LiveSettings,
    /// Condition that ends the run.
    pub until: EndCondition,
    /// Policy, as text, of a run that leads the group of daemons; `None` for others.
    pub leads: Option<String>,
}

/// Condition that ends a run without a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndCondition {
    /// SIGINT, SIGTERM or SIGQUIT.
    #[default]
    Requested,
    /// The same signals, or the end of everything that was attached.
    Empty,
}

/// A command with all that it starts, or processes that were attached, on this host.
pub struct LiveMachine {
    site: LiveTopology,
    table: ThreadTable,
    clock: QuantumClock,
    scan: ThreadScan,
    observers: ThreadObservers,
    actuators: Actuators,
    lifecycle: CommandLifecycle,
    attachments: Attachments,
    /// Time of the next look for journals of killed runs.
    next_recovery: Instant,
    warnings: Warnings,
}

/// Samples of instruction addresses over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Number of timer interrupts that took a sample, those dropped later included.
    pub taken: u64,
    /// Number of samples that were looked at.
    pub samples: u64,
    /// Number of these that were decoded to an instruction.
    pub decoded: u64,
    /// Number of records that the kernel dropped because a ring buffer was full.
    pub lost: u64,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct LiveRunOutcome {
    /// The command's exit code; 128 + n when signal n ended it.
    pub exit_code: u8,
    /// Wall-clock time, s: of the command, or of managing without one.
    pub duration_s: f64,
    /// Times of the command; `None` without one.
    pub command: Option<CommandTimes>,
    /// Richest tier that was used.
    pub tier: Tier,
    /// CPU time of the command and its descendants, s; without sampling, only of the processes that
    /// were waited for.
    pub managed_cpu_s: f64,
    /// CPU time that taking samples cost the managed threads, s; estimated.
    pub sampling_s: f64,
    /// CPU time that events cost the managed threads when they were switched and cloned, s;
    /// estimated.
    pub events_s: f64,
    /// CPU time that open events add to one switch of a thread, ns; measured.
    pub switch_ns: u64,
    /// Number of threads that ended before they could be looked at.
    pub short_lived: u64,
    /// Samples over the run.
    pub samples: SampleCounts,
    /// True if every mask is as it was before and nothing is left paused.
    pub restored: bool,
    /// Number of times that programs were paused.
    pub pauses: u64,
    /// Adherence to plans and means of enforcement.
    pub held: AdherenceSummary,
    /// Mean length of the quanta, ms; `None` if the first was not over.
    pub quantum_ms: Option<f64>,
    /// Programs that were managed, each with the pid at its root and its name.
    pub programs: Vec<(u32, String)>,
    /// The group that the run was in, if any.
    pub group: Option<MembershipSummary>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// Adherence of threads to plans over a run, and the means that enforced it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdherenceSummary {
    /// The enactor that was used first; `None` if nothing was to be changed.
    pub enactor: Option<EnactorKind>,
    /// Share of the running time of threads with a place that they spent there, 0 to 1; `None` if no
    /// thread had a place.
    pub adherence: Option<f64>,
    /// Share of the running time of threads with places on one core that they spent there together,
    /// 0 to 1; a lower bound. `None` if there were no such threads.
    pub pair_adherence: Option<f64>,
    /// Nudges that were made, and the times for which they could be seen.
    pub windows: WindowCounts,
    /// Use of core-scheduling cookies; `None` if they were not wanted.
    pub cookies: Option<CookieCounts>,
}

/// Use of core-scheduling cookies over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CookieCounts {
    /// Most cores that had a cookie at a time.
    pub cores: usize,
    /// Number of times that a thread was given a cookie, or had its taken away, until the run
    /// ended.
    pub writes: u64,
}

impl Machine for LiveMachine {
    type Error = LiveError;

    fn topology(&self) -> &Topology {
        self.site.topology()
    }

    fn offers(&self) -> &SignalOffers {
        &self.observers.offers
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        if wishes.idle {
            self.observers.idle.get_or_insert_default();
        }
        if wishes.calls {
            self.warnings.extend(self.observers.counting.count_calls());
        }
        self.observers.counting.count_l1d(wishes.l1d_accesses);
        // States show which threads are active, and which calls have returned.
        let needs_states = wishes.on_activity || wishes.calls;
        self.observers.set_state_reading(needs_states);
    }

    fn observe(&mut self) -> Result<Option<Observation>, LiveError> {
        let mut no_leader: Option<Leader> = None;
        self.observe_with(&mut no_leader)
    }

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, LiveError> {
        self.actuators.accept(plan)?;
        self.clock.next_length = plan.quantum_ns.map(Duration::from_nanos);
        let quantum = self.clock.pace.quantum();
        let (actuators, context) = self.actuators_and_context();
        let mut enacted = actuators.carry_out(plan, quantum, context);
        // Through the warnings, which drop repetitions: what is refused now is mostly refused again in
        // the next quantum.
        self.warnings.extend(std::mem::take(&mut enacted.warnings));
        enacted.warnings = self.warnings.take_new(Instant::now());
        Ok(enacted)
    }
}

impl LiveMachine {
    /// Waits for the end of the quantum, carries out commands meanwhile, and observes; `None` if the
    /// run is over.
    ///
    /// # Errors
    /// If waiting fails, or threads cannot be watched.
    pub fn observe_with(
        &mut self,
        source: &mut impl CommandSource,
    ) -> Result<Option<Observation>, LiveError> {
        if self.lifecycle.is_over() {
            return Ok(None);
        }
        self.wait_for_quantum(source)?;
        self.follow_topology();
        Ok(Some(self.observe_quantum()))
    }

    /// Puts every mask back, resumes paused programs and reports on the run.
    pub fn finish(mut self) -> LiveRunOutcome {
        let command = self.lifecycle.times();
        let managed_s = self.clock.start.elapsed().as_secs_f64();
        // Restoration waits for other threads, which real-time priority would hold up.
        self.lifecycle.urgency.give_up();
        let processes = self.table.processes();
        self.observers.read_times(|| processes, true);
        let (tier, managed_cpu_s) = (self.tier(), self.managed_cpu_s());
        let pauses = self.actuators.pausing.count;
        let (held, restored) = self.actuators.restore_all(&mut self.warnings);
        self.warnings.extend(self.clock.pace.lateness());
        let sampling = self.observers.sampling.as_ref();
        LiveRunOutcome {
            exit_code: self.lifecycle.exit_code(),
            duration_s: command.map_or(managed_s, |times| times.wall_s),
            command,
            tier,
            managed_cpu_s,
            sampling_s: sampling.map_or(0.0, SamplingTier::cost_s),
            events_s: self.observers.events_s(),
            switch_ns: self.observers.switch_cost_ns(),
            short_lived: self.scan.short_lived(),
            samples: sampling.map_or_else(SampleCounts::default, |sampling| sampling.counts),
            restored,
            pauses,
            held,
            quantum_ms: self.clock.pace.mean_ms(),
            group: None,
            programs: self.table.trees.names(),
            warnings: self.warnings.into_vec(),
        }
    }

    /// Watches programs at this rate from now on.
    pub fn set_watch(&mut self, watch: WatchRate) {
        self.scan.set_watch(watch);
        if let Some(sampler) = self.observers.sampler_mut() {
            sampler.set_watch(watch);
        }
    }

    /// The richest tier that is in use.
    pub fn tier(&self) -> Tier {
        self.observers.tier()
    }

    fn managed_cpu_s(&self) -> f64 {
        let children_s = children_cpu_s();
        let own_s = match self.lifecycle.command() {
            Some(_) => children_s,
            None => 0.0,
        };
        let read_ns = self.observers.times.total_ns((children_s * 1e9) as u64);
        // The command may have ended before its times were read for the first time.
        own_s.max(read_ns as f64 / 1e9)
    }

    /// Threads of managed programs that are left alone, with the reasons.
    pub fn unmanaged_threads(&self) -> impl Iterator<Item = (ThreadId, Arc<str>)> {
        self.table.reasons()
    }

    /// Process id of the guardian.
    pub fn guardian_pid(&self) -> u32 {
        self.actuators.enactor.guardian_pid()
    }

    /// Follows changes of the topology, when it is time to: CPUs come and go and cpusets change.
    fn follow_topology(&mut self) {
        let now = Instant::now();
        if !self.site.take_due(now) {
            return;
        }
        if let Some(threads) = self.table.take_recheck(now) {
            self.actuators.recheck(&threads, &mut self.table);
            self.release_excluded(&threads);
        }
        let changes = self.site.follow_changes(self.table.usable_pus());
        if !changes.is_empty()
            && let Some(sampler) = self.observers.sampler_mut()
        {
            sampler.follow_pus(self.site.topology().pus());
        }
        self.warnings.extend(changes);
    }

    /// The actuators, and the parts that they read while they place threads.
    fn actuators_and_context(&mut self) -> (&mut Actuators, ActuationContext<'_>) {
        let context = ActuationContext {
            site: &self.site,
            table: &mut self.table,
            observers: &mut self.observers,
            warnings: &mut self.warnings,
        };
        (&mut self.actuators, context)
    }
}

/// Reason for which a command could not be managed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// The command could not be started; nothing was changed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Journal or guardian could not be set up; nothing was started.
    #[error(transparent)]
    Enact(#[from] EnactError),
    /// The group could not be entered; nothing was started.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// `/proc` cannot be read.
    #[error("threads cannot be watched: {0}")]
    Proc(#[from] ProcError),
    /// Waiting for signals and samples failed.
    #[error("waiting for signals and samples failed: {0}")]
    Wait(Errno),
    /// A plan is older than one that was carried out.
    #[error("plan {generation} is not newer than plan {last}")]
    StalePlan {
        /// The plan's generation.
        generation: u64,
        /// Generation of the last plan that was carried out.
        last: u64,
    },
}

/// Reason for which a process cannot be attached.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AttachError {
    /// There is no process of this number.
    #[error("there is no process {0}")]
    Gone(u32),
    /// The process cannot be looked at, though it may be there.
    #[error("process {0} cannot be read: {1}")]
    Unreadable(u32, ProcError),
    /// The process is Consort, or its guardian.
    #[error("cannot attach process {0}: it is consort itself")]
    Own(u32),
    /// The process is the ancestor of all others.
    #[error(
        "cannot attach process 1 (init): every process descends from it; name control groups with \
         --cgroup instead"
    )]
    Everything,
    /// The process must be left alone.
    #[error("process {0} cannot be managed: {1}")]
    Unmanageable(u32, UnmanageableReason),
    /// The process belongs to another user than the client.
    #[error(
        "process {pid} belongs to user {owner}; user {asker} may name only processes of its own"
    )]
    NotYours {
        /// The process.
        pid: u32,
        /// User that the process acts for, or can become.
        owner: u32,
        /// User id of the client.
        asker: u32,
    },
    /// The process is managed already.
    #[error("process {0} is managed already")]
    Managed(u32),
}

impl AttachError {
    /// The error for a process that could not be read.
    pub(super) fn from_proc_error(pid: u32, error: ProcError) -> Self {
        match error {
            ProcError::Gone => Self::Gone(pid),
            error => Self::Unreadable(pid, error),
        }
    }
}
