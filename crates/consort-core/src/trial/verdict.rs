//! The first line of every report: faster or slower, by how much, how sure.

use super::effect::EffectEstimate;
use super::progress::ProgressMeasure;
use serde::{Deserialize, Serialize};

/// Pairs that an interval needs.
const LEAST_PAIRS: usize = 4;

/// Effect of managing on progress, in a sentence and in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The sentence.
    pub text: String,
    /// Progress managed over unmanaged, above 1: faster; `None` if nothing measured it.
    pub effect: Option<f64>,
    /// Lower end of its 95 percent interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Number of pairs that were compared.
    pub pairs: usize,
    /// Measure of progress; `None` if nothing measured it.
    pub measure: Option<String>,
    /// True if the measure only follows progress.
    pub estimated: bool,
}

impl Verdict {
    /// A verdict without a measurement.
    pub fn unmeasured(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The verdict of a trial with so many pairs.
    pub fn from_effect(
        effect: Option<EffectEstimate>,
        pairs: usize,
        measure: ProgressMeasure,
    ) -> Self {
        let mut verdict = Self::from_named(effect, pairs, &measure.to_string());
        verdict.estimated = measure.is_estimated();
        if verdict.estimated && verdict.effect.is_some() {
            verdict.text.push_str(", estimated from waiting for CPUs");
        }
        verdict
    }

    /// The same with a measure of this name, which is not an estimate.
    pub fn from_named(effect: Option<EffectEstimate>, pairs: usize, measure: &str) -> Self {
        let text = match effect {
            Some(effect) => sentence(&effect),
            None => format!(
                "too short for a verdict: {pairs} of at least {LEAST_PAIRS} pairs; run it longer or \
                 with shorter stretches"
            ),
        };
        Self {
            text,
            effect: effect.map(|effect| effect.ratio),
            low: effect.map(|effect| effect.low),
            high: effect.map(|effect| effect.high),
            pairs,
            measure: Some(measure.to_owned()),
            estimated: false,
        }
    }
}

fn sentence(effect: &EffectEstimate) -> String {
    let change = 100.0 * (effect.ratio - 1.0);
    let half = 50.0 * (effect.high - effect.low);
    let pairs = effect.pairs;
    // Digits beyond the first of the interval mean nothing.
    let digits = usize::from(half < 10.0) + usize::from(half < 0.1);
    if effect.low > 1.0 {
        format!("{change:.digits$} % faster ± {half:.digits$} ({pairs} pairs)")
    } else if effect.high < 1.0 {
        format!(
            "{:.digits$} % slower ± {half:.digits$} ({pairs} pairs)",
            -change
        )
    } else {
        format!("no difference found: {change:+.digits$} % ± {half:.digits$} ({pairs} pairs)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(ratio: f64, low: f64, high: f64) -> String {
        let effect = EffectEstimate {
            ratio,
            low,
            high,
            pairs: 12,
        };
        Verdict::from_effect(Some(effect), 12, ProgressMeasure::Instructions).text
    }

    #[test]
    fn sentences_name_direction_size_and_interval() {
        assert_eq!(text(1.031, 1.023, 1.039), "3.1 % faster ± 0.8 (12 pairs)");
        assert_eq!(text(0.5, 0.38, 0.62), "50 % slower ± 12 (12 pairs)");
        assert_eq!(
            text(0.998, 0.989, 1.007),
            "no difference found: -0.2 % ± 0.9 (12 pairs)"
        );
    }

    #[test]
    fn estimates_say_so() {
        let effect = Some(EffectEstimate {
            ratio: 1.2,
            low: 1.1,
            high: 1.3,
            pairs: 8,
        });
        let verdict = Verdict::from_effect(effect, 8, ProgressMeasure::Waiting);
        assert!(verdict.estimated);
        assert!(verdict.text.ends_with("estimated from waiting for CPUs"));
    }

    #[test]
    fn short_trial_has_no_effect() {
        let verdict = Verdict::from_effect(None, 2, ProgressMeasure::Instructions);
        assert_eq!((verdict.effect, verdict.pairs), (None, 2));
        assert!(verdict.text.starts_with("too short for a verdict"));
    }
}
