//! Power and energy: what cores, caches, memory and uncore draw.
//!
//! Every thread's work costs energy by instruction class, cache access and line
//! ([`EnergyModel::work_nj`]). A core draws its static power while any of its PUs
//! runs something and a fraction of it else; the uncore always draws its own.
//! Power is constant between two events, so energy is power times time and adds
//! up over any split of time.
//!
//! Pitfall: fetching instructions from the L1I is part of an instruction's own
//! energy (see [`InstructionEnergy`](crate::machine::InstructionEnergy)); only
//! its misses are accesses here.

use crate::chip::Chip;
use crate::contention::{Flow, ThreadRates};
use crate::engine::EnergyMeter;
use crate::machine::CorePower;
use crate::program::MixSpec;

/// Joules per nanojoule.
const J_PER_NJ: f64 = 1e-9;

/// A machine's powers and energies.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyModel {
    core_types: Vec<CorePower>,
    /// Core type of each core.
    cores: Vec<usize>,
    /// Core of each PU.
    core_of: Vec<usize>,
    llc_nj: f64,
    line_nj: f64,
    uncore_w: f64,
}

/// A thread on a PU and how it runs.
#[derive(Clone, Copy, Debug)]
pub struct Working<'a> {
    /// Number of the PU; no PU has two.
    pub pu: usize,
    /// Its instruction mix.
    pub mix: &'a MixSpec,
    /// Its rates.
    pub rates: &'a ThreadRates,
}

/// Power that one thread draws.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadPower {
    /// By its own work, W.
    pub dynamic_w: f64,
    /// Its part of its core's static power, which the threads on a core share equally, W.
    pub static_w: f64,
}

/// Energy that one thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadEnergy {
    /// By its own work, J.
    pub dynamic_j: f64,
    /// Its part of its core's static energy, J.
    pub static_j: f64,
}

/// Power, constant between two events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerSplit {
    /// Each thread, in the order in which they were given.
    pub threads: Vec<ThreadPower>,
    /// Cores on which nothing runs, W.
    pub idle_w: f64,
    /// Uncore, W.
    pub uncore_w: f64,
}

/// Energy over a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergySplit {
    /// Each thread, in the order in which they were given.
    pub threads: Vec<ThreadEnergy>,
    /// Cores on which nothing ran, J.
    pub idle_j: f64,
    /// Uncore, J.
    pub uncore_j: f64,
}

impl EnergyModel {
    /// The model of a chip.
    pub fn new(chip: &Chip) -> Self {
        let (spec, places) = (chip.spec(), chip.places());
        let mut cores = vec![0; chip.domains().cores];
        places.iter().for_each(|p| cores[p.core] = p.core_type);
        let packages = chip.domains().packages as f64;
        Self {
            core_types: chip.core_types().iter().map(|c| c.power.clone()).collect(),
            cores,
            core_of: places.iter().map(|place| place.core).collect(),
            llc_nj: spec.llc.access_nj,
            line_nj: spec.memory.access_nj,
            uncore_w: packages * spec.uncore_power.static_w,
        }
    }

    /// Energy of work on a core, nJ: per instruction where `mix` are shares and `flow` is per
    /// instruction, in all where both are totals.
    ///
    /// An L1 miss is an access to the L2; a line that is prefetched passes through the LLC as one
    /// that is asked for does.
    pub fn work_nj(&self, core: usize, mix: &MixSpec, flow: &Flow) -> f64 {
        let power = &self.core_types[self.cores[core]];
        let l2_accesses = flow.l1d_misses + flow.l1i_misses;
        let llc_accesses = flow.llc_accesses + flow.prefetched_lines;
        instructions_nj(power, mix)
            + flow.l1d_accesses * power.l1_nj
            + l2_accesses * power.l2_nj
            + llc_accesses * self.llc_nj
            + flow.memory_lines * self.line_nj
    }

    /// Power while these threads run.
    pub fn power(&self, running: &[Working<'_>]) -> PowerSplit {
        let mut busy = vec![0_u32; self.cores.len()];
        running.iter().for_each(|w| busy[self.core_of[w.pu]] += 1);
        let share = |working: &Working<'_>| {
            let core = self.core_of[working.pu];
            let nj = self.work_nj(core, working.mix, &working.rates.flow);
            ThreadPower {
                dynamic_w: nj * J_PER_NJ * working.rates.ips,
                static_w: self.core_power(core).static_w / f64::from(busy[core]),
            }
        };
        let idle = (0..busy.len()).filter(|&core| busy[core] == 0);
        PowerSplit {
            threads: running.iter().map(share).collect(),
            idle_w: idle.map(|core| self.idle_w(core)).sum(),
            uncore_w: self.uncore_w,
        }
    }

    fn core_power(&self, core: usize) -> &CorePower {
        &self.core_types[self.cores[core]]
    }

    fn idle_w(&self, core: usize) -> f64 {
        let power = self.core_power(core);
        power.static_w * power.idle_fraction
    }
}

impl EnergyMeter for EnergyModel {
    fn instruction_j(&self, core: usize, mix: &MixSpec, flow: &Flow) -> f64 {
        self.work_nj(core, mix, flow) * J_PER_NJ
    }

    fn core_w(&self, core: usize, busy: bool) -> f64 {
        if busy {
            self.core_power(core).static_w
        } else {
            self.idle_w(core)
        }
    }

    fn uncore_w(&self) -> f64 {
        self.uncore_w
    }
}

fn instructions_nj(power: &CorePower, mix: &MixSpec) -> f64 {
    let nj = &power.instruction_nj;
    mix.int * nj.int
        + mix.fp * nj.fp
        + mix.vector * nj.vector
        + mix.load * nj.load
        + mix.store * nj.store
        + mix.branch * nj.branch
}

impl ThreadPower {
    /// Both parts, W.
    pub fn total_w(self) -> f64 {
        self.dynamic_w + self.static_w
    }

    /// The energy of drawing this power for a time.
    pub fn over(self, seconds: f64) -> ThreadEnergy {
        ThreadEnergy {
            dynamic_j: self.dynamic_w * seconds,
            static_j: self.static_w * seconds,
        }
    }
}

impl ThreadEnergy {
    /// Both parts, J.
    pub fn total_j(self) -> f64 {
        self.dynamic_j + self.static_j
    }

    /// Adds the energy of another time.
    pub fn add(&mut self, other: Self) {
        self.dynamic_j += other.dynamic_j;
        self.static_j += other.static_j;
    }
}

impl PowerSplit {
    /// Power of everything, W.
    pub fn total_w(&self) -> f64 {
        let threads: f64 = self.threads.iter().map(|t| t.total_w()).sum();
        threads + self.idle_w + self.uncore_w
    }

    /// The energy of drawing this power for a time.
    pub fn over(&self, seconds: f64) -> EnergySplit {
        EnergySplit {
            threads: self.threads.iter().map(|t| t.over(seconds)).collect(),
            idle_j: self.idle_w * seconds,
            uncore_j: self.uncore_w * seconds,
        }
    }
}

impl EnergySplit {
    /// Energy of everything, J.
    pub fn total_j(&self) -> f64 {
        let threads: f64 = self.threads.iter().map(|t| t.total_j()).sum();
        threads + self.idle_j + self.uncore_j
    }
}
