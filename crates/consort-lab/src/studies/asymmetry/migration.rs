//! Cost to a thread of changing places with another one again and again.
//!
//! Measured by the cycles of the misses that the thread would not have had in the caches that it left:
//! the same instructions with and without them, so that a program's phases do not matter. A run of the
//! same time without costs would be ahead, in other phases. The other thread is a copy of the same
//! program, because a thread by itself would find the caches of either core as it left them.

use super::super::pinned_settings;
use super::start_copies;
use crate::simulate::part_error;
use crate::simulate::programs::staggered_copies;
use crate::study::StudyError;
use consort_core::Machine;
use consort_experiment::watch::CoreKind;
use consort_sim::chip::Chip;
use consort_sim::engine::SimulationSettings;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The hardware's quantum, ns.
pub(crate) const QUANTUM_NS: u64 = 1_000_000;
/// Cycles to save and restore registers at an exchange (the source's section 4.2).
const REGISTERS_CYCLES: f64 = 1000.0;
/// More work than any run does.
const ENDLESS: f64 = 1e18;

/// Two cores between which a thread goes to and fro.
pub struct ExchangePath {
    /// CPUs of either core; the first is that of the first large core.
    pus: [usize; 2],
}

/// Cost of an exchange to a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExchangeCost {
    /// Cycles to fetch again what it held in caches that the cores do not share.
    pub refill_cycles: f64,
    /// All that it costs, registers and pipeline included, as a share of the quantum, 0 to 1.
    pub quantum_share: f64,
}

impl ExchangePath {
    /// Path from the first large core to the first other one of a kind in the same LLC domain, or
    /// in another.
    pub(crate) fn from_large(chip: &Chip, to: CoreKind, shared: bool) -> Option<Self> {
        let pus = 0..chip.places().len();
        let llc = |pu: usize| chip.places()[pu].llc;
        let large = pus
            .clone()
            .find(|&pu| CoreKind::from_pu(chip, pu) == CoreKind::Large)?;
        let is_end = |&pu: &usize| {
            pu != large && CoreKind::from_pu(chip, pu) == to && (llc(pu) == llc(large)) == shared
        };
        let end = pus.into_iter().find(is_end)?;
        Some(Self { pus: [large, end] })
    }

    /// Path from the first large core to the first small one in the same LLC domain, or in another.
    pub fn to_small(chip: &Chip, shared: bool) -> Option<Self> {
        Self::from_large(chip, CoreKind::Small, shared)
    }

    /// Cycles that caches take to refill after an exchange: the mean over so many copies of a
    /// program, each with a seed of its own.
    ///
    /// # Errors
    /// A program that cannot run.
    pub fn refill_cycles(
        &self,
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        exchanges: u32,
        (times, seed): (usize, u64),
    ) -> Result<f64, StudyError> {
        let costs = self.place_costs(chip, program, exchanges, (times, seed))?;
        let cycles = costs.iter().map(|cost| cost.refill_cycles);
        Ok(cycles.sum::<f64>() / times as f64)
    }

    /// The cost from each of so many places in the phases of a program, each with a seed of its
    /// own, because it depends on the data that a phase holds.
    pub(super) fn place_costs(
        &self,
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        moves: u32,
        (places, seed): (usize, u64),
    ) -> Result<Vec<ExchangeCost>, StudyError> {
        let places = staggered_copies(program, places).entries;
        let seeded = places.iter().zip(seed..);
        seeded
            .map(|(place, seed)| self.cost(chip, &place.program, moves, seed))
            .collect()
    }

    /// Exchanges two copies of a program so many times, rounded to whole rounds, once every
    /// quantum; nothing else runs on the machine.
    ///
    /// # Errors
    /// A program that cannot run.
    fn cost(
        &self,
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        moves: u32,
        seed: u64,
    ) -> Result<ExchangeCost, StudyError> {
        // Whole rounds, after which both copies are where they began.
        let moves = moves / 2 * 2;
        let ends = self.pus.map(|pu| chip.places()[pu]);
        let hz = ends.map(|place| chip.frequency_hz(place));
        let hz = hz.iter().sum::<f64>() / 2.0;
        let drain = ends.map(|place| chip.core_spec(place).pipeline_depth_cycles);
        let fixed = REGISTERS_CYCLES + drain.iter().sum::<f64>() / 2.0;
        let refill_cycles = self.count_refill(chip, program, moves, seed)? / f64::from(moves);
        Ok(ExchangeCost {
            refill_cycles,
            quantum_share: (refill_cycles + fixed) / hz / (QUANTUM_NS as f64 * 1e-9),
        })
    }

