//! Analysis of asymmetric chips: experiments that are more than workloads under policies, and what
//! is read off them in words.

mod alone;
mod exchanges;
pub(crate) mod ideal;
mod ideal_runs;
pub(crate) mod migration;
mod readings;
mod single;

pub(super) use alone::{closed_form, cores_alone, programs_alone, saved};
pub(super) use exchanges::{of_working_sets, with_large, with_small};
pub(super) use ideal_runs::{at_ratios, beside_hrrs};
pub(super) use readings::{readings, verdict};
