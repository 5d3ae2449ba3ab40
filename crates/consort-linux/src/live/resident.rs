//! A run without a command of its own, which manages processes and groups on request.
//!
//! Processes are attached with all that they start, control groups with all that enters them
//! ([`super::cgroups`]). Requests come from the caller, or over a socket from a [`ControlServer`] that
//! [`LiveMachine::open_control_server`] sets up.

use super::Host;
use super::LiveMachine;
use super::attachments::{Attachments, ControlLoopRequest};
use super::error::{AttachError, LiveError};
use super::launch::{RunResources, recover_earlier_runs};
use super::membership::millis;
use super::settings::AttachSpec;
use crate::control::{ControlServer, DaemonRequest, Peer, PendingRequest};
use crate::enact::{Enactor, SignalReader};
use crate::group::{
    Demands, GroupError, GroupName, GroupPlace, GroupTerms, Leader, OpenTerms, enter_group,
};
use crate::proc::{ThreadUsers, name_of, now_ticks, process_tree};
use consort_core::{Sample, ThreadId};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time at a stretch after which no further request is carried out.
const MOST_TIME_FOR_REQUESTS: Duration = Duration::from_millis(10);

/// Leads the group of daemons, so that `consort run` can hand its commands over.
fn lead(enactor: &Enactor, spec: &AttachSpec, policy: &str) -> Result<Leader, GroupError> {
    let name = GroupName::for_daemon();
    let demands = Demands::default();
    let candidate = match enter_group(&spec.enact.runtime_dirs, &name, &demands)? {
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
        interval_ms: millis(spec.interval),
        dry_run: spec.dry_run,
        profile: None,
        open: OpenTerms::default(),
    })
}

impl LiveMachine {
    /// Manages this host without starting anything.
    ///
    /// # Errors
    /// When journal or guardian could not be set up, the daemons' group has another leader, or
    /// threads cannot be watched.
    pub fn manage_host(host: Host, spec: AttachSpec) -> Result<Self, LiveError> {
        let warnings = recover_earlier_runs(&spec.enact);
        let signals = SignalReader::block_and_open().map_err(LiveError::Wait)?;
        let enactor = Enactor::start(&spec.enact)?;
        let group = match &spec.leads {
            None => None,
            Some(policy) => match lead(&enactor, &spec, policy) {
                Ok(leader) => Some(leader),
                Err(error) => {
                    enactor.close();
                    return Err(error.into());
                }
            },
        };
        let running = RunResources {
            child: None,
            name: String::new(),
            signals,
            enactor,
            group,
            start: Instant::now(),
            warnings,
        };
        let until = spec.until;
        let mut live = Self::take_over(host, &spec.settings(), running)?;
        live.residence = Attachments::new(until);
        Ok(live)
    }

    /// Serves a control socket from now on.
    pub fn open_control_server(&mut self, desk: ControlServer) {
        self.residence.set_server(desk);
    }

    /// The control socket, if one is served.
    pub fn control_server_mut(&mut self) -> Option<&mut ControlServer> {
        self.residence.server_mut()
    }

    /// Manages a process and all that it has started and will start, with a policy of its own if one
    /// is named.
    ///
    /// # Errors
    /// [`AttachError`]; then nothing has changed.
    pub fn attach(&mut self, pid: u32, policy: Option<Arc<str>>) -> Result<(), AttachError> {
        self.attach_for_user(pid, policy, None)
    }

