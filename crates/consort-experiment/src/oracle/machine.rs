//! A machine that tells what it knows.

use consort_core::policy::Wishes;
use consort_core::{Enacted, Machine, Observation, Offers, Plan, ThreadId, Topology};
use consort_sim::contention::Demand;
use consort_sim::{SimError, SimMachine};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Demand of every thread at the end of the last quantum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth(Rc<RefCell<BTreeMap<ThreadId, Demand>>>);

impl Truth {
    pub(super) fn demand(&self, thread: ThreadId) -> Option<Demand> {
        self.0.borrow().get(&thread).cloned()
    }
}

/// A simulated machine that leaves its truth where an oracle finds it; nowhere without one.
pub(crate) struct Revealed {
    machine: SimMachine,
    truth: Option<Truth>,
}

impl Revealed {
    pub(crate) fn new(machine: SimMachine, truth: Option<Truth>) -> Self {
        Self { machine, truth }
    }

    /// The machine itself.
    pub(crate) fn inner(&self) -> &SimMachine {
        &self.machine
    }
}

impl Machine for Revealed {
    type Error = SimError;

    fn topology(&self) -> &Topology {
        self.machine.topology()
    }

    fn offers(&self) -> &Offers {
        self.machine.offers()
    }

    fn grant(&mut self, wishes: Wishes) {
        self.machine.grant(wishes);
    }

    fn observe(&mut self) -> Result<Option<Observation>, SimError> {
        let seen = self.machine.observe()?;
        if let (Some(truth), Some(seen)) = (&self.truth, &seen) {
            let oracle = self.machine.oracle();
            let demand = |id| Some((id, oracle.demand(id)?.clone()));
            let threads = seen.threads.iter().map(|thread| thread.id);
            *truth.0.borrow_mut() = threads.filter_map(demand).collect();
        }
        Ok(seen)
    }

    fn enact(&mut self, plan: &Plan) -> Result<Enacted, SimError> {
        self.machine.enact(plan)
    }
}
