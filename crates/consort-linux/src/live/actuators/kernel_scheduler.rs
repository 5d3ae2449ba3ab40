//! Enforcement of plans by a sched_ext scheduler, if the user wants that.
//!
//! Masks are not touched then. If the kernel ends the scheduler, all threads are scheduled by the fair
//! class again, and nudges take over.

use crate::enforce::{EnactChoice, EnactorKind};
use consort_core::{Placement, Plan, ThreadId, Topology};
use consort_ext::{ExtConfig, ExtError, ExtPlan, Scheduler, SchedulerState};
use std::collections::BTreeSet;
use std::time::Duration;

/// The scheduler in the kernel, while there is one.
#[derive(Default)]
pub(super) struct KernelScheduler {
    scheduler: Option<Scheduler>,
}

impl KernelScheduler {
    /// Starts a scheduler if the user wants it; returns the error if it cannot be started.
    pub(super) fn start(choice: EnactChoice, topology: &Topology) -> (Self, Option<ExtError>) {
        if choice != EnactChoice::Only(EnactorKind::Ext) {
            return (Self::default(), None);
        }
        match Scheduler::start(topology, &ExtConfig::default()) {
            Ok(scheduler) => (
                Self {
                    scheduler: Some(scheduler),
                },
                None,
            ),
            Err(error) => (Self::default(), Some(error)),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.scheduler.is_some()
    }

    /// Hands a thread over to the scheduler; returns a warning if it is not accepted.
    pub(super) fn manage_thread(&mut self, id: ThreadId) -> Option<String> {
        let error = self.scheduler.as_mut()?.manage(id).err()?;
        Some(format!("thread {id} stays with the OS: {error}"))
    }

    /// Takes back a thread that another program has moved. For one that has exited, nothing is needed.
    pub(super) fn release_thread(&mut self, id: ThreadId) {
        if let Some(scheduler) = &mut self.scheduler
            && let Err(error) = scheduler.release(id)
        {
            tracing::debug!(%id, %error, "a thread is not given back by the scheduler");
        }
    }

    /// Gives the kernel a plan to follow; `quantum` is its length if the plan wants no other.
    /// Returns a warning if the kernel does not follow it.
    pub(super) fn apply_plan(&mut self, plan: &Plan, quantum: Duration) -> Option<String> {
        let scheduler = self.scheduler.as_mut()?;
        let quantum = plan.quantum_ns.map_or(quantum, Duration::from_nanos);
        let managed = scheduler.managed_threads().collect();
        let applied = scheduler.apply(&plan_for_kernel(plan, &managed, quantum));
        let error = applied.err()?;
        Some(format!("the kernel does not follow a plan: {error}"))
    }

    /// Shows the kernel's scheduler that Consort lives; returns, once, the reason for which it is gone.
    pub(super) fn send_heartbeat(&mut self) -> Option<String> {
        let scheduler = self.scheduler.as_mut()?;
        scheduler.send_heartbeat();
        match scheduler.state() {
            SchedulerState::Running => None,
            SchedulerState::Ejected(why) => {
                self.scheduler = None;
                Some(why)
            }
        }
    }

    /// Ends the scheduler: every thread is scheduled by the fair class again.
    pub(super) fn end(&mut self) {
        self.scheduler = None;
    }
}

/// A plan as the kernel takes it: the places of managed threads.
fn plan_for_kernel(plan: &Plan, managed: &BTreeSet<ThreadId>, quantum: Duration) -> ExtPlan {
    let mut for_kernel = ExtPlan::unrestricted(quantum);
    for (&id, placement) in &plan.placements {
        if let Placement::Restricted(pus) = placement
            && managed.contains(&id)
        {
            for_kernel.places.insert(id, pus.clone());
        }
    }
    for_kernel
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    #[test]
    fn only_managed_threads_reach_the_kernel() {
        let place = |pus: &str| Placement::Restricted(pus.parse().unwrap());
        let plan = Plan {
            placements: BTreeMap::from([
                (thread(1), place("0-1")),
                (thread(2), place("2")),
                (thread(3), Placement::Unrestricted),
            ]),
            ..Plan::default()
        };
        let managed = BTreeSet::from([thread(1), thread(3)]);
        let reported = plan_for_kernel(&plan, &managed, Duration::from_millis(4));
        let places: Vec<ThreadId> = reported.places.into_keys().collect();
        assert_eq!(places, [thread(1)]);
    }

    #[test]
    fn auto_choice_starts_no_scheduler() {
        let topology = Topology::uniform(2, 2).unwrap();
        let (in_kernel, error) = KernelScheduler::start(EnactChoice::Auto, &topology);
        assert!(!in_kernel.is_running() && error.is_none());
    }
}
