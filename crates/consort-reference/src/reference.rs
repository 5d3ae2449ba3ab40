//! A run: cores in the order of time, until every thread has done its part.

use crate::core::{OpFeed, ReferenceCore};
use crate::memory::MemoryHierarchy;
use crate::outcome::{ReferenceOutcome, ThreadOutcome};
use crate::placement::{ReferenceError, TracePlacement};
use consort_sim::chip::Chip;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;

/// Cycles without a commit after which a thread is stuck: longer than any wait for memory.
const STUCK_CYCLES: u64 = 5_000_000;

/// Amount that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Instructions that every thread commits before measurement begins, for all at once.
    pub warm_up: u64,
    /// Instructions over which each thread is measured from then on.
    pub measured: u64,
}

/// Cores with threads, ready to run.
pub struct Reference<'a> {
    cores: Vec<ReferenceCore<'a>>,
    memory: MemoryHierarchy,
    placements: Vec<TracePlacement<'a>>,
}

/// Progress of the threads of a run.
struct RunProgress {
    length: RunLength,
    /// Accounts at the beginning of measurement.
    begun: Option<Vec<ThreadOutcome>>,
    /// Accounts over the measured part.
    done: Vec<Option<ThreadOutcome>>,
    /// Instructions and cycle of the last progress.
    last: Vec<(u64, u64)>,
}

impl<'a> Reference<'a> {
    /// Puts threads onto the cores of a chip. All that is drawn follows from `seed`.
    ///
    /// # Errors
    /// CPUs that are not there or have two threads, programs without operations.
    pub fn new(
        chip: &Chip,
        placements: &[TracePlacement<'a>],
        seed: u64,
    ) -> Result<Self, ReferenceError> {
        check(chip, placements)?;
        let mut by_core: BTreeMap<usize, Vec<(usize, OpFeed<'a>)>> = BTreeMap::new();
        for (thread, placement) in placements.iter().enumerate() {
            let pu = placement.pu;
            let feed = OpFeed::new(placement.program).ok_or(ReferenceError::Empty { pu })?;
            let core = chip.places()[pu.0 as usize].core;
            by_core.entry(core).or_default().push((thread, feed));
        }
        let random = Pcg64::new(u128::from(seed), 0xc0de);
        let line_bytes = chip.spec().memory.line_bytes;
        let cores = by_core.into_values().map(|threads| {
            let place = chip.places()[placements[threads[0].0].pu.0 as usize];
            ReferenceCore::new(chip.core_spec(place), line_bytes, threads, &random)
        });
        Ok(Self {
            cores: cores.collect(),
            memory: MemoryHierarchy::new(chip, placements, seed),
            placements: placements.to_vec(),
        })
    }

    /// Runs until every thread has done its measured instructions.
    ///
    /// All threads run from the beginning to the end. Once the last of them has committed `warm_up`
    /// instructions, measurement begins for all at once; the account of each is that of its first
    /// `measured` instructions from there, and it keeps running until the others have theirs.
    ///
    /// # Errors
    /// A thread that stands still for good.
    pub fn run(mut self, length: RunLength) -> Result<ReferenceOutcome, ReferenceError> {
        let mut progress = RunProgress::new(length, self.placements.len());
        loop {
            let Some(core) = self.earliest_core() else {
                return Err(ReferenceError::Nothing);
            };
            self.step(core);
            let stuck = progress.note_progress(&self.cores[core], &self.memory);
            if let Some(thread) = stuck {
                let (pu, cycles) = (self.placements[thread].pu, STUCK_CYCLES);
                return Err(ReferenceError::Stuck { pu, cycles });
            }
            if progress.is_warm() {
                progress.begin_measurement(&self.cores, &self.memory);
            }
            if let Some(threads) = progress.outcomes() {
                return Ok(ReferenceOutcome { threads });
            }
        }
    }

    /// The core whose next cycle comes first.
    fn earliest_core(&self) -> Option<usize> {
        let cores = 0..self.cores.len();
        cores.min_by_key(|&core| self.cores[core].clock.start(self.cores[core].cycle))
    }

    fn step(&mut self, core: usize) {
        let now = self.cores[core].clock.start(self.cores[core].cycle);
        for answer in self.memory.advance(now) {
            self.cores
                .iter_mut()
                .for_each(|core| core.accept_reply(&answer));
        }
        self.cores[core].step(&mut self.memory);
    }
}

fn check(chip: &Chip, placements: &[TracePlacement<'_>]) -> Result<(), ReferenceError> {
    if placements.is_empty() {
        return Err(ReferenceError::Nothing);
    }
    let pus = chip.places().len();
    for (i, &TracePlacement { pu, .. }) in placements.iter().enumerate() {
        if pu.0 as usize >= pus {
            return Err(ReferenceError::NoPu { pu, pus });
        }
        if placements[..i].iter().any(|before| before.pu == pu) {
            return Err(ReferenceError::Twice { pu });
        }
    }
    Ok(())
}

impl RunProgress {
    fn new(length: RunLength, threads: usize) -> Self {
        Self {
            length,
            begun: None,
            done: vec![None; threads],
            last: vec![(0, 0); threads],
        }
    }

    /// Notes where the threads of a core are; one that is stuck.
    fn note_progress(
        &mut self,
        core: &ReferenceCore<'_>,
        memory: &MemoryHierarchy,
    ) -> Option<usize> {
        let mut stuck = None;
        for (thread, account) in core.accounts() {
            let (instructions, cycles) = (account.instructions, account.cycles);
            if instructions > self.last[thread].0 {
                self.last[thread] = (instructions, cycles);
            } else if cycles > self.last[thread].1 + STUCK_CYCLES {
                stuck = Some(thread);
            }
            let Some(begun) = self.begun.as_ref().map(|begun| &begun[thread]) else {
                continue;
            };
            let measured = instructions >= begun.instructions + self.length.measured;
            if measured && self.done[thread].is_none() {
                let now = with_memory(account, memory, thread);
                self.done[thread] = Some(now.since(begun));
            }
        }
        stuck
    }

    fn is_warm(&self) -> bool {
        let warm = |&(instructions, _): &(u64, u64)| instructions >= self.length.warm_up;
        self.begun.is_none() && self.last.iter().all(warm)
    }

    fn begin_measurement(&mut self, cores: &[ReferenceCore<'_>], memory: &MemoryHierarchy) {
        let mut begun = vec![ThreadOutcome::default(); self.done.len()];
        for (thread, account) in cores.iter().flat_map(ReferenceCore::accounts) {
            begun[thread] = with_memory(account, memory, thread);
        }
        self.begun = Some(begun);
    }

    fn outcomes(&self) -> Option<Vec<ThreadOutcome>> {
        self.begun.as_ref()?;
        self.done.iter().cloned().collect()
    }
}

fn with_memory(account: &ThreadOutcome, memory: &MemoryHierarchy, thread: usize) -> ThreadOutcome {
    ThreadOutcome {
        memory: memory.counts(thread),
        ..account.clone()
    }
}
