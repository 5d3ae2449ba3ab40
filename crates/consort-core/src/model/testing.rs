//! Random stacks and parameters for the tests of the model.

use super::level::LevelParameters;
use crate::model::level::ComponentParameters;
use crate::policy::PolicyRng;
use rand::RngExt;

/// The published level of POWER8.
pub(super) fn power8() -> LevelParameters {
    let text = super::embedded_model("power8-paper").unwrap();
    let model = super::InterferenceModel::parse(text, "power8-paper").unwrap();
    model.levels[0].clone()
}

/// A stack drawn evenly from all that sum to 1: spacings of sorted draws.
pub(super) fn stack(rng: &mut PolicyRng, components: usize) -> Vec<f64> {
    let mut cuts: Vec<f64> = (1..components).map(|_| rng.random()).collect();
    cuts.extend([0.0, 1.0]);
    cuts.sort_by(f64::total_cmp);
    cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn between(rng: &mut PolicyRng, low: f64, high: f64) -> f64 {
    low + (high - low) * rng.random::<f64>()
}

/// Parameters about as large as published ones: a thread's own cycles grow by up to 80 percent, and
/// co-runners add less than they have.
pub(super) fn sane(rng: &mut PolicyRng, ways: u32, components: usize) -> LevelParameters {
    let others = f64::from(ways - 1);
    let one = |_| ComponentParameters {
        alpha: between(rng, 0.0, 0.03),
        beta: between(rng, 1.0, 1.8),
        gamma: between(rng, 0.0, 0.2) / others,
        delta: between(rng, -0.3, 0.6) / others,
    };
    LevelParameters::new(ways, (0..components).map(one).collect()).unwrap()
}

/// Cycle stacks that counters show of threads with the ST stacks `own` on one core: components
/// below 0 read as 0, as shares of SMT cycles.
pub(super) fn measured(level: &LevelParameters, own: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let sees = |thread: usize| {
        let mut others = vec![0.0; own[thread].len()];
        for (_, stack) in own.iter().enumerate().filter(|(i, _)| *i != thread) {
            others.iter_mut().zip(stack).for_each(|(sum, x)| *sum += x);
        }
        let mut together = vec![0.0; others.len()];
        level.predict_stack(&own[thread], &others, &mut together);
        together.iter_mut().for_each(|x| *x = x.max(0.0));
        let sum: f64 = together.iter().sum();
        together.iter().map(|x| x / sum).collect()
    };
    (0..own.len()).map(sees).collect()
}
