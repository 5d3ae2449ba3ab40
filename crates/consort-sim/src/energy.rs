//! Power and energy: what cores, caches, memory and uncore draw.
//!
//! Every thread's work costs energy by instruction class, cache access and line
//! ([`EnergyModel::work_nj`]). A core draws its static power while any of its CPUs runs something
//! and a fraction of it else; the uncore always draws its own. Power is constant between two
//! events, so energy is power times time and adds up over any split of time.
//!
//! Pitfall: fetching instructions from the L1I is part of an instruction's own energy (see
//! [`InstructionEnergy`](crate::machine::InstructionEnergy)); only its misses are accesses here.

use crate::chip::Chip;
use crate::contention::InstructionActivity;
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
    /// Of an access to the LLC of each core; 0 if memory comes behind the L2.
    llc_nj: Vec<f64>,
    line_nj: f64,
    uncore_w: f64,
}

impl EnergyModel {
    /// The model of a chip.
    pub fn new(chip: &Chip) -> Self {
        let (spec, places) = (chip.spec(), chip.places());
        let mut cores = vec![0; chip.domains().cores];
        places.iter().for_each(|p| cores[p.core] = p.core_type);
        let mut llc_nj = vec![0.0; cores.len()];
        for place in places.iter().filter(|p| chip.llc_kib(p.llc) > 0.0) {
            llc_nj[place.core] = spec.llc.access_nj;
        }
        let packages = chip.domains().packages as f64;
        Self {
            core_types: chip.core_types().iter().map(|c| c.power.clone()).collect(),
            cores,
            llc_nj,
            line_nj: spec.memory.access_nj,
            uncore_w: packages * spec.uncore_power.static_w,
        }
    }

    /// Energy of work on a core, nJ: per instruction where `mix` are shares and `flow` is per
    /// instruction, in all where both are totals.
    ///
    /// An L1 miss is an access to the L2; a prefetched line passes through the LLC like a demanded
    /// one.
    pub fn work_nj(&self, core: usize, mix: &MixSpec, flow: &InstructionActivity) -> f64 {
        let power = &self.core_types[self.cores[core]];
        let l2_accesses = flow.l1d_misses + flow.l1i_misses;
        let llc_accesses = flow.llc_accesses + flow.prefetched_lines;
        instructions_nj(power, mix)
            + flow.l1d_accesses * power.l1_nj
            + l2_accesses * power.l2_nj
            + llc_accesses * self.llc_nj[core]
            + flow.memory_lines * self.line_nj
    }
}

impl EnergyMeter for EnergyModel {
    fn instruction_j(&self, core: usize, mix: &MixSpec, flow: &InstructionActivity) -> f64 {
        self.work_nj(core, mix, flow) * J_PER_NJ
    }

    fn core_w(&self, core: usize, busy: bool) -> f64 {
        let power = &self.core_types[self.cores[core]];
        if busy {
            power.static_w
        } else {
            power.static_w * power.idle_fraction
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
