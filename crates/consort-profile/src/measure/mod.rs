//! Meters of a stream of operations. Every meter takes operations one at a time and
//! can be asked at the end; none knows of the others.

mod branches;
mod counts;
mod dataflow;
mod distance;
mod dividers;
mod fit;
mod groups;
mod instruction_counts;
mod memory;
mod pages;
mod pipelines;
mod recent_values;
mod stack;
mod stretches;
mod tally;
mod targets;
mod timing;
mod timing_counts;

pub use branches::{Mispredictions, PREDICTOR_KIB, SCHEMES, SchemePredictors};
pub use counts::MeterCounts;
pub use dataflow::{Dataflow, DataflowCounts, WINDOWS};
pub use distance::{DistanceCounts, Distances, NEAR};
pub use dividers::DIVIDERS;
pub use fit::{PowerLaw, power_law};
pub use groups::{
    AccessCounts, AccessMeters, BranchMeters, LocatedBranch, MemoryTouch, MeterGroup,
    MispredictionFeed, TimingMeters, TouchKind,
};
pub use instruction_counts::InstructionCounts;
pub(crate) use memory::line_of;
pub use memory::{MemoryFigures, MemoryMeter, MemoryMeterCounts};
pub use pipelines::{PipelineCounts, Resolution};
pub use stack::{CAPACITIES, CapacityCounts, LruStack};
pub use stretches::{StretchCounts, Stretches};
pub use tally::PartialTally;
pub use targets::{LostTargets, TARGET_ENTRIES, TargetTables};
pub use timing::LatencySchedule;
pub use timing_counts::{LATENCIES, SchedulerCounts, TimingCounts};

/// Misses per kilo-instruction below which what is told per miss says nothing.
pub const FEW_MPKI: f64 = 0.05;
