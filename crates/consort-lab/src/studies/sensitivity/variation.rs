//! The list of trials of a conclusion: nothing varied, each parameter alone, all at once.

use super::latin::hypercube;
use super::subject::{VariedDescriptions, VariedParameter};

/// The ends of every parameter's range, as factors.
pub(super) const ENDS: [f64; 2] = [0.7, 1.3];

/// Variation of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Variation {
    /// Nothing is varied.
    None,
    /// One parameter, to one end: its number and that of the end.
    One(usize, usize),
    /// All parameters, each by its factor.
    All(Vec<f64>),
}

/// All trials: nothing, then each parameter at its low and its high end, then the samples.
pub(super) fn list(seed: u64, parameters: usize, samples: usize) -> Vec<Variation> {
    let ones = (0..parameters).flat_map(|p| [0, 1].map(|end| Variation::One(p, end)));
    let joint = hypercube(seed, samples, parameters)
        .into_iter()
        .map(|sample| {
            let [low, high] = ENDS;
            let factor = |at: f64| low + (high - low) * at;
            Variation::All(sample.into_iter().map(factor).collect())
        });
    [Variation::None]
        .into_iter()
        .chain(ones)
        .chain(joint)
        .collect()
}

impl Variation {
    /// The varied descriptions, and the factor that the one parameter reached, if it is one.
    pub fn apply_to(
        &self,
        subject: &VariedDescriptions,
        parameters: &[VariedParameter],
    ) -> (VariedDescriptions, f64) {
        let mut varied = subject.clone();
        let reached = match self {
            Self::None => 1.0,
            Self::One(parameter, end) => varied.vary(&parameters[*parameter], ENDS[*end]),
            Self::All(factors) => {
                for (parameter, factor) in parameters.iter().zip(factors) {
                    varied.vary(parameter, *factor);
                }
                1.0
            }
        };
        (varied, reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_both_ends_and_samples_stay_between_them() {
        let all = list(1, 3, 10);
        assert_eq!(all.len(), 1 + 2 * 3 + 10);
        assert_eq!(all[0], Variation::None);
        assert_eq!(all[6], Variation::One(2, 1));
        for sample in &all[7..] {
            let Variation::All(factors) = sample else {
                panic!("{sample:?} is no sample");
            };
            assert_eq!(factors.len(), 3);
            assert!(
                factors.iter().all(|f| (0.7..=1.3).contains(f)),
                "{factors:?}"
            );
        }
    }
}
