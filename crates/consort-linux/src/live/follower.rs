//! A member of a group: it started its command, and another run manages it.
//!
//! When the leader is gone, the members elect the next. Before it touches anything, the old leader's
//! guardian must be done: until then a mask that Consort narrowed may be in force, and would be
//! taken for an original.

use super::LiveSettings;
use super::group_machine::{GroupMachine, GroupTarget, MembershipSummary, leader_terms};
use super::launch::{RESTORE_LIMIT, RunResources, program_name};
use super::warnings::Warnings;
use super::{
    AdherenceSummary, Host, LiveError, LiveMachine, LiveRunOutcome, RecordedMeasures, SampleCounts,
};
use crate::enact::{
    ChildEvent, Enactor, LaunchedProgram, SignalAction, SignalReader, children_cpu_s,
    choose_action, exit_code, identify, launch, recover_stale, wait_for_guardians,
};
use crate::group::{
    GroupError, GroupMember, GroupPlace, GroupTerms, JoiningCommand, LeaderCandidate, LeaderNews,
    enter_group, try_enter_group,
};
use consort_core::Tier;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time between two attempts to find, or to become, the next leader.
const SEEK_EVERY: Duration = Duration::from_millis(10);
/// Time between two looks for a new daemon.
const SEEK_DAEMON_EVERY: Duration = Duration::from_secs(1);

/// Position in which a command was started.
pub enum JoinOutcome {
    /// This run manages the whole group.
    Leads(Box<GroupMachine>),
    /// Another run manages the group.
    Follows(Box<Follower>),
}

/// Starts a command in a group. It is held before its first instruction until the leader
/// watches it.
///
/// # Errors
/// As for [`LiveMachine::launch`]; and if the group cannot be entered, or its leader refuses:
/// then nothing was started.
pub fn join_group(
    host: Host,
    mut command: Command,
    settings: LiveSettings,
    group: GroupTarget,
) -> Result<JoinOutcome, LiveError> {
    let pus = host.discovery.topology.pus().len();
    command.envs(team_sizes(pus, |name| std::env::var_os(name).is_some()));
    let dirs = &settings.enact.runtime_dirs;
    let place = match enter_group(dirs, &group.name, &group.demands) {
        // Without a folder there is no group, and no journal either.
        Err(GroupError::Dir(_) | GroupError::File { .. }) => {
            let live = LiveMachine::launch(host, command, settings)?;
            let machine = GroupMachine::new(live, None);
            return Ok(JoinOutcome::Leads(Box::new(machine)));
        }
        place => place?,
    };
    match place {
        GroupPlace::Leads(candidate) => {
            // An old leader's members may be about to hand their commands over. Before this run
            // looks at any mask: one that is still to be restored would count as an original one.
            wait_for_guardians(dirs, RESTORE_LIMIT);
            let lead = |enactor: &Enactor| {
                let terms = leader_terms(enactor, &settings, &group);
                Ok(Some(candidate.lead(terms)?))
            };
            let (live, leader) = LiveMachine::start_command(host, command, settings.clone(), lead)?;
            let machine = GroupMachine::new(live, leader);
            Ok(JoinOutcome::Leads(Box::new(machine)))
        }
        GroupPlace::Follows(member) => {
            let follower = Follower::start_command(host, command, settings, group, member)?;
            Ok(JoinOutcome::Follows(Box::new(follower)))
        }
    }
}

/// A command that another run manages.
pub struct Follower {
    host: Host,
    settings: LiveSettings,
    group: GroupTarget,
    command: String,
    child: LaunchedProgram,
    signals: SignalReader,
    standing: FollowerState,
    /// The terms that held last.
    terms: GroupTerms,
    start: Instant,
    warnings: Warnings,
}

/// Outcome of following.
pub enum FollowOutcome {
    /// The command has ended.
    Ended(Box<LiveRunOutcome>),
    /// This run leads the group now, with the policy of these terms.
    Leads(Box<GroupMachine>, GroupTerms),
}