    /// The same; of the processes below, only those of one user if there is an `asker`.
    pub(super) fn attach_for_user(
        &mut self,
        pid: u32,
        policy: Option<Arc<str>>,
        asker: Option<u32>,
    ) -> Result<(), AttachError> {
        self.check(pid)?;
        if self.roster.is_managed(pid) && self.roster.trees().root_of(pid) == Some(pid) {
            if self.roster.trees_mut().admit(pid, asker) {
                self.find_unmanaged_again(pid);
            }
            return Err(AttachError::Managed(pid));
        }
        let root = self.site.root();
        let name = name_of(root, pid).map_err(|error| AttachError::from_proc_error(pid, error))?;
        let was_managed = self.roster.is_managed(pid);
        let below = process_tree(root, &BTreeSet::from([pid]));
        let mut below = below.map_err(|error| AttachError::from_proc_error(pid, error))?;
        if let Some(uid) = asker {
            let is_its = |users: ThreadUsers| users.other_than(uid).is_none();
            below.retain(|&pid| ThreadUsers::from_process(root, pid).is_ok_and(is_its));
        }
        self.roster
            .trees_mut()
            .insert_with_policy(pid, name, policy);
        self.roster.trees_mut().restrict(pid, asker);
        for other in below {
            let stays = self.roster.trees().is_managed(other);
            if !stays {
                self.senses.begin_times(other);
                self.roster.trees_mut().assign_process(other, pid);
            }
        }
        self.watch_process(pid, was_managed);
        Ok(())
    }

    /// Has the threads of a program that are not managed found again, because it may have more of
    /// them now.
    fn find_unmanaged_again(&mut self, root: u32) {
        let roster = &self.roster;
        let its = { roster.ids() }.filter(|id| roster.trees().root_of(id.pid) == Some(root));
        let unmanaged: Vec<ThreadId> = its.filter(|id| !roster.may_place(*id)).collect();
        for id in unmanaged {
            self.retire_thread(id, Sample::default());
            // Its process was forgotten with its last thread.
            self.roster.trees_mut().assign_process(id.pid, root);
        }
        self.watch_process(root, true);
    }

    /// Puts a process and all others of its program back, and lets go of them; returns false if it
    /// was not managed.
    pub fn detach(&mut self, pid: u32) -> bool {
        let Some(root) = self
            .roster
            .trees()
            .root_of(pid)
            .filter(|_| self.roster.is_managed(pid))
        else {
            return false;
        };
        self.release_program(root);
        true
    }

    /// Puts the threads of one user in the program of a process back, and lets go of them. Threads of
    /// other users stay managed: what these have attached is not the user's to detach.
    pub(super) fn withdraw(&mut self, pid: u32, uid: u32) {
        let Some(root) = self.roster.trees().root_of(pid) else {
            return;
        };
        if !self.roster.trees_mut().withdraw(root, uid) {
            return self.release_program(root);
        }
        let threads: Vec<ThreadId> = { self.roster.ids() }
            .filter(|id| self.roster.trees().root_of(id.pid) == Some(root))
            .collect();
        self.release_excluded(&threads);
    }

    /// Ends the run after this quantum.
    pub fn end(&mut self) {
        self.course.end();
    }

    /// Takes the requests for the owner of the control loop, oldest first.
    pub fn take_requests(&mut self) -> Vec<ControlLoopRequest> {
        self.residence.take_requests()
    }

    /// Programs that are managed now, each with the pid at its root and its name.
    pub fn programs_managed(&self) -> Vec<(u32, String)> {
        let names = self.roster.trees().names().into_iter();
        names
            .filter(|(root, _)| self.roster.trees().is_managed(*root))
            .collect()
    }

    /// Looks for the threads of a process, and samples them unless they were sampled before with
    /// the program that they belonged to.
    pub(super) fn watch_process(&mut self, pid: u32, was_managed: bool) {
        self.residence.note_attached(pid, now_ticks());
        let (trees, roster) = (self.roster.trees(), &self.roster);
        let root = trees.root_of(pid);
        let lost = |known| trees.root_of(known) == root && !roster.has_process(known);
        self.census.search(pid, lost);
        if was_managed {
            return;
        }
        self.senses.begin_times(pid);
        let pus = self.site.online_pus();
        let Some(joined) = self.senses.join_tree(self.site.root(), pid, pus) else {
            return;
        };
        self.residence.note_sampled(pid);
        if let Err(error) = joined {
            let text = format!("process {pid} is not sampled: {error}");
            self.warnings.insert(text);
        }
    }

