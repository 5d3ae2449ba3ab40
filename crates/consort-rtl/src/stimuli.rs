//! Stimuli drawn by a seed.

use crate::cycle::{CycleInputs, CycleOutputs, USER};
use crate::reference_policy::ReferencePolicy;
use crate::unit_parameters::{UnitParameters, UnitPolicy};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Character of a quantum.
#[derive(Clone, Copy, Debug)]
struct StimulusProfile {
    /// Probability per cycle that a core goes into or leaves the kernel, goes idle or runs again, 0
    /// to 1.
    turns: f64,
    /// Probability per cycle that a thread stalls, goes on, or is switched, 0 to 1.
    calls: f64,
    /// Share of cores that are idle, and in the kernel.
    idle: f64,
    kernel: f64,
    /// Highest instruction count per cycle.
    most_inst: u32,
    most_time: u32,
}

const CALM: StimulusProfile = StimulusProfile {
    turns: 0.02,
    calls: 0.02,
    idle: 0.1,
    kernel: 0.05,
    most_inst: 4000,
    most_time: 5000,
};
/// Quantum in which all cores do all but the same.
const TIES: StimulusProfile = StimulusProfile {
    most_inst: 1,
    most_time: 1,
    ..CALM
};
const STORM: StimulusProfile = StimulusProfile {
    turns: 0.4,
    calls: 0.3,
    idle: 0.4,
    kernel: 0.5,
    ..CALM
};
/// Quantum in which no thread stalls or goes on, so that short-term criticality decides.
const SILENCE: StimulusProfile = StimulusProfile {
    calls: 0.0,
    turns: 0.005,
    idle: 0.0,
    ..CALM
};
/// Quantum in which counters saturate.
const HUGE: StimulusProfile = StimulusProfile {
    most_inst: u32::MAX,
    most_time: u32::MAX,
    ..CALM
};
const DESERTED: StimulusProfile = StimulusProfile {
    turns: 0.3,
    idle: 0.9,
    ..CALM
};
const MOODS: [StimulusProfile; 10] = [
    CALM, CALM, TIES, TIES, STORM, SILENCE, SILENCE, SILENCE, DESERTED, HUGE,
];

/// A chip's surroundings: programs, the operating system, and the cores.
#[derive(Debug)]
pub(crate) struct Stimuli {
    setting: UnitParameters,
    chance: Pcg64,
    mood: StimulusProfile,
    /// Cycles until the quantum ends.
    left: u32,
    cpl: Vec<u8>,
    idle: Vec<bool>,
    /// Cores whose thread was switched out, and its sum not yet read.
    leaving: Vec<Option<u32>>,
    /// Threads that are on no core, with their sums.
    waiting: Vec<(u32, u64)>,
    ready: Vec<bool>,
}

impl Stimuli {
    pub(crate) fn new(setting: &UnitParameters, seed: u64) -> Self {
        let n = setting.cores;
        Self {
            setting: *setting,
            chance: Pcg64::seed_from_u64(seed),
            mood: CALM,
            left: 3,
            cpl: vec![USER; n],
            idle: vec![false; n],
            leaving: vec![None; n],
            waiting: (0..2 * n as u32).map(|thread| (thread, 0)).collect(),
            ready: vec![true; n],
        }
    }

