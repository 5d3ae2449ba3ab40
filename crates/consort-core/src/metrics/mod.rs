//! Metrics that runs are judged by: throughput, turnaround, fairness, energy.
//!
//! Purpose: one definition of each metric, shared by simulator, studies and
//! command line. Usage: make [`Slowdowns`] from the times of a run, then ask it
//! for STP, ANTT, harmonic speedup and unfairness; the other metrics are plain
//! functions of two or three quantities. Pitfall: averages of ratios over
//! several runs are geometric; see [`crate::stats`].
//!
//! The metrics of multiprogram throughput follow S. Eyerman and L. Eeckhout,
//! "System-Level Performance Metrics for Multiprogram Workloads", IEEE Micro
//! 28(3), 2008.

mod energy;
mod slowdowns;
mod time;
mod usage;

pub use energy::{energy_delay_js, energy_delay_squared_js2, power_delay_j, throughput_per_watt};
pub use slowdowns::{SlowdownError, Slowdowns};
pub use time::{makespan_s, program_speedup, workload_speedup};
pub use usage::{l2mp_ns, utilisation};

/// The quotient, where it is a finite number that can be compared.
fn quotient(dividend: f64, divisor: f64) -> Option<f64> {
    let value = dividend / divisor;
    (divisor > 0.0 && value.is_finite()).then_some(value)
}
