//! The cumulative score of SciMark 2.0: millions of floating-point operations per second of each
//! kernel, summed over kernels and threads (Peternier et al., section 5.6; Pozo and Miller, SciMark).

use consort_experiment::Sequence;
use consort_experiment::watch::{FpuUse, FpuWatch};
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::engine::{FIRST_PID, Observer, PuUse, RunSegment};
use std::cell::RefCell;
use std::rc::Rc;

/// Share of a kernel's instructions from which it counts as done: sums over segments round.
const DONE: f64 = 1.0 - 1e-6;

/// A kernel in the order of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelPart {
    /// Instructions of its turn.
    pub(super) instructions: f64,
    /// Floating-point operations per instruction.
    pub(super) flops: f64,
}

impl KernelPart {
    /// The part of that number; `None` if there is none.
    pub(super) fn new(sequence: &Sequence, number: usize) -> Option<Self> {
        let (program, instructions) = sequence.part(number)?;
        let all: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
        let phases = program.phases.iter();
        let fp: f64 = phases.map(|p| p.length_ginstr * p.mix.fp).sum();
        Some(Self {
            instructions,
            flops: fp / all,
        })
    }
}

/// Observer of the FPUs' use and of the score; clones measure the same run.
#[derive(Clone)]
pub(super) struct ScoredFpuWatch {
    fpu: FpuWatch,
    score: Rc<RefCell<ScoreMeter>>,
}

struct ScoreMeter {
    /// Clock of each CPU, cycles per picosecond.
    cycles_per_ps: Vec<f64>,
    /// Kernels and progress of each thread, in the order of their numbers.
    threads: Vec<(Vec<KernelPart>, ThreadScore)>,
}

/// Progress of a thread in its kernels.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadScore {
    part: usize,
    /// Start of the kernel, ps.
    from_ps: u64,
    /// Instructions of the kernel so far.
    instructions: f64,
    /// Sum over the kernels that are done.
    mflops: f64,
}

impl ScoredFpuWatch {
    /// Watches a run on this machine whose first threads execute these kernels.
    pub(super) fn new(chip: &Chip, kernels: Vec<Vec<KernelPart>>) -> Self {
        let clock = |place: &PuPlace| chip.core_spec(*place).frequency_ghz * 1e-3;
        let score = ScoreMeter {
            cycles_per_ps: chip.places().iter().map(clock).collect(),
            threads: { kernels.into_iter() }
                .map(|kernels| (kernels, ThreadScore::default()))
                .collect(),
        };
        Self {
            fpu: FpuWatch::new(chip),
            score: Rc::new(RefCell::new(score)),
        }
    }

    /// Use of the FPUs, and the score; NaN if no thread executes kernels.
    pub(super) fn finish(&self) -> (FpuUse, f64) {
        let meter = self.score.borrow();
        let score = match meter.threads.is_empty() {
            true => f64::NAN,
            false => meter.threads.iter().map(|(_, thread)| thread.mflops).sum(),
        };
        (self.fpu.finish(), score)
    }
}

impl Observer for ScoredFpuWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        self.fpu.note_segment(segment);
        self.score.borrow_mut().note(segment);
    }
}

impl ScoreMeter {
    fn note(&mut self, segment: &RunSegment<'_>) {
        let number = (segment.thread.tid - FIRST_PID) as usize;
        let Some((kernels, thread)) = self.threads.get_mut(number) else {
            return;
        };
        let Some(kernel) = kernels.get(thread.part) else {
            return;
        };
        if segment.doing != PuUse::Work {
            return;
        }
        let cycles = (segment.to_ps - segment.from_ps) as f64 * self.cycles_per_ps[segment.pu];
        thread.instructions += cycles / segment.rates.cpi;
        if thread.instructions >= DONE * kernel.instructions {
            let micros = (segment.to_ps - thread.from_ps) as f64 / 1e6;
            *thread = ThreadScore {
                part: thread.part + 1,
                from_ps: segment.to_ps,
                instructions: 0.0,
                mflops: thread.mflops + kernel.flops * kernel.instructions / micros,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{DescriptionSource as _, Presets};
    use consort_core::ThreadId;
    use consort_sim::contention::ThreadRates;

    #[test]
    fn score_sums_flops_per_second_over_kernels_and_threads() {
        let chip = Presets.load_chip("bulldozer-6282se").unwrap();
        let hz = chip.core_spec(chip.places()[0]).frequency_ghz * 1e9;
        let part = |flops| KernelPart {
            instructions: 2.0 * hz,
            flops,
        };
        let mut watch = ScoredFpuWatch::new(&chip, vec![vec![part(0.5), part(0.25)]]);
        let rates = ThreadRates {
            cpi: 1.0,
            ..ThreadRates::default()
        };
        let mut run = |number, from_s: u64, to_s: u64, doing| {
            watch.note_segment(&RunSegment {
                thread: ThreadId {
                    pid: FIRST_PID + number,
                    tid: FIRST_PID + number,
                    start_ticks: 0,
                },
                name: "x",
                pu: 0,
                from_ps: from_s * 1_000_000_000_000,
                to_ps: to_s * 1_000_000_000_000,
                doing,
                phase: (0, 1),
                kernel_share: 0.0,
                rates: &rates,
            });
        };
        // 2 s of work each; the second kernel also waits for 2 s. The other thread has no kernels.
        run(0, 0, 1, PuUse::Work);
        run(1, 0, 1, PuUse::Work);
        run(0, 1, 2, PuUse::Work);
        run(0, 2, 4, PuUse::Kernel);
        run(0, 4, 6, PuUse::Work);
        let mips = 2.0 * hz / 1e6;
        let expected = 0.5 * mips / 2.0 + 0.25 * mips / 4.0;
        assert!((watch.finish().1 / expected - 1.0).abs() < 1e-9);
    }
}
