//! A member of a group: it started its command, and another run manages it.
//!
//! When the leader goes, whoever gets the lock leads next. Before it touches anything, the old
//! leader's journal must be gone: until then masks may yet be put back by its guardian, and would
//! be taken for originals.

use super::join::{GroupSpec, GroupSummary, terms};
use super::launch::{LiveError, Running, Settings, program_name};
use super::recorded::Recorded;
use super::relay::children_cpu_s;
use super::{Finished, Host, Live, SampleCounts};
use crate::enact::{
    ChildEvent, Enactor, Launched, Relay, Signals, exit_code, identify, launch, recover_stale,
    relay,
};
use crate::group::{Candidate, Demands, GroupError, Joining, Member, Place, Terms, try_enter};
use consort_core::Tier;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::Signal;
use nix::sys::time::TimeSpec;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Between two attempts to find, or to become, the next leader.
const SEEK_EVERY: Duration = Duration::from_millis(10);
/// How long an old leader's journal is waited for.
const RESTORE_LIMIT: Duration = Duration::from_secs(20);

/// A command that another run manages.
pub struct Follower {
    host: Host,
    settings: Settings,
    group: GroupSpec,
    command: String,
    child: Launched,
    signals: Signals,
    standing: Standing,
    /// The terms that held last.
    terms: Terms,
    start: Instant,
    warnings: BTreeSet<String>,
}

/// How a follower's time ended.
pub enum Followed {
    /// Its command has ended.
    Ended(Box<Finished>),
    /// It leads the group now, with the policy of these terms.
    Leads(Box<Live>, Terms),
}

/// Where a follower stands.
enum Standing {
    Follows(Member),
    /// The leader is gone.
    Seeks,
    /// It will lead when the old leader has put everything back, or at the latest then.
    Elected(Candidate, Instant),
    /// The group could not be entered again: the command runs on unmanaged.
    Alone,
}

