//! The host and its means of observing and placing threads, before anything is started.

use super::observers::ENERGY_TIER;
use crate::cookies::{self, CookieStatus};
use crate::counters::{SoftwareEvents, TierStatus, Tiers, probe};
use crate::energy::{self, EnergyStatus};
use crate::enforce::{EnactorStatus, enactors};
use crate::events::{EventFile, event_file_for};
use crate::owners::{PlacementOwner, owners};
use crate::pause::{PauseSupport, mechanisms};
use crate::sampling::ESTIMATED_STACK;
use crate::topology::{CpuIdentity, DiscoveryError, TopologyDiscovery, discover};
use consort_core::sharing::{SharingError, SharingMap};
use consort_core::{PuSet, Signal, SignalOffers, Tier};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The host: its processor, and the means of observing and placing threads on it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Directory that `/sys` and `/proc` are below.
    pub root: PathBuf,
    /// The processor.
    pub discovery: TopologyDiscovery,
    /// Availability of the tiers, each with the obstacle when it is missing.
    pub tiers: Vec<TierStatus>,
    /// Events of the software tier; none where it is missing.
    pub(crate) software: Option<SoftwareEvents>,
    /// Availability of the energy signal.
    pub energy: EnergyStatus,
    /// Availability of the enactors.
    pub enactors: Vec<EnactorStatus>,
    /// Availability of core-scheduling cookies, which keep other threads off the cores of a plan.
    pub cookies: CookieStatus,
    /// Availability of the mechanisms that pause programs, best first.
    pub pausing: Vec<PauseSupport>,
    /// Others that give processors to threads here.
    pub owners: Vec<PlacementOwner>,
    /// Sharing of caches from a file, which replaces the kernel's; `None` without a file.
    pub(crate) sharing: Option<SharingMap>,
    /// CPUs that count as large because the user wants that; `None` if core types are as found.
    pub large: Option<PuSet>,
    /// True if threads are managed that do not inherit the limits of this process.
    pub(crate) is_for_others: bool,
}

/// Reason for which a host cannot be seen as a file has it.
#[derive(Debug, Error)]
pub enum HostError {
    /// The file does not fit the machine.
    #[error(transparent)]
    Sharing(#[from] SharingError),
    /// Kernel and file contradict each other.
    #[error(transparent)]
    Topology(#[from] DiscoveryError),
}

impl Host {
    /// Looks at the host below `root`.
    ///
    /// # Errors
    /// When no CPU can be used.
    pub fn detect(root: &Path) -> Result<Self, DiscoveryError> {
        let discovery = discover(root)?;
        let Tiers { status, software } = probe(root, &identity(&discovery));
        Ok(Self {
            root: root.to_owned(),
            discovery,
            tiers: status,
            software,
            energy: energy::probe(root),
            enactors: enactors(root),
            cookies: cookies::probe(root),
            pausing: mechanisms(root),
            owners: owners(root),
            sharing: None,
            large: None,
            is_for_others: false,
        })
    }

    /// The host for managing threads that do not inherit the limits of this process: plans may use
    /// every online CPU, and each thread's own affinity and cpuset bound it. A service is often
    /// confined to a few CPUs, and the threads that it manages are not.
    #[must_use]
    pub fn for_others(mut self) -> Self {
        self.discovery = self.discovery.allow_all_pus();
        self.is_for_others = true;
        self
    }

    /// Replaces the kernel's description of sharing by that of a file, now and after every change of the
    /// CPUs; `origin` names the file.
    ///
    /// # Errors
    /// When the map does not fit this machine.
    pub fn with_sharing(mut self, map: SharingMap, origin: &str) -> Result<Self, HostError> {
        map.check(&self.discovery.machine, origin)?;
        self.discovery = self.discovery.with_sharing(&map)?;
        let note = format!("{origin} describes what CPUs share, instead of the kernel");
        self.discovery.notes.push(note);
        self.sharing = Some(map);
        Ok(self)
    }

    /// Returns the same host with the CPUs in `large` counting as large and all others as small.
    ///
    /// # Errors
    /// Those of [`Topology::with_large`](consort_core::Topology::with_large_cores).
    pub fn with_large(
        mut self,
        large: PuSet,
    ) -> Result<Self, consort_core::topology::TopologyError> {
        let found = &mut self.discovery;
        found.topology = found.topology.with_large_cores(&large)?;
        let text = format!("core types are emulated: {large} counts as large, all others as small");
        found.notes.push(text);
        self.large = Some(large);
        Ok(self)
    }

    /// The event file of the first microarchitecture that has one.
    pub fn event_file(&self) -> Option<EventFile> {
        event_file_for(&identity(&self.discovery)).ok().flatten()
    }

    /// Names of the hardware events that can be counted here.
    pub fn counter_events(&self) -> Vec<String> {
        let is_counted = |t: &TierStatus| t.tier == Tier::Counters && t.available;
        if !self.tiers.iter().any(is_counted) {
            return Vec::new();
        }
        let pmus = self.event_file().into_iter().flat_map(|file| file.pmus);
        let events = pmus.flat_map(|pmu| pmu.events);
        events.map(|event| event.name).collect()
    }

    /// The signals of every tier that is available.
    pub fn offers(&self) -> SignalOffers {
        let available = self.tiers.iter().filter(|tier| tier.available);
        let signals = available.flat_map(|t| t.signals.iter().map(|signal| (*signal, t.tier)));
        let mut offers: SignalOffers = signals.collect();
        if self.energy.available {
            offers.add(Signal::Energy, ENERGY_TIER);
        }
        offers.set_machine(&identity(&self.discovery).to_string());
        // Counters give the components that the event file names, samples the estimated ones.
        offers.set_stack(match offers.tier_of(Signal::CycleStack) {
            Some(Tier::Counters) => {
                let pmus = self.event_file().into_iter().flat_map(|file| file.pmus);
                let mut formulas = pmus.flat_map(|pmu| pmu.formulas);
                let stack = formulas.find(|formula| formula.signal == Signal::CycleStack);
                let parts = stack.and_then(|formula| formula.components);
                let parts = parts.into_iter().flatten();
                parts.map(|part| Cow::Owned(part.name)).collect()
            }
            Some(Tier::Sampling) => ESTIMATED_STACK.map(Cow::Borrowed).to_vec(),
            _ => Vec::new(),
        });
        offers
    }

    /// The richest tier that is available.
    pub fn best_tier(&self) -> Tier {
        let available = self.tiers.iter().filter(|tier| tier.available);
        available.map(|tier| tier.tier).max().unwrap_or(Tier::Proc)
    }
}

/// The microarchitecture; on hybrid chips that of the first core type, whose event file has both.
fn identity(discovery: &TopologyDiscovery) -> CpuIdentity {
    let first = discovery.identities.first();
    first.map_or(CpuIdentity::Unknown, |group| group.identity.clone())
}
