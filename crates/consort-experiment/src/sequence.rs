//! Programs that one thread runs one after the other, in an order drawn for it.
//!
//! Usage: [`Sequence::measure`] finds how many instructions of each program take the same time
//! alone; [`Sequence::program`] makes one program of them in a given order, and
//! [`Sequence::work`] is what one pass through it is. Pitfall: the parts are made for one chip;
//! elsewhere they take unlike times.

use super::alone::{AloneWork, measure_alone};
use super::error::ExperimentError;
use consort_sim::chip::Chip;
use consort_sim::program::{Burstiness, PhaseSpec, ProgramSpec};
use consort_sim::workload::ProgramInstance;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stream numbers of the threads' draws are this far apart, so that those of close seeds differ.
const THREAD_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Programs of one thread, each cut to the same time alone.
#[derive(Clone, Debug)]
pub struct Sequence {
    parts: Vec<SequencePart>,
    part_s: f64,
}

#[derive(Clone, Debug)]
struct SequencePart {
    program: Arc<ProgramSpec>,
    /// Instructions of its one turn.
    instructions: f64,
}

impl Sequence {
    /// Cuts every program to what it does alone on the chip in `part_s` seconds.
    ///
    /// # Errors
    /// Programs with several threads, with input and output, or with unlike burstiness, which one
    /// program cannot have; programs that make no progress.
    pub fn measure(
        chip: &Arc<Chip>,
        programs: &[Arc<ProgramSpec>],
        part_s: f64,
        seed: u64,
    ) -> Result<Self, ExperimentError> {
        let burstiness = programs.first().and_then(|p| p.burstiness);
        let part = |program: &Arc<ProgramSpec>| {
            check_program(program, burstiness)?;
            let instructions = measure_alone(chip, &instance(program), part_s, seed)?.instructions;
            let program = Arc::clone(program);
            Ok(SequencePart {
                program,
                instructions,
            })
        };
        let parts = programs.iter().map(part);
        let parts = parts.collect::<Result<_, ExperimentError>>()?;
        Ok(Self { parts, part_s })
    }

    /// The order in which a thread runs the programs: a permutation of their numbers that follows
    /// from seed and thread.
    pub fn order(&self, seed: u64, thread: u64) -> Vec<usize> {
        let stream = thread.wrapping_add(1).wrapping_mul(THREAD_STRIDE);
        let mut rng = Pcg64::seed_from_u64(seed ^ stream);
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.shuffle(&mut rng);
        order
    }

    /// One program whose phases are those of the parts in this order, for its own instructions
    /// each; numbers that name no part are passed over.
    pub fn program(&self, name: &str, order: &[usize]) -> ProgramSpec {
        let chosen = || order.iter().filter_map(|&number| self.parts.get(number));
        let titles: Vec<&str> = chosen().map(|part| part.program.name.as_str()).collect();
        ProgramSpec {
            name: name.to_owned(),
            title: format!("one after the other: {}", titles.join(", ")),
            suite: "composed".to_owned(),
            sources: self.sources(),
            page_faults_per_minstr: None,
            phases: chosen().flat_map(SequencePart::phases).collect(),
            burstiness: self.parts.first().and_then(|part| part.program.burstiness),
            threads: None,
            io: None,
            processes: None,
        }
    }

    /// The program of a part and the instructions of its turn; `None` if there is no such part.
    pub fn part(&self, number: usize) -> Option<(&ProgramSpec, f64)> {
        let part = self.parts.get(number)?;
        Some((&part.program, part.instructions))
    }

    /// One pass through all parts.
    pub fn work(&self) -> AloneWork {
        AloneWork {
            instructions: self.parts.iter().map(|part| part.instructions).sum(),
            alone_s: self.part_s * self.parts.len() as f64,
        }
    }

    fn sources(&self) -> BTreeMap<String, String> {
        let sources = self.parts.iter().map(|part| part.program.sources.clone());
        sources.flatten().collect()
    }
}

