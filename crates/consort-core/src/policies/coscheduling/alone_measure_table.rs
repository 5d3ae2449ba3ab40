//! Measures of each program alone: on all cores, and on one where that is needed.

use crate::coscheduling::{CoscheduleSlot, ProgramMeasure, SlotTrial};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Measures of programs alone, by program and cores.
#[derive(Clone, Debug, Default)]
pub(super) struct AloneMeasureTable(BTreeMap<(ProgramId, u32), ProgramMeasure>);

impl AloneMeasureTable {
    /// Forgets programs that are gone.
    pub(super) fn retain(&mut self, programs: &[ProgramId]) {
        self.0.retain(|(program, _), _| programs.contains(program));
    }

    /// Forgets the measures of a program.
    pub(super) fn forget(&mut self, program: ProgramId) {
        self.0.retain(|(other, _), _| *other != program);
    }

    /// Takes the trial of a slot of one program.
    pub(super) fn record_trial(&mut self, trial: &SlotTrial) {
        if let ([team], [measure]) = (&trial.slot.teams[..], &trial.measures[..]) {
            self.0.insert((team.program, team.cores), *measure);
        }
    }

    /// The next slot to sample: all cores for everybody first, then the other numbers.
    pub(super) fn next_missing_slot(
        &self,
        programs: &[ProgramId],
        cores: &[u32],
    ) -> Option<CoscheduleSlot> {
        let of = |&cores: &u32| programs.iter().map(move |&program| (program, cores));
        let mut all = cores.iter().flat_map(of);
        let missing = all.find(|key| !self.0.contains_key(key));
        missing.map(|(program, cores)| CoscheduleSlot::alone(program, cores))
    }

    /// Trial of a slot of one program that has been sampled.
    pub(super) fn sampled_trial(&self, slot: &CoscheduleSlot) -> Option<SlotTrial> {
        let [team] = slot.teams[..] else {
            return None;
        };
        let measure = self.get(team.program, team.cores)?;
        Some(SlotTrial {
            slot: slot.clone(),
            measures: vec![*measure],
        })
    }

    pub(super) fn get(&self, program: ProgramId, cores: u32) -> Option<&ProgramMeasure> {
        self.0.get(&(program, cores))
    }

    /// Returns true where a program's throughput on all cores is within `alpha` of as many times
    /// that on one. The source does not say how it knows; here both are measured.
    pub(super) fn is_near_linear(&self, program: ProgramId, cores: u32, alpha: f64) -> bool {
        let throughput = |cores| {
            self.get(program, cores)
                .map_or(0.0, ProgramMeasure::throughput)
        };
        let linear = throughput(1) * f64::from(cores);
        linear > 0.0 && throughput(cores) >= linear * (1.0 - alpha)
    }
}