    /// Checks that a process can be managed.
    pub(super) fn check(&self, pid: u32) -> Result<(), AttachError> {
        if self.hands.is_own(pid) {
            return Err(AttachError::Own(pid));
        }
        if pid == 1 {
            return Err(AttachError::Everything);
        }
        match self.census.unmanageable_reason(pid) {
            Err(error) => Err(AttachError::from_proc_error(pid, error)),
            Ok(Some(why)) => Err(AttachError::Unmanageable(pid, why)),
            Ok(None) => Ok(()),
        }
    }

    /// Heeds a signal to a run without a command.
    pub(super) fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGQUIT => self.end(),
            Signal::SIGHUP => self.residence.add_request(ControlLoopRequest::Reload(None)),
            _ => {}
        }
    }

    /// Stops sampling processes that have ended or were let go of: each event costs a descriptor.
    pub(super) fn stop_sampling_ended(&mut self) {
        let there: BTreeSet<Option<u32>> = { self.roster.ids() }
            .map(|id| self.roster.trees().root_of(id.pid))
            .collect();
        let ended = self.residence.sampled_processes();
        let ended: Vec<u32> = ended
            .filter(|&pid| !there.contains(&self.roster.trees().root_of(pid)))
            .filter(|&pid| !self.census.has_process(pid) || !self.roster.is_managed(pid))
            .collect();
        for pid in ended {
            self.residence.forget_sampled(pid);
            self.census.unwatch(pid);
            self.senses.leave_tree(pid);
            // A report names all programs that were there; a daemon makes none.
            if self.residence.is_permanent() {
                self.roster.trees_mut().remove_program(pid);
            }
        }
    }

    /// Ends a run that is to end when nothing that was attached is left.
    pub(super) fn end_if_empty(&mut self) {
        if self.residence.is_over_when_empty() && self.roster.is_empty() {
            self.end();
        }
    }

    /// Takes in the requests at the socket, and carries them out.
    pub(super) fn serve_control_socket(&mut self) {
        let begun = Instant::now();
        // Again as long as requests were carried out, so that those sent ahead need not wait for
        // the next time, but not for long: threads are to be placed meanwhile.
        loop {
            let asked = self.residence.serve_clients(Instant::now());
            let is_last = asked.is_empty() || begun.elapsed() > MOST_TIME_FOR_REQUESTS;
            for asked in asked {
                self.serve(asked);
            }
            if is_last {
                return;
            }
        }
    }

    fn serve(&mut self, asked: PendingRequest) {
        let PendingRequest {
            conversation,
            peer,
            request,
        } = asked;
        let done = match request {
            DaemonRequest::Reload => {
                return self
                    .residence
                    .add_request(ControlLoopRequest::Reload(Some(conversation)));
            }
            DaemonRequest::Policy { policy } => {
                return self
                    .residence
                    .add_request(ControlLoopRequest::Policy(policy, conversation));
            }
            DaemonRequest::Attach(wanted) => self.attach_for_peer(peer, &wanted),
            DaemonRequest::Detach(wanted) => self.detach_for_peer(peer, &wanted),
            DaemonRequest::Status | DaemonRequest::Explain { .. } => return,
        };
        if let Some(desk) = self.residence.server_mut() {
            desk.answer(conversation, done);
        }
    }

    /// Checks that a peer may ask for a process: root and the user of this run may ask for any that
    /// can be managed, others for processes that act for them alone.
    pub(super) fn check_owner(&self, peer: Peer, pid: u32) -> Result<(), AttachError> {
        let users = ThreadUsers::from_process(self.site.root(), pid);
        let users = users.map_err(|error| AttachError::from_proc_error(pid, error))?;
        match users.other_than(peer.uid) {
            Some(owner) if !peer.is_master() => Err(AttachError::NotYours {
                pid,
                owner,
                asker: peer.uid,
            }),
            _ => Ok(()),
        }
    }
}
