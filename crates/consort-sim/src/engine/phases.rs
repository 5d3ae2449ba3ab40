//! The phases of all programs of a run, in one table; equal programs share their entries.

use crate::phase::Phase;
use crate::program::{MixSpec, PhaseSpec, ProgramSpec};
use std::sync::Arc;

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) phase: Arc<Phase>,
    pub(crate) instructions: f64,
}

/// A run of entries that a thread goes through in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) first: usize,
    pub(crate) len: usize,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    pub(crate) entries: Vec<Entry>,
    known: Vec<(Arc<ProgramSpec>, Option<usize>, Cycle)>,
}

impl Phases {
    /// The phases of a program's threads of one stage.
    pub(crate) fn cycle(&mut self, program: &Arc<ProgramSpec>, stage: Option<usize>) -> Cycle {
        let same = |(known, s, _): &&(Arc<ProgramSpec>, Option<usize>, Cycle)| {
            *s == stage && (Arc::ptr_eq(known, program) || known == program)
        };
        if let Some((_, _, cycle)) = self.known.iter().find(same) {
            return *cycle;
        }
        let mix = stage.and_then(|s| program.threads.as_ref()?.stages.get(s)?.mix);
        let cycle = Cycle {
            first: self.entries.len(),
            len: program.phases.len(),
        };
        let entries = program.phases.iter().map(|phase| entry(phase, mix));
        self.entries.extend(entries);
        self.known.push((Arc::clone(program), stage, cycle));
        cycle
    }

    /// Instructions in one pass.
    pub(crate) fn pass_instr(&self, cycle: Cycle) -> f64 {
        let entries = &self.entries[cycle.first..cycle.first + cycle.len];
        entries.iter().map(|e| e.instructions).sum()
    }
}

fn entry(spec: &PhaseSpec, mix: Option<MixSpec>) -> Entry {
    let mut spec = spec.clone();
    if let Some(mix) = mix {
        // Its stretches were those of another mix.
        (spec.mix, spec.stretches) = (mix, None);
    }
    Entry {
        phase: Arc::new(Phase::new(&spec)),
        instructions: (spec.length_ginstr * 1e9).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::program;
    use super::*;

    #[test]
    fn equal_programs_share_and_stages_differ() {
        let mut phases = Phases::default();
        let first = phases.cycle(&Arc::new(program()), None);
        let again = phases.cycle(&Arc::new(program()), None);
        let stage = phases.cycle(&Arc::new(program()), Some(0));
        assert_eq!(first, again);
        assert_ne!(first, stage);
        assert_eq!(phases.pass_instr(first), 1e9);
    }
}
