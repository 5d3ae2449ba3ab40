//! State of a run without a command: its control groups, its socket, and the requests.

use super::cgroups::Groups;
use super::settings::Until;
use crate::control::{Asked, Desk};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// A request that the owner of the control loop is to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read the configuration again; a conversation, if given, waits for the outcome.
    Reload(Option<u64>),
    /// Go on with this policy; the conversation waits for the outcome.
    Policy(String, u64),
}

/// Groups, socket and requests of a run without a command; nothing is in it for other runs.
#[derive(Default)]
pub(super) struct Residence {
    until: Until,
    desk: Option<Desk>,
    groups: Groups,
    /// Processes whose trees are sampled, by the process that was attached.
    sampled: BTreeSet<u32>,
    /// Time at which each process was attached, in clock ticks since boot.
    attached: BTreeMap<u32, u64>,
    /// True once anything was attached.
    was_used: bool,
    /// Requests that only the owner of the control loop can carry out.
    orders: Vec<Order>,
}

impl Residence {
    /// A run that ends by this condition, with nothing attached yet.
    pub(super) fn new(until: Until) -> Self {
        Self {
            until,
            ..Self::default()
        }
    }

    /// Returns true if the run goes on, whatever becomes of that which is attached.
    pub(super) fn lasts(&self) -> bool {
        self.until == Until::Told
    }

    /// Returns true if the run is to end when nothing is left of what was attached.
    pub(super) fn is_over_when_empty(&self) -> bool {
        self.until == Until::Empty && self.was_used && !self.groups.manages()
    }

    /// Serves a control socket from now on.
    pub(super) fn open(&mut self, desk: Desk) {
        self.desk = Some(desk);
    }

    /// The control socket, if one is served.
    pub(super) fn desk_mut(&mut self) -> Option<&mut Desk> {
        self.desk.as_mut()
    }

    /// Descriptors that are readable when somebody asks for something.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.desk.iter().flat_map(Desk::fds)
    }

    /// Returns true if clients are to be attended to, whether or not they have just written.
    pub(super) fn is_talking(&self) -> bool {
        self.desk.as_ref().is_some_and(Desk::is_talking)
    }

    /// Takes the requests at the socket.
    pub(super) fn attend(&mut self, now: Instant) -> Vec<Asked> {
        let desk = self.desk.as_mut();
        desk.map_or_else(Vec::new, |desk| desk.attend(now))
    }

    /// The control groups that are managed.
    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The same, to change them.
    pub(super) fn groups_mut(&mut self) -> &mut Groups {
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
    pub(super) fn sampled(&self) -> impl Iterator<Item = u32> + '_ {
        self.sampled.iter().copied()
    }

    /// Adds a request for the owner of the control loop.
    pub(super) fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// Returns true if there are requests for the owner of the control loop.
    pub(super) fn has_orders(&self) -> bool {
        !self.orders.is_empty()
    }

    /// Takes the requests for the owner of the control loop, oldest first.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_what_was_attached_only_if_it_was_to() {
        for (until, ends) in [(Until::Told, false), (Until::Empty, true)] {
            let mut residence = Residence::new(until);
            assert!(!residence.is_over_when_empty(), "nothing was attached yet");
            residence.note_attached(7, 1);
            assert_eq!(residence.is_over_when_empty(), ends);
            assert_eq!(residence.lasts(), !ends);
        }
    }
}
