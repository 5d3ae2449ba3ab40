//! A machine that tells what it knows.

use consort_core::policy::Wishes;
use consort_core::{EnactmentReport, Machine, Observation, Plan, SignalOffers, ThreadId, Topology};
use consort_sim::contention::Demand;
use consort_sim::{SimError, SimMachine};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Demand of every thread at the end of the last quantum.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedDemands(Rc<RefCell<BTreeMap<ThreadId, Demand>>>);

impl SharedDemands {
    pub(super) fn demand(&self, thread: ThreadId) -> Option<Demand> {
        self.0.borrow().get(&thread).cloned()
    }
}

/// A simulated machine that leaves its truth where an oracle finds it; nowhere without one.
pub(crate) struct OracleMachine {
    machine: SimMachine,
    truth: Option<SharedDemands>,
}

impl OracleMachine {
    pub(crate) fn new(machine: SimMachine, truth: Option<SharedDemands>) -> Self {
        Self { machine, truth }
    }

    /// The machine itself.
    pub(crate) fn inner(&self) -> &SimMachine {
        &self.machine
    }
}

impl Machine for OracleMachine {
    type Error = SimError;

    fn topology(&self) -> &Topology {
        self.machine.topology()
    }

    fn offers(&self) -> &SignalOffers {
        self.machine.offers()
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        self.machine.grant_wishes(wishes);
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

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, SimError> {
        self.machine.enact(plan)
    }
}
