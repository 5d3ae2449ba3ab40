//! Trials: managed and unmanaged stretches of one run in random order, and the effect of managing
//! that follows from their progress.
//!
//! [`Trial`] gives the arm of the next quantum and takes the observations of quanta that have passed.
//! [`PairedEffect`] is the statistics, which `consort trial` uses for whole runs as well, and
//! [`Verdict`] the sentence about it.

mod effect;
mod progress;
mod schedule;
mod stretches;
#[cfg(test)]
mod tests;
mod verdict;

pub use effect::{EffectEstimate, PairedEffect};
pub use progress::{MetricKind, ProgressMeasure};
pub use schedule::{Arm, RoundOrders, TrialTiming};
pub use stretches::Trial;
pub use verdict::Verdict;
