//! The two outer steps of the wheel: observing and enacting.

use crate::ids::ThreadId;
use crate::plan::Plan;
use crate::policy::Wishes;
use crate::sample::Observation;
use crate::signal::SignalOffers;
use crate::topology::Topology;
use serde::{Deserialize, Serialize};

/// A machine that can be watched and told where threads may run: live,
/// simulated or recorded. A policy cannot tell which.
pub trait Machine {
    /// Error of a machine that can no longer be watched or told.
    type Error: std::error::Error;

    /// The PUs as they are now.
    fn topology(&self) -> &Topology;

    /// The signals that it can give now, each with its tier.
    fn offers(&self) -> &SignalOffers;

    /// Is told what the policy asks for: before the first observation, and again where it asks for
    /// something else from then on.
    fn grant_wishes(&mut self, wishes: Wishes) {
        let _ = wishes;
    }

    /// Waits for the end of the quantum and tells what each thread did in it;
    /// nothing when the run is over.
    ///
    /// # Errors
    /// When the machine can no longer be watched.
    fn observe(&mut self) -> Result<Option<Observation>, Self::Error>;

    /// Carries a plan out and tells its result. Threads that have exited meanwhile are no error.
    ///
    /// # Errors
    /// When the machine can no longer be told anything.
    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, Self::Error>;
}

/// Result of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnactmentReport {
    /// Threads that were sent to another place than before.
    pub moved: Vec<ThreadId>,
    /// Threads that were nudged: those that were sent to another place, and those that had drifted
    /// from theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nudged: Vec<ThreadId>,
    /// Threads that a lasting mask keeps in their place now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<ThreadId>,
    /// Threads that somebody else has moved and that are no longer managed.
    pub released: Vec<ThreadId>,
    /// Things that could not be done, and whatever else the user is to know since the last plan, one
    /// sentence each.
    pub warnings: Vec<String>,
}
