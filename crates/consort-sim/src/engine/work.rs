//! A thread's work: its phases, and the points at which something happens.

use super::draw::{BurstFactor, Io};
use super::lock::{KernelReturns, LockAcquisitions};
use crate::phase::Phase;
use crate::program::{MixSpec, PhaseSpec, ProgramSpec};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct PhaseEntry {
    pub(crate) phase: Arc<Phase>,
    pub(crate) instructions: f64,
}

/// Consecutive entries that a thread executes over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PhaseCycle {
    pub(crate) first: usize,
    pub(crate) len: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseTable {
    pub(crate) entries: Vec<PhaseEntry>,
    known: Vec<(Arc<ProgramSpec>, Option<usize>, PhaseCycle)>,
}

impl PhaseTable {
    /// The phases of a program's threads of one stage; equal programs share their entries.
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

    pub(crate) fn pass_instr(&self, cycle: PhaseCycle) -> f64 {
        let entries = &self.entries[cycle.first..cycle.first + cycle.len];
        entries.iter().map(|e| e.instructions).sum()
    }

    /// Returns the phase that so many instructions of a pass, less than all, lead to, and what is
    /// left of it.
    pub(crate) fn phase_at(&self, cycle: PhaseCycle, mut passed: f64) -> (usize, f64) {
        let last = cycle.first + cycle.len - 1;
        for phase in cycle.first..last {
            let length = self.entries[phase].instructions;
            if passed < length {
                return (phase, length - passed);
            }
            passed -= length;
        }
        (last, self.entries[last].instructions - passed)
    }
}

fn entry(spec: &PhaseSpec, mix: Option<MixSpec>) -> PhaseEntry {
    let mut spec = spec.clone();
    if let Some(mix) = mix {
        // The profile's stretches belong to the mix that is replaced.
        (spec.mix, spec.stretches) = (mix, None);
    }
    PhaseEntry {
        phase: Arc::new(Phase::new(&spec)),
        instructions: (spec.length_ginstr * 1e9).max(1.0),
    }
}

/// A thread's position in its work: instructions to the points at which something happens.
#[derive(Clone, Debug)]
pub(crate) struct ThreadWork {
    pub(crate) cycle: PhaseCycle,
    /// Index into the table of phases.
    pub(crate) phase: usize,
    pub(crate) phase_left: f64,
    /// Instructions of its phases that pass while it executes one: those of all threads that share
    /// the work meanwhile.
    pub(crate) pace: f64,
    pub(crate) step_left: f64,
    /// True if it has done its part of the run and repeats it while it waits for its siblings.
    pub(crate) again: bool,
    pub(crate) burst: BurstFactor,
    pub(crate) io: Io,
    /// Locks whose acquisitions are events.
    pub(crate) locks: LockAcquisitions,
    /// Returns from sleeping for locks that are no events.
    pub(crate) returns: KernelReturns,
    /// Returns from page faults.
    pub(crate) faults: KernelReturns,
}

impl ThreadWork {
    /// Instructions to the next of these points.
    pub(crate) fn instructions_left(&self) -> f64 {
        let own = self.phase_left.min(self.step_left);
        own.min(self.burst.left)
            .min(self.io.left)
            .min(self.locks.left)
    }

    pub(crate) fn set_pace(&mut self, pace: f64) {
        self.phase_left *= self.pace / pace;
        self.pace = pace;
    }

    pub(crate) fn note_instructions(&mut self, passed: f64) {
        self.phase_left -= passed;
        self.step_left -= passed;
        self.burst.left -= passed;
        self.io.left -= passed;
        self.locks.left -= passed;
        self.returns.rebase(passed);
        self.faults.rebase(passed);
    }

    /// Cycles per instruction in the kernel that are no events.
    pub(crate) fn kernel_cycles(&self) -> f64 {
        self.returns.kernel_cycles() + self.faults.kernel_cycles()
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
        assert_eq!(phases.phase_at(first, 0.25e9), (first.first, 0.75e9));
    }
}
