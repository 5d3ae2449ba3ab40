//! Variation of programs while they run alone: by this alone the workloads of S7 are chosen.

use super::mixes::DrawnMix;
use super::{QUANTUM, chip, part_error, programs};
use crate::simulate::experiment;
use crate::simulate::programs::{instance, join_entries};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::{Contender, Experiment};
use consort_sim::engine::{Observer, PuUse, RunSegment};
use consort_sim::program::ProgramSpec;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Coefficient of variation over time, while it runs alone, of the instructions per cycle of
/// every program that workloads are drawn from.
pub(in crate::studies) fn variations(
    cores: usize,
    alone_s: f64,
    context: &ExperimentContext<'_>,
) -> Result<Vec<f64>, StudyError> {
    let programs = programs::of_workloads()?;
    let variations = context.map(&programs, |program| {
        alone(program, cores, alone_s, context.seed())
    })?;
    variations.into_iter().collect()
}

/// Mean over the programs of a workload.
pub(in crate::studies) fn of_mix(mix: &DrawnMix, variations: &[f64]) -> f64 {
    let all: f64 = mix.programs.iter().map(|&p| variations[p]).sum();
    all / mix.programs.len() as f64
}

fn alone(
    program: &Arc<ProgramSpec>,
    cores: usize,
    alone_s: f64,
    seed: u64,
) -> Result<f64, StudyError> {
    let workload = join_entries(vec![instance(program.name.clone(), program, 1)]);
    let experiment = Experiment {
        quantum: Some(QUANTUM),
        ..experiment(&chip(cores)?, workload, alone_s)
    };
    let part = format!("{} alone", program.name);
    let watch = IpcMoments::default();
    let contender = Contender::new("linux", "linux").map_err(part_error(&part))?;
    let work = experiment.measure_work(seed).map_err(part_error(&part))?;
    let observer = Box::new(watch.clone());
    let run = experiment.run(&contender, &work, seed, Some(observer));
    run.map_err(part_error(&part))?;
    Ok(watch.variation())
}

/// Moments of the instructions per cycle over time.
#[derive(Clone, Debug, Default)]
struct IpcMoments(Rc<RefCell<[f64; 3]>>);

impl IpcMoments {
    /// Standard deviation over mean.
    fn variation(&self) -> f64 {
        let [time, sum, squares] = *self.0.borrow();
        let mean = sum / time;
        (squares / time - mean * mean).max(0.0).sqrt() / mean
    }

    fn add(&self, time: f64, ipc: f64) {
        let mut moments = self.0.borrow_mut();
        let added = [time, time * ipc, time * ipc * ipc];
        moments
            .iter_mut()
            .zip(added)
            .for_each(|(sum, one)| *sum += one);
    }
}

impl Observer for IpcMoments {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        if segment.doing == PuUse::Work {
            let time = (segment.to_ps - segment.from_ps) as f64;
            self.add(time, 1.0 / segment.rates.cpi);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_over_time() {
        let watch = IpcMoments::default();
        watch.add(1.0, 1.0);
        watch.add(3.0, 1.0);
        assert_eq!(watch.variation(), 0.0);
        watch.add(4.0, 3.0);
        assert!((watch.variation() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_mix_is_the_mean_of_its_programs() {
        let mix = DrawnMix {
            cores: 1,
            number: 1,
            programs: vec![0, 2],
        };
        assert_eq!(of_mix(&mix, &[1.0, 9.0, 2.0]), 1.5);
    }
}
