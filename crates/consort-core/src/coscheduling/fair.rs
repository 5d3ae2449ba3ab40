//! The fair schedulers of HOLISYN: the application chooser, then the thread chooser.
//!
//! Source: Bhadauria and McKee, ICS 2010: `fair-mis` orders programs by their misses of the
//! last-level cache, `fair-com` by their contention for the bus.

use super::application::{Application, Standard, Wanted};
use super::measure::Measure;
use super::slot::{Chooser, Slot, Step, Trial};
use super::teams::{Secondary, Teams};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Resource by whose use programs are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Miss rate of the last-level cache.
    Misses,
    /// Contention for the bus.
    Bus,
}

impl Use {
    fn of(self) -> fn(&Measure) -> f64 {
        match self {
            Self::Misses => Measure::llc_miss_rate,
            Self::Bus => Measure::bus_contention,
        }
    }
}

/// The fair chooser.
#[doc(alias = "HOLISYN")]
#[derive(Clone, Debug)]
pub struct Fair {
    order: Use,
    standard: Standard,
    condition: (Secondary, f64),
    gang: BTreeMap<ProgramId, f64>,
    application: Application,
    teams: Option<Teams>,
    slots: Vec<Slot>,
}

impl Fair {
    /// Orders by `order` and adds members by `standard`; `alpha` is that of the secondary condition.
    pub fn new(order: Use, standard: Standard, secondary: Secondary, alpha: f64) -> Self {
        Self {
            order,
            standard,
            condition: (secondary, alpha),
            gang: BTreeMap::new(),
            application: Application::default(),
            teams: None,
            slots: Vec::new(),
        }
    }

    fn found(&mut self, slot: Slot, trial: Option<Trial>) {
        self.teams = Some(Teams::new(slot, trial, self.gang.clone(), self.condition));
    }
}

impl Chooser for Fair {
    fn begin(&mut self, cores: u32, alone: &[(ProgramId, Measure)]) {
        let mut rising = alone.to_vec();
        let of = self.order.of();
        rising.sort_by(|a, b| Measure::more(of, &a.1, &b.1).then(a.0.cmp(&b.0)));
        let gang = rising.iter().map(|(id, m)| (*id, m.energy_delay(1)));
        self.gang = gang.collect();
        self.application = Application::new(cores, &rising, self.standard);
        (self.teams, self.slots) = (None, Vec::new());
    }

    fn next(&mut self, last: Option<&Trial>) -> Step {
        let mut last = last;
        loop {
            if let Some(teams) = &mut self.teams {
                if let Some(slot) = teams.next(last.take()) {
                    return Step::Try(slot);
                }
                self.slots.push(teams.best().clone());
                self.teams = None;
            }
            match self.application.next(last.take()) {
                Wanted::Try(slot) => return Step::Try(slot),
                Wanted::Found(slot, trial) => self.found(slot, trial),
                Wanted::Nothing => return Step::Done(self.slots.clone()),
            }
        }
    }
}
