//! Account of the energy that was used.

use super::kernel::SimulatedKernel;
use super::observer::EnergyMeter;
use super::thread::SimulatedThread;
use super::warming::{CacheWarming, WarmingPlace};
use crate::chip::Chip;
use std::sync::Arc;

pub(crate) struct EnergyAccount {
    chip: Arc<Chip>,
    meter: Box<dyn EnergyMeter>,
    /// Power of idle cores and uncore, W.
    base_w: f64,
    total_j: f64,
    /// True if another set of cores may be idle.
    idle_changed: bool,
    /// Threads on each core.
    busy: Vec<u32>,
}

impl EnergyAccount {
    pub(crate) fn new(chip: &Arc<Chip>, meter: Box<dyn EnergyMeter>) -> Self {
        Self {
            busy: vec![0; chip.domains().cores],
            chip: Arc::clone(chip),
            meter,
            base_w: 0.0,
            total_j: 0.0,
            idle_changed: false,
        }
    }

    pub(crate) fn total_j(&self) -> f64 {
        self.total_j
    }

    /// Adds a span of `s` seconds in which threads used so much, J.
    pub(crate) fn add(&mut self, s: f64, threads_j: f64) {
        self.total_j += self.base_w * s + threads_j;
    }

    pub(crate) fn note_stop(&mut self) {
        self.idle_changed = true;
    }

    /// Computes power again if a thread has stopped.
    pub(crate) fn refresh_if_stopped(
        &mut self,
        kernel: &SimulatedKernel,
        threads: &mut [SimulatedThread],
    ) {
        if self.idle_changed {
            self.refresh(kernel, threads);
        }
    }

    /// Computes the static power of threads and of everything else.
    pub(crate) fn refresh(&mut self, kernel: &SimulatedKernel, threads: &mut [SimulatedThread]) {
        self.idle_changed = false;
        let (busy, places, meter) = (&mut self.busy, self.chip.places(), &self.meter);
        busy.fill(0);
        for (pu, _) in kernel.occupied_pus() {
            busy[places[pu].core] += 1;
        }
        let idle = (0..busy.len()).filter(|&core| busy[core] == 0);
        let idle_w: f64 = idle.map(|core| meter.core_w(core, false)).sum();
        self.base_w = idle_w + meter.uncore_w();
        for (pu, t) in kernel.occupied_pus() {
            let core = places[pu].core;
            threads[t].static_w = meter.core_w(core, true) / f64::from(busy[core]);
        }
    }

    pub(crate) fn instruction_j(&self, thread: &SimulatedThread, pu: usize) -> f64 {
        let core = self.chip.places()[pu].core;
        let mix = &thread.demand.phase.spec.mix;
        self.meter.instruction_j(core, mix, &thread.rates.flow)
    }

    /// Updates a thread's warming with its rates at a CPU of the chip.
    pub(crate) fn update_warming(
        &self,
        thread: &mut SimulatedThread,
        pu: usize,
        look: impl FnOnce(&mut CacheWarming, &WarmingPlace<'_>),
    ) {
        let mut warming = std::mem::take(&mut thread.caches.warming);
        let here = WarmingPlace {
            chip: &self.chip,
            meter: self.meter.as_ref(),
            pu,
            home: thread.demand.home_node,
            rates: &thread.rates,
            phase: &thread.demand.phase,
        };
        look(&mut warming, &here);
        thread.caches.warming = warming;
    }
}
