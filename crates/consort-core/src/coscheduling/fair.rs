//! The fair schedulers of HOLISYN: the application chooser, then the thread chooser.
//!
//! Source: Bhadauria and McKee, ICS 2010: `fair-mis` orders programs by their misses of the
//! last-level cache, `fair-com` by their contention for the bus.

use super::application_chooser::{ApplicationChooser, ChooserRequest, EnergyDelayBaseline};
use super::measure::ProgramMeasure;
use super::slot::{Chooser, ChooserStep, CoscheduleSlot, SlotTrial};
use super::thread_chooser::{SecondaryCondition, ThreadChooser};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Resource by whose use programs are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContendedResource {
    /// Miss rate of the last-level cache.
    Misses,
    /// Contention for the bus.
    Bus,
}

/// The fair chooser.
#[doc(alias = "HOLISYN")]
#[derive(Clone, Debug)]
pub struct FairChooser {
    order: ContendedResource,
    standard: EnergyDelayBaseline,
    condition: (SecondaryCondition, f64),
    gang: BTreeMap<ProgramId, f64>,
    application: ApplicationChooser,
    teams: Option<ThreadChooser>,
    slots: Vec<CoscheduleSlot>,
}

impl FairChooser {
    /// Orders programs by `order` and adds members by `standard`; `alpha` belongs to the secondary
    /// condition.
    pub fn new(
        order: ContendedResource,
        standard: EnergyDelayBaseline,
        secondary: SecondaryCondition,
        alpha: f64,
    ) -> Self {
        Self {
            order,
            standard,
            condition: (secondary, alpha),
            gang: BTreeMap::new(),
            application: ApplicationChooser::default(),
            teams: None,
            slots: Vec::new(),
        }
    }
}

impl Chooser for FairChooser {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, ProgramMeasure)]) {
        let mut rising = alone.to_vec();
        let usage: fn(&ProgramMeasure) -> f64 = match self.order {
            ContendedResource::Misses => ProgramMeasure::llc_miss_rate,
            ContendedResource::Bus => ProgramMeasure::bus_contention,
        };
        // Equal programs keep the order of their ids, so that runs can be repeated.
        rising.sort_by(|a, b| usage(&a.1).total_cmp(&usage(&b.1)).then(a.0.cmp(&b.0)));
        let gang = rising.iter().map(|(id, m)| (*id, m.energy_delay(1)));
        self.gang = gang.collect();
        self.application = ApplicationChooser::new(cores, &rising, self.standard);
        (self.teams, self.slots) = (None, Vec::new());
    }

    fn next(&mut self, last: Option<&SlotTrial>) -> ChooserStep {
        let mut last = last;
        loop {
            if let Some(teams) = &mut self.teams {
                if let Some(slot) = teams.next(last.take()) {
                    return ChooserStep::Try(slot);
                }
                self.slots.push(teams.best().clone());
                self.teams = None;
            }
            match self.application.next(last.take()) {
                ChooserRequest::Try(slot) => return ChooserStep::Try(slot),
                ChooserRequest::Found(slot, trial) => {
                    let gang = self.gang.clone();
                    self.teams = Some(ThreadChooser::new(slot, trial, gang, self.condition));
                }
                ChooserRequest::Nothing => return ChooserStep::Done(self.slots.clone()),
            }
        }
    }
}
