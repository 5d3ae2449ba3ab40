//! A thread's work: its phases, and the points at which something happens.

use crate::phase::Phase;
use crate::program::{MixSpec, PhaseSpec, ProgramSpec};
use std::sync::Arc;

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct PhaseEntry {
    pub(crate) phase: Arc<Phase>,
    pub(crate) instructions: f64,
}

/// A run of entries that a thread goes through in a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseCycle {
    pub(crate) first: usize,
    pub(crate) len: usize,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseTable {
    pub(crate) entries: Vec<PhaseEntry>,
    known: Vec<(Arc<ProgramSpec>, Option<usize>, PhaseCycle)>,
}

impl PhaseTable {
    /// The phases of a program's threads of one stage.
    pub(crate) fn intern_cycle(
        &mut self,
        program: &Arc<ProgramSpec>,
        stage: Option<usize>,
    ) -> PhaseCycle {
        let same = |(known, s, _): &&(Arc<ProgramSpec>, Option<usize>, PhaseCycle)| {
            *s == stage && (Arc::ptr_eq(known, program) || known == program)
        };
        if let Some((_, _, cycle)) = self.known.iter().find(same) {
            return *cycle;
        }
        let mix = stage.and_then(|s| program.threads.as_ref()?.stages.get(s)?.mix);
        let cycle = PhaseCycle {
            first: self.entries.len(),
            len: program.phases.len(),
        };
        let entries = program.phases.iter().map(|phase| entry(phase, mix));
        self.entries.extend(entries);
        self.known.push((Arc::clone(program), stage, cycle));
        cycle
    }

    /// Instructions in one pass.
    pub(crate) fn pass_instr(&self, cycle: PhaseCycle) -> f64 {
        let entries = &self.entries[cycle.first..cycle.first + cycle.len];
        entries.iter().map(|e| e.instructions).sum()
    }
}

fn entry(spec: &PhaseSpec, mix: Option<MixSpec>) -> PhaseEntry {
    let mut spec = spec.clone();
    if let Some(mix) = mix {
        // Its stretches were those of another mix.
        (spec.mix, spec.stretches) = (mix, None);
    }
    PhaseEntry {
        phase: Arc::new(Phase::new(&spec)),
        instructions: (spec.length_ginstr * 1e9).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::program;

    #[test]
    fn equal_programs_share_and_stages_differ() {
        let mut phases = PhaseTable::default();
        let first = phases.intern_cycle(&Arc::new(program()), None);
        let again = phases.intern_cycle(&Arc::new(program()), None);
        let stage = phases.intern_cycle(&Arc::new(program()), Some(0));
        assert_eq!(first, again);
        assert_ne!(first, stage);
        assert_eq!(phases.pass_instr(first), 1e9);
    }
}
