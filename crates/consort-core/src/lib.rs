//! The pure engine of Consort.
//!
//! A control loop observes, characterises, predicts, decides and enacts once per quantum. The middle
//! steps are here. They have no clock, do no I/O, draw randomness only from a given seed, and do not
//! panic on input: the same input gives the same output on any host.

mod backoff;
mod bottleneck;
mod choose;
mod class;
mod control;
pub mod coscheduling;
mod gain;
mod ids;
mod left_thread_tracker;
pub mod lint;
pub mod mapping;
pub mod metrics;
mod mix;
pub mod model;
mod per_program_policy;
pub mod plan;
pub mod policies;
pub mod policy;
mod pu_set;
mod sample;
pub mod sharing;
mod signal;
mod stack;
pub mod stats;
#[cfg(test)]
mod testing;
mod text;
pub mod topology;
pub mod trial;
mod unbalanced;

/// Matchings of threads into pairs and groups, and assignments of groups to cores.
pub use consort_matching as matching;

pub use backoff::{Backoff, BackoffVerdict};
pub use bottleneck::{Bottleneck, BottleneckKind};
pub use choose::{AUTO, AutoPolicyChoice, choose_policy};
pub use class::{
    BLOCKED_BELOW, Class, FP_FROM, INT_BELOW, MEMORY_FROM, MemoryLimit, ThreadTraits, classify,
};
pub use control::{ControlLoop, ControlTurn, EnactmentReport, Machine};
pub use gain::Gain;
pub use ids::{ProgramId, PuId, ThreadId};
pub use mix::Mix;
pub use per_program_policy::{PerProgramPolicy, PolicyFactory};
pub use plan::{Alternative, Decision, Placement, Plan};
pub use pu_set::{MAX_PU, PuSet, PuSetError};
pub use sample::{
    IntervalEnd, LeaveReason, Observation, Reading, Sample, ThreadObservation, Throttle,
};
pub use signal::{Signal, SignalOffers, Tier};
pub use stack::{CycleStack, StackComponent, stack_source};
pub use text::{
    escape_invisible, escape_invisible_lines, hint, is_visible, nearest, parse_count, quote,
    split_unquoted, unquote,
};
pub use topology::Topology;
