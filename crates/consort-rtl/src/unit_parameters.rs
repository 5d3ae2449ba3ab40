//! Units and their parameters.

use crate::error::RtlError;
use consort_core::topology::{CoreType, PuFacts};
use consort_core::{PuId, Topology};
use std::fmt;

/// A policy that there is a unit for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UnitPolicy {
    /// `hrrs`: all logical cores in turn.
    Hrrs,
    /// `kuths`: the logical core that has come back from the kernel.
    Kuths,
    /// `tcs`: the most critical thread.
    Tcs,
}

/// A unit with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitParameters {
    /// The policy.
    pub policy: UnitPolicy,
    /// Cores of the chip, 2 to 32.
    pub cores: usize,
    /// Large cores, each with its own group; they divide the cores.
    pub groups: usize,
    /// True where groups are regions with caches of their own; else the large cores come first.
    pub regions: bool,
    /// True where turns are kept in a queue; else by a counter.
    pub queue: bool,
    /// True where the lowest long-term sum gets the large core (tcs).
    pub lagging: bool,
    /// True where long-term sums decide at once (tcs).
    pub immediate: bool,
}

impl UnitParameters {
    /// One group with a queue, the policy's other options as usual.
    pub fn new(policy: UnitPolicy, cores: usize) -> Self {
        Self {
            policy,
            cores,
            groups: 1,
            regions: true,
            queue: true,
            lagging: false,
            immediate: false,
        }
    }

    /// Checks that there can be such a chip.
    ///
    /// # Errors
    /// [`RtlError::Setting`].
    pub(crate) fn check(&self) -> Result<(), RtlError> {
        let divides = self.groups > 0 && self.cores.is_multiple_of(self.groups);
        if (2..=32).contains(&self.cores) && divides && self.cores / self.groups >= 2 {
            return Ok(());
        }
        Err(RtlError::Setting {
            setting: self.to_string(),
            expected: "expected 2 to 32 cores in groups of equal size, 2 or more in each",
        })
    }

    /// Cores of a group.
    pub(crate) fn members(&self) -> usize {
        self.cores / self.groups
    }

    /// The group of a core, counted as the chip's ports are.
    pub(crate) fn core_group(&self, core: usize) -> usize {
        match (self.regions, core < self.groups) {
            (true, _) => core / self.members(),
            (false, true) => core,
            (false, false) => (core - self.groups) / (self.members() - 1),
        }
    }

    /// The core that is on a group's large core at first.
    pub(crate) fn large_core(&self, group: usize) -> usize {
        if self.regions {
            group * self.members()
        } else {
            group
        }
    }

    /// The policy with the options that the unit implements, as text.
    pub fn policy_text(&self) -> String {
        let turns = if self.queue { "queue" } else { "counter" };
        let reading = if self.lagging { "lagging" } else { "critical" };
        match self.policy {
            UnitPolicy::Hrrs => format!("hrrs:turns={turns}"),
            UnitPolicy::Kuths => format!("kuths:turns={turns}"),
            UnitPolicy::Tcs => format!(
                "tcs:turns={turns},arithmetic=integer,long-term={reading},immediate={}",
                self.immediate
            ),
        }
    }

    /// The chip as the policy sees it.
    ///
    /// # Errors
    /// None for a setting that was checked.
    pub(crate) fn topology(&self) -> Result<Topology, RtlError> {
        let facts = (0..self.cores).map(|core| {
            let group = self.core_group(core) as u32;
            PuFacts {
                pu: PuId(core as u32),
                package: 0,
                node: 0,
                core: core as u32,
                llc: if self.regions { group } else { 0 },
                l2: None,
                core_type: usize::from(self.large_core(group as usize) != core),
            }
        });
        let kind = |name: &str, capacity| CoreType {
            name: name.to_owned(),
            capacity,
            pipeline: None,
        };
        let types = vec![kind("large", 1024), kind("small", 400)];
        Ok(Topology::new(facts.collect(), types)?)
    }

    /// Parameters of the module `chip`.
    pub(crate) fn parameters(&self) -> [String; 7] {
        let flag = |name: &str, on: bool| format!("-G{name}={}", u8::from(on));
        [
            format!("-GPOLICY={}", self.policy as u8),
            format!("-GN={}", self.cores),
            format!("-GGROUPS={}", self.groups),
            flag("REGIONS", self.regions),
            flag("QUEUE", self.queue),
            flag("LAGGING", self.lagging),
            flag("IMMEDIATE", self.immediate),
        ]
    }
}

impl fmt::Display for UnitParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{:?}", self.policy).to_lowercase();
        let turns = if self.queue { "queue" } else { "counter" };
        write!(f, "{name}-{}-{turns}", self.cores)?;
        if self.groups > 1 {
            let layout = if self.regions { "regions" } else { "dealt" };
            write!(f, "-{}{layout}", self.groups)?;
        }
        if self.lagging {
            write!(f, "-lagging")?;
        }
        if self.immediate {
            write!(f, "-immediate")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_are_not_of_equal_size_are_refused() {
        let setting = UnitParameters {
            groups: 3,
            ..UnitParameters::new(UnitPolicy::Hrrs, 8)
        };
        let text = setting.check().unwrap_err().to_string();
        assert!(
            text.starts_with("hrrs-8-queue-3regions: expected 2 to 32 cores"),
            "{text}"
        );
    }

    #[test]
    fn every_core_is_in_the_group_of_its_large_core() {
        for regions in [false, true] {
            let setting = UnitParameters {
                groups: 2,
                regions,
                ..UnitParameters::new(UnitPolicy::Hrrs, 8)
            };
            let groups: Vec<usize> = (0..8).map(|core| setting.core_group(core)).collect();
            let expected = if regions {
                [0, 0, 0, 0, 1, 1, 1, 1]
            } else {
                [0, 1, 0, 0, 0, 1, 1, 1]
            };
            assert_eq!(groups, expected);
            assert_eq!(setting.core_group(setting.large_core(1)), 1);
        }
    }
}
