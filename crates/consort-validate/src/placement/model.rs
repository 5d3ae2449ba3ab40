//! Placements that the model of Linux makes of the same threads.

use super::measurement::PlacementCase;
use crate::alone::{instance, run_once_settings};
use crate::error::ValidateError;
use crate::statistics::ClassCounts;
use consort_core::Machine;
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::chip::Chip;
use consort_sim::engine::SimulatedProgram;
use consort_sim::program::{ProgramSpec, ThreadsSpec, presets};
use std::cmp::Reverse;
use std::sync::Arc;

/// A program that does nothing but compute.
pub(super) const SPINNER: &str = "pure-int";
/// Work that nobody comes to the end of, instructions.
const ENDLESS: f64 = 1e18;
/// The model's reading of `after_ms = 0`: the shortest look after the start, ns.
const SOON_NS: u64 = 1_000_000;

/// Number of times that each placement came out.
pub(super) fn count_placements(
    chip: &Arc<Chip>,
    case: &PlacementCase,
    repetitions: u64,
    seed: u64,
) -> Result<ClassCounts, ValidateError> {
    let work = spinners(case)?;
    let quantum_ns = (case.after_ms * 1_000_000).max(SOON_NS);
    let mut counts = ClassCounts::new();
    for repetition in 0..repetitions {
        let settings = run_once_settings(seed.wrapping_add(repetition), "linux");
        let mut machine = build_machine(
            chip,
            &work,
            &settings,
            quantum_ns,
            Box::<NullSampleSource>::default(),
        )?;
        let seen = machine.observe()?.unwrap_or_default();
        let pus = seen.threads.iter().filter_map(|t| t.last_pu);
        let class = placement_class(chip, &pus.map(|pu| pu.0 as usize).collect::<Vec<_>>());
        *counts.entry(class).or_default() += 1;
    }
    Ok(counts)
}

fn spinners(case: &PlacementCase) -> Result<Vec<SimulatedProgram>, ValidateError> {
    let mut program = presets::find(SPINNER)?;
    if case.arrival == "processes" {
        let one = instance(&Arc::new(program), 1, ENDLESS);
        return Ok(vec![one; case.threads as usize]);
    }
    program.threads = Some(independent_threads(case.threads));
    Ok(vec![instance(
        &Arc::<ProgramSpec>::new(program),
        case.threads,
        ENDLESS,
    )])
}

/// Threads that have nothing to do with each other.
fn independent_threads(threads: u32) -> ThreadsSpec {
    ThreadsSpec {
        default: threads,
        max: threads,
        divide_work: false,
        serial_share: 0.0,
        shared_data: 0.0,
        shared_code: 1.0,
        barrier: None,
        lock: None,
        spin_us: 0.0,
        stages: Vec::new(),
    }
}

/// Threads per PU of every core, fullest first, as the measurement writes it: `1|1 1|0 1|0 0|0`.
pub(super) fn placement_class(chip: &Chip, pus: &[usize]) -> String {
    let mut cores: Vec<Vec<usize>> = vec![Vec::new(); chip.domains().cores];
    for (pu, place) in chip.places().iter().enumerate() {
        let threads = pus.iter().filter(|&&other| other == pu).count();
        cores[place.core].push(threads);
    }
    for core in &mut cores {
        core.sort_by_key(|&threads| Reverse(threads));
    }
    cores.sort_by_key(|core| Reverse((core.iter().sum::<usize>(), core.clone())));
    let text = |core: &Vec<usize>| {
        let pus: Vec<String> = core.iter().map(usize::to_string).collect();
        pus.join("|")
    };
    cores.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublishedData;

    fn chip() -> Chip {
        let spec = PublishedData::embedded()
            .parse_machine("forms-machine.toml")
            .unwrap();
        Chip::new(&spec, None).unwrap()
    }

    #[test]
    fn placements_are_written_as_the_measurement_writes_them() {
        let chip = chip();
        assert_eq!(placement_class(&chip, &[0, 2, 4, 7]), "1|0 1|0 1|0 1|0");
        assert_eq!(placement_class(&chip, &[4, 5, 0, 7]), "1|1 1|0 1|0 0|0");
        assert_eq!(placement_class(&chip, &[5, 5, 0, 7]), "2|0 1|0 1|0 0|0");
    }

    #[test]
    fn every_repetition_counts_once() {
        let case = PlacementCase {
            threads: 6,
            arrival: "threads".to_owned(),
            after_ms: 0,
            counts: ClassCounts::new(),
        };
        let counts = count_placements(&Arc::new(chip()), &case, 7, 1).unwrap();
        assert_eq!(counts.values().sum::<u64>(), 7);
    }
}