    /// Cycles of the first copy's refills over all quanta.
    fn count_refill(
        &self,
        chip: &Arc<Chip>,
        program: &Arc<ProgramSpec>,
        moves: u32,
        seed: u64,
    ) -> Result<f64, StudyError> {
        let settings = SimulationSettings {
            // Exchanges are remappings of logical cores, which the operating system does not see.
            logical_cores: true,
            ..pinned_settings(seed)
        };
        let mut machine = start_copies(chip, program, (2, ENDLESS), &settings, QUANTUM_NS)?;
        for quantum in 0..=moves {
            if quantum > 0 {
                machine.observe().map_err(part_error(&program.name))?;
            }
            // Odd quanta are those with the copies exchanged.
            let remapped = machine.remap(&self.mapping(chip, quantum % 2 == 1));
            remapped.map_err(part_error(&program.name))?;
        }
        machine.observe().map_err(part_error(&program.name))?;
        let oracle = machine.oracle();
        let counts = oracle.threads().next().and_then(|id| oracle.counts(id));
        Ok(counts.map_or(0.0, |counts| counts.refill_cycles))
    }

    /// The first two logical cores, on which the operating system starts the copies, at both
    /// ends, or exchanged.
    fn mapping(&self, chip: &Chip, exchanged: bool) -> Vec<usize> {
        let mut physical: Vec<usize> = (0..chip.places().len()).collect();
        let [first, second] = self.pus;
        physical.swap(0, first);
        physical.swap(1, second);
        if exchanged {
            physical.swap(0, 1);
        }
        physical
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::chips::chip;
    use crate::simulate::programs::find;

    fn cost(name: &str, shared: bool) -> ExchangeCost {
        let chip = chip("acmp-2+6").unwrap();
        let path = ExchangePath::from_large(&chip, CoreKind::Small, shared).unwrap();
        path.cost(&chip, &find(name).unwrap(), 400, 1).unwrap()
    }

    #[test]
    fn program_without_data_refetches_only_code() {
        let idle = cost("pure-int", true);
        // Its code of at most 64 KiB is all that it fetches again, 1024 lines at 30 cycles.
        assert!((0.0..30_800.0).contains(&idle.refill_cycles), "{idle:?}");
        let fixed = (REGISTERS_CYCLES + 8.5) / 2.66e6;
        let expect = fixed + idle.refill_cycles / 2.66e6;
        assert!((idle.quantum_share - expect).abs() < 1e-6, "{idle:?}");
    }

    /// Two programs that keep all of their data in the L1, so that phases cost nothing to refill:
    /// one with a slow and a fast half of 4.3 ms on the large core.
    #[test]
    fn phases_of_unlike_speed_cost_nothing() {
        let chip = chip("acmp-2+6").unwrap();
        let path = ExchangePath::from_large(&chip, CoreKind::Small, true).unwrap();
        let mut program = ProgramSpec::clone(&find("pure-int").unwrap());
        program.phases[0].length_ginstr = 0.02;
        program.phases.push(program.phases[0].clone());
        program.phases[1].ilp.a *= 0.25;
        program.phases[1].ilp.measured = None;
        let refill = |program| {
            path.cost(&chip, &Arc::new(program), 40, 1)
                .unwrap()
                .refill_cycles
        };
        let mut even = program.clone();
        even.phases.truncate(1);
        let (phased, even) = (refill(program), refill(even));
        assert!(
            (phased - even).abs() < 0.05 * even.max(20.0),
            "{phased} {even}"
        );
    }

    #[test]
    fn private_caches_cost_more_than_a_shared_one() {
        for name in ["bzip2", "perlbench", "mcf", "gcc"] {
            let (near, far) = (cost(name, true), cost(name, false));
            assert!(
                far.refill_cycles > 1.5 * near.refill_cycles,
                "{name}: {near:?} {far:?}"
            );
        }
    }

    #[test]
    fn single_region_has_no_path_out() {
        assert!(
            ExchangePath::from_large(&chip("acmp-1+3").unwrap(), CoreKind::Small, false).is_none()
        );
    }
}
