//! The inner truth of the simulation: rates, solutions, exact counts.
//!
//! Only who holds the simulated machine itself can have this view: policies get topology and
//! observations from the control loop and never the machine, so they cannot reach it.

use super::counts::ThreadCounts;
use super::memo::MemoUse;
use super::{Engine, SimulatedThread};
use crate::contention::Demand;
use consort_core::ThreadId;

/// A look at the inner truth, for the oracle scheduler, explanations and tests.
#[derive(Clone, Copy)]
pub struct Oracle<'a> {
    engine: &'a Engine,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(engine: &'a Engine) -> Self {
        Self { engine }
    }

    fn thread(&self, id: ThreadId) -> Option<&'a SimulatedThread> {
        self.engine.threads().iter().find(|t| t.id == id)
    }

    /// Every thread, those that have ended included.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> + 'a {
        self.engine.threads().iter().map(|t| t.id)
    }

    /// Demand of a thread on a PU now.
    pub fn demand(&self, id: ThreadId) -> Option<&'a Demand> {
        self.thread(id).map(|t| &t.demand)
    }

    /// Counts of a thread since its start.
    pub fn counts(&self, id: ThreadId) -> Option<ThreadCounts> {
        self.thread(id).map(SimulatedThread::total)
    }

    /// Number of times that solutions were reused.
    pub fn memo_use(&self) -> MemoUse {
        self.engine.memo_use()
    }
}
