//! Setting up the sampling tier, as far as the host has it.

use super::warnings::Warnings;
use super::{Host, SampleCounts, Sampling, Unsettled};
use crate::sampling::{Profiler, Sampler, SamplerConfig, SamplerError, sample_cost_ns};
use consort_core::Tier;
use std::path::Path;

/// How to sample on this host, if at all.
pub(super) struct SamplingWish {
    pub(super) wanted: bool,
    /// What one sample takes from the thread it hits, ns.
    pub(super) cost_ns: u64,
    pub(super) config: SamplerConfig,
}

impl SamplingWish {
    pub(super) fn of(host: &Host) -> Self {
        let wanted = host.offers().iter().any(|(_, tier)| tier == Tier::Sampling);
        let cost_ns = if wanted {
            sample_cost_ns(&host.root).unwrap_or(0)
        } else {
            0
        };
        // Up to 20 times dearer in some virtual machines than on bare metal.
        let config = SamplerConfig::default()
            .for_cost(cost_ns)
            .permitted(&host.root);
        Self {
            wanted,
            cost_ns,
            config,
        }
    }
}

/// The sampling tier if its events could be opened, else a warning that says why not.
pub(super) fn accept(
    sampler: Option<Result<Sampler, SamplerError>>,
    root: &Path,
    cost_ns: u64,
    warnings: &mut Warnings,
) -> Option<Sampling> {
    match sampler? {
        Ok(sampler) => Some(Sampling {
            sampler,
            cost_ns,
            profiler: Profiler::new(root),
            counts: SampleCounts::default(),
            unsettled: Unsettled::default(),
        }),
        Err(error) => {
            warnings.insert(format!("no sampling, so no instruction mix: {error}"));
            None
        }
    }
}