enum FollowerState {
    Follows(GroupMember),
    /// The leader is gone.
    Seeks,
    /// This run will lead when the old leader has put everything back, or at the latest at that
    /// time.
    Elected(LeaderCandidate, Instant),
    /// The group could not be entered again: the command runs on unmanaged.
    Alone,
}

impl Follower {
    pub(super) fn start_command(
        host: Host,
        command: Command,
        settings: LiveSettings,
        group: GroupTarget,
        mut member: GroupMember,
    ) -> Result<Self, LiveError> {
        let signals = SignalReader::block_and_open().map_err(LiveError::Wait)?;
        let run = member.terms().run.clone();
        let name = program_name(&command);
        // The leader must watch the command before its first instruction, so it is handed over
        // while it is held.
        let mut handed = Ok(true);
        let child = launch(command, &run, |pid| {
            handed = hand_over(&host.root, &mut member, pid, &name);
            if handed.is_err() {
                // The command is held before its first instruction, and is not to run at all.
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid.cast_signed()),
                    Signal::SIGKILL,
                );
            }
        })?;
        if let Err(error) = handed {
            child.next_event(true).map_err(LiveError::Wait)?;
            return Err(error.into());
        }
        let mut follower = Self {
            host,
            settings,
            group,
            command: name,
            child,
            signals,
            terms: member.terms().clone(),
            standing: FollowerState::Follows(member),
            start: Instant::now(),
            warnings: Warnings::default(),
        };
        follower.adopt_terms();
        Ok(follower)
    }

    /// Takes the group's terms over as the user's own where those were open, for the case that this run
    /// leads or joins again.
    fn adopt_terms(&mut self) {
        self.settings.interval = Duration::from_millis(self.terms.interval_ms);
        self.group.demands = self.terms.demands();
        self.group.policy.clone_from(&self.terms.policy);
    }

    /// The terms that hold.
    pub fn terms(&self) -> &GroupTerms {
        &self.terms
    }

    /// The process of the command.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// True if the group's leader is a daemon.
    pub fn follows_daemon(&self) -> bool {
        self.group.name.is_daemon()
    }

    /// Waits until the command has ended, or this run is to lead.
    ///
    /// # Errors
    /// When waiting fails, or threads cannot be watched.
    pub fn follow(mut self) -> Result<FollowOutcome, LiveError> {
        loop {
            self.standing = match std::mem::replace(&mut self.standing, FollowerState::Alone) {
                FollowerState::Follows(member) => self.handle_news(member),
                FollowerState::Seeks => self.seek(),
                FollowerState::Elected(candidate, end) => {
                    // The old leader's guardian restores its masks. If the guardian is dead as well,
                    // this call restores them.
                    let is_restored =
                        recover_stale(&self.settings.enact.runtime_dirs).restoring == 0;
                    if is_restored || Instant::now() > end {
                        return self.lead(candidate);
                    }
                    FollowerState::Elected(candidate, end)
                }
                FollowerState::Alone => FollowerState::Alone,
            };
            self.wait()?;
            if let Some(exit_code) = self.relay_signals()? {
                return Ok(FollowOutcome::Ended(Box::new(self.into_outcome(exit_code))));
            }
        }
    }

    fn handle_news(&mut self, mut member: GroupMember) -> FollowerState {
        match member.poll_news() {
            LeaderNews::Gone => return FollowerState::Seeks,
            LeaderNews::Nothing => {}
            LeaderNews::Terms => {
                self.terms = member.terms().clone();
                self.adopt_terms();
            }
        }
        FollowerState::Follows(member)
    }

    fn wait(&self) -> Result<(), LiveError> {
        let member = match &self.standing {
            FollowerState::Follows(member) => Some(member),
            _ => None,
        };
        let time = match self.standing {
            FollowerState::Seeks if self.group.name.is_daemon() => {
                Some(TimeSpec::from_duration(SEEK_DAEMON_EVERY))
            }
            FollowerState::Seeks | FollowerState::Elected(..) => {
                Some(TimeSpec::from_duration(SEEK_EVERY))
            }
            FollowerState::Follows(_) | FollowerState::Alone => None,
        };
        let fds = [Some(self.signals.as_fd()), member.map(AsFd::as_fd)];
        let poll = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = fds.into_iter().flatten().map(poll).collect();
        match ppoll(&mut fds, time, None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(LiveError::Wait(errno)),
        }
    }

    /// Passes signals on; returns the exit code when the command has ended.
    fn relay_signals(&mut self) -> Result<Option<u8>, LiveError> {
        while let Some(event) = self.signals.next().map_err(LiveError::Wait)? {
            match choose_action(event, self.child.pid()) {
                SignalAction::AskChild => {
                    if let Some(exit_code) = self.take_child_events()? {
                        return Ok(Some(exit_code));
                    }
                }
                SignalAction::Forward(signal) => self.forward(signal),
                // The terminal has sent it to the command as well.
                SignalAction::Nothing => self.wake(),
            }
        }
        Ok(None)
    }

    fn forward(&mut self, signal: Signal) {
        if let Err(errno) = self.child.signal(signal) {
            let text = format!("{signal} could not be passed on to the command: {errno}");
            self.warnings.insert(text);
        }
        self.wake();
    }

    /// Has the leader resume the command, because a paused one receives no signals.
    fn wake(&mut self) {
        if let FollowerState::Follows(member) = &mut self.standing {
            member.wake();
        }
    }

    fn take_child_events(&mut self) -> Result<Option<u8>, LiveError> {
        while let Some(event) = self.child.next_event(false).map_err(LiveError::Wait)? {
            if let Some(exit_code) = exit_code(event) {
                return Ok(Some(exit_code));
            }
            match event {
                // A leader may pause it by this signal.
                ChildEvent::Stopped(Signal::SIGSTOP) => {}
                ChildEvent::Stopped(signal) => {
                    self.signals
                        .stop_by_signal(signal)
                        .map_err(LiveError::Wait)?;
                    self.forward(Signal::SIGCONT);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Attempts once to find or become the next leader.
    fn seek(&mut self) -> FollowerState {
        let dirs = &self.settings.enact.runtime_dirs;
        let found = try_enter_group(dirs, &self.group.name, &self.group.demands);
        let taken = found.and_then(|place| match place {
            Some(GroupPlace::Follows(mut member)) => {
                let (root, pid) = (&self.host.root, self.child.pid());
                let there = hand_over(root, &mut member, pid, &self.command)?;
                self.terms = member.terms().clone();
                self.adopt_terms();
                Ok(if there {
                    FollowerState::Follows(member)
                } else {
                    FollowerState::Seeks
                })
            }
            // Members of the daemon's group do not lead it; the command runs unmanaged until another
            // daemon is started.
            Some(GroupPlace::Leads(_)) if self.group.name.is_daemon() => Ok(FollowerState::Seeks),
            // Not at once: the old leader's masks are to be restored first.
            Some(GroupPlace::Leads(candidate)) => Ok(FollowerState::Elected(
                candidate,
                Instant::now() + RESTORE_LIMIT,
            )),
            None => Ok(FollowerState::Seeks),
        });
        taken.unwrap_or_else(|error| self.continue_alone(&error))
    }

    fn continue_alone(&mut self, error: &dyn std::error::Error) -> FollowerState {
        let text =
            format!("the command went on unmanaged when its group's leader was gone: {error}");
        self.warnings.insert(text);
        FollowerState::Alone
    }

    fn lead(mut self, candidate: LeaderCandidate) -> Result<FollowOutcome, LiveError> {
        // The group's recording, which a leader before this one has read, too.
        self.settings.recorded = None;
        if let Some(profile) = &self.terms.profile {
            match RecordedMeasures::read(profile) {
                Ok(recorded) => self.settings.recorded = Some(recorded),
                Err(error) => self.warnings.insert(error.to_string()),
            }
        }
        let led = Enactor::start(&self.settings.enact).map_err(LiveError::from);
        let led = led.and_then(|enactor| {
            let terms = leader_terms(&enactor, &self.settings, &self.group);
            match candidate.lead(terms.clone()) {
                Ok(leader) => Ok((enactor, leader, terms)),
                Err(error) => {
                    enactor.close();
                    Err(error.into())
                }
            }
        });
        let (enactor, leader, terms) = match led {
            Ok(led) => led,
            Err(error) => {
                self.standing = self.continue_alone(&error);
                return self.follow();
            }
        };
        let running = RunResources {
            child: Some(self.child),
            name: self.command,
            signals: self.signals,
            enactor,
            start: self.start,
            warnings: self.warnings,
        };
        let live = LiveMachine::take_over(self.host, self.settings, running)?;
        let machine = GroupMachine::new(live, Some(leader));
        Ok(FollowOutcome::Leads(Box::new(machine), terms))
    }

    fn into_outcome(self, exit_code: u8) -> LiveRunOutcome {
        let command = self.child.times();
        let followed_s = self.start.elapsed().as_secs_f64();
        LiveRunOutcome {
            exit_code,
            duration_s: command.map_or(followed_s, |times| times.wall_s),
            command,
            tier: Tier::Proc,
            managed_cpu_s: children_cpu_s(),
            sampling_s: 0.0,
            events_s: 0.0,
            switch_ns: 0,
            short_lived: 0,
            samples: SampleCounts::default(),
            restored: true,
            pauses: 0,
            held: AdherenceSummary::default(),
            quantum_ms: None,
            group: Some(MembershipSummary {
                name: self.group.name.to_string(),
                led: false,
                leader: self.terms.leader,
                policy: self.terms.policy,
                most_programs: 2,
            }),
            programs: Vec::new(),
            warnings: self.warnings.into_vec(),
        }
    }
}

/// Hands a process over, held or running; returns false when the leader is gone.
fn hand_over(
    root: &Path,
    member: &mut GroupMember,
    pid: u32,
    name: &str,
) -> Result<bool, GroupError> {
    // The leader checks again, and refuses a process that is gone already.
    let start_ticks = identify(root, pid, pid).map_or(0, |id| id.start_ticks);
    let name = name.to_owned();
    member.hand_over(JoiningCommand {
        pid,
        start_ticks,
        name,
    })
}

/// Variables that set the number of threads of malleable programs.
///
/// | variable | programs | source |
/// |---|---|---|
/// | `OMP_NUM_THREADS` | OpenMP; OpenBLAS and oneMKL if their own variables are not set | OpenMP API 5.2, section 21.1.2; OpenBLAS README, "Setting the number of threads using environment variables"; oneMKL Developer Guide, "Setting the Number of Threads Using an OpenMP* Environment Variable" |
/// | `GOMAXPROCS` | Go programs | documentation of Go's package runtime, "Environment Variables" |
/// | `RAYON_NUM_THREADS` | Rust programs that use rayon | documentation of rayon's `ThreadPoolBuilder::num_threads` |
///
/// oneTBB reads no such variable; it counts the CPUs of the affinity mask when it starts.
const VARIABLES: [&str; 3] = ["OMP_NUM_THREADS", "GOMAXPROCS", "RAYON_NUM_THREADS"];

/// The variables that the user has not set, with the number of usable CPUs, which a gang gives to
/// each program. A smaller team would leave cores idle; the threads of a larger one would only take
/// turns.
fn team_sizes(pus: usize, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let free = VARIABLES.into_iter().filter(|name| !is_set(name));
    free.map(|name| (name, pus.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_user_stay() {
        let set = team_sizes(8, |name| name == "GOMAXPROCS");
        let eight = "8".to_owned();
        assert_eq!(
            set,
            [
                ("OMP_NUM_THREADS", eight.clone()),
                ("RAYON_NUM_THREADS", eight)
            ]
        );
    }
}