impl SequencePart {
    /// The program's phases, shortened or lengthened alike, so that they last for one turn.
    fn phases(&self) -> Vec<PhaseSpec> {
        let phases = &self.program.phases;
        let pass_ginstr: f64 = phases.iter().map(|phase| phase.length_ginstr).sum();
        let factor = self.instructions / 1e9 / pass_ginstr;
        let scaled = |phase: &PhaseSpec| PhaseSpec {
            length_ginstr: phase.length_ginstr * factor,
            ..phase.clone()
        };
        phases.iter().map(scaled).collect()
    }
}

fn check_program(
    program: &ProgramSpec,
    burstiness: Option<Burstiness>,
) -> Result<(), ExperimentError> {
    let why = if program.threads.is_some() {
        "it has threads of its own"
    } else if program.io.is_some() {
        "its input and output cannot be distinguished from the other programs'"
    } else if program.burstiness != burstiness {
        "its burstiness is not that of the first program"
    } else {
        return Ok(());
    };
    let program = program.name.clone();
    Err(ExperimentError::Unfit { program, why })
}

fn instance(program: &Arc<ProgramSpec>) -> ProgramInstance {
    ProgramInstance {
        name: program.name.clone(),
        program: Arc::clone(program),
        threads: 1,
        start_ms: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, program};
    use proptest::prelude::*;

    fn kernels() -> Sequence {
        let names = ["fft", "sor", "lu"];
        let chip = chip("bulldozer-6282se");
        Sequence::measure(&chip, &names.map(program), 0.5, 1).unwrap()
    }

    #[test]
    fn every_part_takes_the_same_time_alone() {
        let sequence = kernels();
        let chip = chip("bulldozer-6282se");
        let whole = Arc::new(sequence.program("all", &[0, 1, 2]));
        let work = sequence.work();
        assert_eq!(work.alone_s, 1.5);
        let done = measure_alone(&chip, &instance(&whole), work.alone_s, 1).unwrap();
        let error = done.instructions / work.instructions - 1.0;
        assert!(error.abs() < 0.02, "{error}");
        for part in 0..3 {
            let one = Arc::new(sequence.program("one", &[part]));
            let length = one.phases[0].length_ginstr * 1e9;
            let half = measure_alone(&chip, &instance(&one), 0.5, 1).unwrap();
            assert!((half.instructions / length - 1.0).abs() < 1e-9, "{part}");
        }
    }

    #[test]
    fn phases_come_in_the_order_that_was_drawn() {
        let program = kernels().program("x", &[2, 0, 1]);
        assert_eq!(program.title, "one after the other: lu, fft, sor");
        let fp: Vec<f64> = program.phases.iter().map(|p| p.mix.fp).collect();
        assert_eq!(fp, [0.300, 0.360, 0.420]);
    }

    #[test]
    fn a_composition_is_a_valid_description() {
        let text = toml::to_string(&kernels().program("x", &[1, 0, 2])).unwrap();
        assert!(
            consort_sim::program::parse("x.toml", &text).is_ok(),
            "{text}"
        );
    }

    #[test]
    fn unfit_programs_are_named_with_the_reason() {
        let check = |name: &str, expect: &str| {
            let programs = ["fft", name].map(program);
            let error = Sequence::measure(&chip("power7"), &programs, 0.1, 1).unwrap_err();
            let expect = format!("{name} cannot be part of a sequence: {expect}");
            assert_eq!(error.to_string(), expect);
        };
        check("mcf", "its burstiness is not that of the first program");
        check("ferret", "it has threads of its own");
    }

    proptest! {
        #[test]
        fn orders_are_seeded_permutations(seed: u64, thread in 0u64..64) {
            let sequence = Sequence { parts: kernels_once(), part_s: 1.0 };
            let order = sequence.order(seed, thread);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..5).collect::<Vec<_>>());
            prop_assert_eq!(sequence.order(seed, thread), order);
        }
    }

    fn kernels_once() -> Vec<SequencePart> {
        let program = program("fft");
        let part = SequencePart {
            program,
            instructions: 1e9,
        };
        vec![part; 5]
    }

    #[test]
    fn threads_and_seeds_differ_in_their_orders() {
        let sequence = Sequence {
            parts: kernels_once(),
            part_s: 1.0,
        };
        let of = |seed| (0..8).map(|t| sequence.order(seed, t)).collect::<Vec<_>>();
        let first = of(1);
        assert!(first.iter().any(|order| *order != first[0]));
        assert_ne!(first, of(2));
    }
}
