//! What programs do alone with every number of cores.

use super::measure::Measure;
use super::slot::{Slot, Trial};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Profiles, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    cores: u32,
    known: BTreeMap<(ProgramId, u32), Measure>,
}

impl Profile {
    pub(super) fn new(cores: u32, alone: &[(ProgramId, Measure)]) -> Self {
        let all = alone.iter().map(|&(id, measure)| ((id, cores), measure));
        Self {
            cores,
            known: all.collect(),
        }
    }

    /// Takes what came of a trial of one program on its own.
    pub(super) fn note(&mut self, trial: &Trial) {
        if let ([team], [measure]) = (&trial.slot.teams[..], &trial.measures[..]) {
            self.known.insert((team.program, team.cores), *measure);
        }
    }

    /// The next program with a number of cores that is not known, fewest cores first.
    pub(super) fn missing(&self, programs: &[ProgramId]) -> Option<Slot> {
        let of = |program: ProgramId| (1..=self.cores).map(move |cores| (program, cores));
        let mut all = programs.iter().copied().flat_map(of);
        let unknown = all.find(|key| !self.known.contains_key(key))?;
        Some(Slot::alone(unknown.0, unknown.1))
    }

    pub(super) fn of(&self, program: ProgramId, cores: u32) -> Option<&Measure> {
        self.known.get(&(program, cores))
    }

    /// Instructions per s; 0 where it is not known.
    pub(super) fn throughput(&self, program: ProgramId, cores: u32) -> f64 {
        self.of(program, cores).map_or(0.0, Measure::throughput)
    }

    /// Throughput over that of one core; 0 where it is not known.
    pub(super) fn speedup(&self, program: ProgramId, cores: u32) -> f64 {
        let one = self.throughput(program, 1);
        if one > 0.0 {
            self.throughput(program, cores) / one
        } else {
            0.0
        }
    }
}
