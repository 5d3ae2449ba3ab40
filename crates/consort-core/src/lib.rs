//! The pure engine of Consort.
//!
//! A control loop turns one wheel per quantum: observe, characterise, predict,
//! decide, enact. The middle steps live here. They have no clock, do no I/O,
//! draw randomness only from a seed that is passed in, and do not panic on
//! input: the same input gives the same output on any host.

mod backoff;
mod bottleneck;
mod choose;
mod class;
mod control;
pub mod coscheduling;
mod count;
mod gain;
mod ids;
mod leave_reason;
mod left_thread_tracker;
pub mod lint;
mod machine;
pub mod mapping;
pub mod metrics;
mod mix;
pub mod model;
mod per_program_policy;
pub mod plan;
pub mod policies;
pub mod policy;
mod pu_set;
pub mod quote;
mod sample;
pub mod sharing;
mod signal;
mod stack;
pub mod stats;
mod suggest;
#[cfg(test)]
mod testing;
pub mod topology;
mod unbalanced;
mod visible;

/// Matchings of threads into pairs and groups, and assignments of groups to cores.
pub use consort_matching as matching;

pub use backoff::{Backoff, BackoffVerdict};
pub use bottleneck::{Bottleneck, BottleneckKind};
pub use choose::{AUTO, AutoPolicyChoice, choose_policy};
pub use class::{
    BLOCKED_BELOW, Class, FP_FROM, INT_BELOW, MEMORY_FROM, MemoryLimit, ThreadTraits, classify,
};
pub use control::{ControlLoop, ControlTurn};
pub use count::parse_count;
pub use gain::Gain;
pub use ids::{ProgramId, PuId, ThreadId};
pub use leave_reason::{LeaveReason, Throttle};
pub use machine::{EnactmentReport, Machine};
pub use mix::Mix;
pub use per_program_policy::{PerProgramPolicy, PolicyFactory};
pub use plan::{Decision, Placement, Plan};
pub use pu_set::{MAX_PU, PuSet, PuSetError};
pub use sample::{IntervalEnd, Observation, Reading, Sample, ThreadObservation};
pub use signal::{Signal, SignalOffers, Tier};
pub use stack::{CycleStack, StackComponent, stack_source};
pub use suggest::hint;
pub use topology::Topology;
pub use visible::{escape_invisible, escape_invisible_lines, is_visible};