    /// The next cycle; `standing` are the groups with an exchange under way.
    pub(crate) fn next_cycle(
        &mut self,
        policy: &ReferencePolicy,
        standing: &[bool],
    ) -> CycleInputs {
        let mut inputs = CycleInputs::quiet_cycle(&self.setting);
        if self.left == 0 {
            self.mood = MOODS[self.chance.random_range(0..MOODS.len())];
            self.left = self.chance.random_range(1..6);
            for core in 0..self.setting.cores {
                self.draw_core_state(core, policy, 1.0);
            }
        }
        self.left -= 1;
        // Units that still divide take the quantum's end later, and then not all at once.
        if self.left == 0 && self.setting.groups > 1 && self.ready.contains(&false) {
            self.left = 1;
        }
        inputs.tick = self.left == 0;
        for (group, ack) in inputs.ack.iter_mut().enumerate() {
            *ack = standing[group] && self.chance.random_bool(0.6);
        }
        for core in 0..self.setting.cores {
            self.draw_core_state(core, policy, self.mood.turns);
            inputs.inst[core] = self.chance.random_range(0..=self.mood.most_inst);
            if self.setting.policy == UnitPolicy::Tcs && self.ready[core] {
                self.draw_thread_call(core, policy, &mut inputs);
            }
        }
        inputs.time = self.chance.random_range(0..=self.mood.most_time);
        if self.setting.policy == UnitPolicy::Tcs && self.chance.random_bool(0.3) {
            inputs.most_cycles = self.chance.random_range(2..100);
        }
        self.apply_levels(inputs)
    }

    /// Returns a cycle in which nothing happens but that exchanges are done; the large cores may
    /// leave the kernel.
    pub(crate) fn quiet_cycle(
        &mut self,
        policy: &ReferencePolicy,
        standing: &[bool],
        most: u32,
    ) -> CycleInputs {
        let mut inputs = CycleInputs::quiet_cycle(&self.setting);
        inputs.ack = standing.to_vec();
        inputs.most_cycles = most;
        for group in 0..self.setting.groups {
            self.cpl[policy.core_on_large(group)] = USER;
        }
        self.apply_levels(inputs)
    }

    fn apply_levels(&self, mut inputs: CycleInputs) -> CycleInputs {
        inputs.cpl.clone_from(&self.cpl);
        inputs.idle.clone_from(&self.idle);
        inputs
    }

    /// Lets a core change its mode, or go idle or run again, with that probability.
    fn draw_core_state(&mut self, core: usize, policy: &ReferencePolicy, likely: f64) {
        if self.chance.random_bool(likely) {
            let kernel = self.chance.random_bool(self.mood.kernel);
            self.cpl[core] = if kernel {
                self.chance.random_range(0..USER)
            } else {
                USER
            };
        }
        // Under tcs a core is idle only once its thread is switched out.
        let may = self.setting.policy != UnitPolicy::Tcs || policy.thread(core).is_none();
        if may && self.chance.random_bool(likely) {
            self.idle[core] = self.chance.random_bool(self.mood.idle);
        }
    }

    /// Lets a thread stall, go on, or be switched.
    fn draw_thread_call(
        &mut self,
        core: usize,
        policy: &ReferencePolicy,
        inputs: &mut CycleInputs,
    ) {
        let happens = self.chance.random_bool(self.mood.calls);
        let seated = policy.thread(core);
        if seated.is_none() && self.leaving[core].is_none() {
            if happens || self.chance.random_bool(0.2) {
                let at = self.chance.random_range(0..self.waiting.len());
                inputs.restore[core] = Some(self.waiting.swap_remove(at));
                self.idle[core] = false;
            }
        } else if happens && seated.is_some() {
            if self.chance.random_bool(0.3) {
                inputs.save[core] = true;
                self.leaving[core] = seated;
            } else {
                let goes_on = self.chance.random_bool(0.2) || !policy.is_active(core);
                inputs.call[core] = Some(goes_on);
            }
        }
    }

    /// Hears the outputs of the units: cores that can be called, and the sums of threads that have
    /// left.
    pub(crate) fn note_outputs(&mut self, outputs: &CycleOutputs) {
        self.ready.clone_from(&outputs.ready_next);
        for core in 0..self.setting.cores {
            if outputs.ready_next[core]
                && let Some(thread) = self.leaving[core].take()
            {
                self.waiting.push((thread, outputs.sums[core]));
            }
        }
    }

    /// Returns true where a quantum has just ended.
    pub(crate) fn is_between_quanta(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn draw_bool(&mut self, probability: f64) -> bool {
        self.chance.random_bool(probability)
    }
}
