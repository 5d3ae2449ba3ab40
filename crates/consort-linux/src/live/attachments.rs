//! State of a run without a command: its control groups, its socket, and the requests.

use super::cgroups::ManagedGroups;
use super::settings::EndCondition;
use crate::control::{ControlServer, PendingRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// A request that the owner of the control loop is to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlLoopRequest {
    /// Read the configuration again; a conversation, if given, waits for the outcome.
    Reload(Option<u64>),
    /// Go on with this policy; the conversation waits for the outcome.
    Policy(String, u64),
}

/// Groups, socket and requests of a run without a command; nothing is in it for other runs.
#[derive(Default)]
pub(super) struct Attachments {
    until: EndCondition,
    desk: Option<ControlServer>,
    groups: ManagedGroups,
    /// Processes whose trees are sampled, by the process that was attached.
    sampled: BTreeSet<u32>,
    /// Time at which each process was attached, in clock ticks since boot.
    attached: BTreeMap<u32, u64>,
    /// True once anything was attached.
    was_used: bool,
    /// Requests that only the owner of the control loop can carry out.
    orders: Vec<ControlLoopRequest>,
}

impl Attachments {
    /// A run that ends by this condition, with nothing attached yet.
    pub(super) fn new(until: EndCondition) -> Self {
        Self {
            until,
            ..Self::default()
        }
    }

    /// Returns true if the run goes on, whatever becomes of that which is attached.
    pub(super) fn is_permanent(&self) -> bool {
        self.until == EndCondition::Told
    }

    /// Returns true if the run is to end when nothing is left of what was attached.
    pub(super) fn is_over_when_empty(&self) -> bool {
        self.until == EndCondition::Empty && self.was_used && !self.groups.manages()
    }

    /// Serves a control socket from now on.
    pub(super) fn set_server(&mut self, desk: ControlServer) {
        self.desk = Some(desk);
    }

    /// The control socket, if one is served.
    pub(super) fn server_mut(&mut self) -> Option<&mut ControlServer> {
        self.desk.as_mut()
    }

    /// Descriptors that are readable when somebody asks for something.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.desk.iter().flat_map(ControlServer::fds)
    }

    /// Returns true if clients are to be attended to, whether or not they have just written.
    pub(super) fn has_connections(&self) -> bool {
        self.desk
            .as_ref()
            .is_some_and(ControlServer::has_connections)
    }

    /// Takes the requests at the socket.
    pub(super) fn serve_clients(&mut self, now: Instant) -> Vec<PendingRequest> {
        let desk = self.desk.as_mut();
        desk.map_or_else(Vec::new, |desk| desk.serve_clients(now))
    }

    /// The control groups that are managed.
    pub(super) fn groups(&self) -> &ManagedGroups {
        &self.groups
    }

    /// The same, to change them.
    pub(super) fn groups_mut(&mut self) -> &mut ManagedGroups {
        &mut self.groups
    }

    /// Notes that a process was attached at a time in clock ticks since boot.
    pub(super) fn note_attached(&mut self, pid: u32, at_ticks: u64) {
        self.was_used = true;
        self.attached.insert(pid, at_ticks);
    }

    /// Time at which a process was attached, in clock ticks since boot; `None` for others.
    pub(super) fn attached_at(&self, pid: u32) -> Option<u64> {
        self.attached.get(&pid).copied()
    }

    /// Forgets a process that is gone.
    pub(super) fn forget_attached(&mut self, pid: u32) {
        self.attached.remove(&pid);
    }

    /// Notes that the tree of an attached process is sampled.
    pub(super) fn note_sampled(&mut self, pid: u32) {
        self.sampled.insert(pid);
    }

    /// Forgets a process that is no longer sampled.
    pub(super) fn forget_sampled(&mut self, pid: u32) {
        self.sampled.remove(&pid);
    }

    /// Attached processes whose trees are sampled.
    pub(super) fn sampled_processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.sampled.iter().copied()
    }

    /// Adds a request for the owner of the control loop.
    pub(super) fn add_request(&mut self, order: ControlLoopRequest) {
        self.orders.push(order);
    }

    /// Returns true if there are requests for the owner of the control loop.
    pub(super) fn has_requests(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Takes the requests for the owner of the control loop, oldest first.
    pub(super) fn take_requests(&mut self) -> Vec<ControlLoopRequest> {
        std::mem::take(&mut self.orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_what_was_attached_only_if_it_was_to() {
        for (until, ends) in [(EndCondition::Told, false), (EndCondition::Empty, true)] {
            let mut residence = Attachments::new(until);
            assert!(!residence.is_over_when_empty(), "nothing was attached yet");
            residence.note_attached(7, 1);
            assert_eq!(residence.is_over_when_empty(), ends);
            assert_eq!(residence.is_permanent(), !ends);
        }
    }
}