impl Follower {
    /// Starts a command as a member.
    pub(super) fn begin(
        host: Host,
        command: Command,
        settings: Settings,
        group: GroupSpec,
        mut member: Member,
    ) -> Result<Self, LiveError> {
        let signals = Signals::take().map_err(LiveError::Wait)?;
        let terms = member.terms().clone();
        let name = program_name(&command);
        let mut handed = Ok(true);
        let child = launch(command, &terms.run, |pid| {
            handed = hand_over(&host.root, &mut member, pid, &name);
            if handed.is_err() {
                // It is held before its first instruction, and is not to run at all.
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
        let standing = Standing::Follows(member);
        let interval = Duration::from_millis(terms.interval_ms);
        Ok(Self {
            host,
            settings: Settings {
                interval,
                ..settings
            },
            group: with_terms(group, &terms),
            command: name,
            child,
            signals,
            standing,
            terms,
            start: Instant::now(),
            warnings: BTreeSet::new(),
        })
    }

    /// The terms that hold.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Waits until the command has ended, or this run is to lead.
    ///
    /// # Errors
    /// When waiting fails, or threads cannot be watched.
    pub fn follow(mut self) -> Result<Followed, LiveError> {
        loop {
            self.wait()?;
            if let Some(exit_code) = self.take_signals()? {
                return Ok(Followed::Ended(Box::new(self.finished(exit_code))));
            }
            self.standing = match std::mem::replace(&mut self.standing, Standing::Alone) {
                Standing::Follows(member) if member.is_abandoned() => Standing::Seeks,
                Standing::Seeks => self.seek(),
                Standing::Elected(candidate, end) => {
                    if self.is_restored() || Instant::now() > end {
                        return self.lead(candidate);
                    }
                    Standing::Elected(candidate, end)
                }
                same => same,
            };
        }
    }

    fn wait(&self) -> Result<(), LiveError> {
        let member = match &self.standing {
            Standing::Follows(member) => Some(member),
            _ => None,
        };
        let time = match self.standing {
            Standing::Seeks | Standing::Elected(..) => Some(TimeSpec::from_duration(SEEK_EVERY)),
            Standing::Follows(_) | Standing::Alone => None,
        };
        let fds = [Some(self.signals.as_fd()), member.map(AsFd::as_fd)];
        let poll = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = fds.into_iter().flatten().map(poll).collect();
        match ppoll(&mut fds, time, None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(LiveError::Wait(errno)),
        }
    }

    /// Passes signals on; the exit code when the command has ended.
    fn take_signals(&mut self) -> Result<Option<u8>, LiveError> {
        while let Some(event) = self.signals.next().map_err(LiveError::Wait)? {
            match relay(event, self.child.pid()) {
                Relay::AskChild => {
                    if let Some(exit_code) = self.take_child_events()? {
                        return Ok(Some(exit_code));
                    }
                }
                Relay::Forward(signal) => self.forward(signal),
                // The terminal has sent it to the command as well.
                Relay::Nothing => self.wake(),
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

    /// A paused command receives no signals: the leader lets it run.
    fn wake(&mut self) {
        if let Standing::Follows(member) = &mut self.standing {
            member.wake();
        }
    }

    fn take_child_events(&mut self) -> Result<Option<u8>, LiveError> {
        while let Some(event) = self.child.next_event(false).map_err(LiveError::Wait)? {
            if let Some(exit_code) = exit_code(event) {
                return Ok(Some(exit_code));
            }
            match event {
                // That is how a leader may pause it.
                ChildEvent::Stopped(Signal::SIGSTOP) => {}
                ChildEvent::Stopped(signal) => {
                    self.signals.stop_like(signal).map_err(LiveError::Wait)?;
                    self.forward(Signal::SIGCONT);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// One attempt to find or become the next leader.
    fn seek(&mut self) -> Standing {
        let dirs = &self.settings.enact.runtime_dirs;
        let found = try_enter(dirs, &self.group.name, &self.group.demands);
        let taken = found.and_then(|place| match place {
            Some(Place::Follows(mut member)) => {
                let (root, pid) = (&self.host.root, self.child.pid());
                let there = hand_over(root, &mut member, pid, &self.command)?;
                self.terms = member.terms().clone();
                Ok(if there {
                    Standing::Follows(member)
                } else {
                    Standing::Seeks
                })
            }
            Some(Place::Leads(candidate)) => {
                Ok(Standing::Elected(candidate, Instant::now() + RESTORE_LIMIT))
            }
            None => Ok(Standing::Seeks),
        });
        taken.unwrap_or_else(|error| self.on_its_own(&error))
    }

    fn on_its_own(&mut self, error: &dyn std::error::Error) -> Standing {
        let text =
            format!("the command went on unmanaged when its group's leader was gone: {error}");
        self.warnings.insert(text);
        Standing::Alone
    }

    /// Whether the old leader's masks are put back. Its guardian does it; should that be dead as
    /// well, we do.
    fn is_restored(&self) -> bool {
        let there = self.terms.journal.exists();
        if there {
            recover_stale(&self.settings.enact.runtime_dirs);
        }
        !there
    }

    fn lead(mut self, candidate: Candidate) -> Result<Followed, LiveError> {
        self.settings.recorded = self.recorded();
        let led = Enactor::start(&self.settings.enact).map_err(LiveError::from);
        let led = led.and_then(|enactor| {
            let terms = terms(&enactor, &self.settings, &self.terms.policy);
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
                self.standing = self.on_its_own(&error);
                return self.follow();
            }
        };
        let running = Running {
            child: self.child,
            name: self.command,
            signals: self.signals,
            enactor,
            group: Some(leader),
            start: self.start,
            warnings: self.warnings,
        };
        let live = Live::take_over(self.host, &self.settings, running)?;
        Ok(Followed::Leads(Box::new(live), terms))
    }

    /// The group's recording; a leader before this one has read it.
    fn recorded(&mut self) -> Option<Recorded> {
        let read = Recorded::read(self.terms.profile.as_ref()?);
        read.map_err(|error| self.warnings.insert(error.to_string()))
            .ok()
    }

    fn finished(self, exit_code: u8) -> Finished {
        Finished {
            exit_code,
            duration_s: self.start.elapsed().as_secs_f64(),
            tier: Tier::Proc,
            managed_cpu_s: children_cpu_s(),
            sampling_s: 0.0,
            short_lived: 0,
            samples: SampleCounts::default(),
            restored: true,
            pauses: 0,
            quantum_ms: None,
            group: Some(GroupSummary {
                name: self.group.name.to_string(),
                led: false,
                leader: self.terms.leader,
                policy: self.terms.policy,
                most_programs: 2,
            }),
            programs: Vec::new(),
            warnings: self.warnings.into_iter().collect(),
        }
    }
}

/// Hands a process over, held or running; false when the leader is gone.
fn hand_over(root: &Path, member: &mut Member, pid: u32, name: &str) -> Result<bool, GroupError> {
    // One that is gone already is refused by the leader, who looks again.
    let start_ticks = identify(root, pid, pid).map_or(0, |id| id.start_ticks);
    let name = name.to_owned();
    member.hand_over(Joining {
        pid,
        start_ticks,
        name,
    })
}

/// Whatever the user left open is what held when the group was entered first.
fn with_terms(group: GroupSpec, terms: &Terms) -> GroupSpec {
    let demands = Demands {
        policy: Some(terms.policy.clone()),
        interval_ms: Some(terms.interval_ms),
        dry_run: terms.dry_run,
        profile: terms.profile.clone(),
    };
    GroupSpec {
        demands,
        policy: terms.policy.clone(),
        ..group
    }
}
