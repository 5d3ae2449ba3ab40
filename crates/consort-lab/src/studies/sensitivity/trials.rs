//! All trials of all conclusions, made.

use super::headlines::StudyConclusion;
use super::subject::{VariedDescriptions, VariedParameter};
use super::tested::{ConclusionTrials, SensitivityTrial};
use super::trial::{Repeats, ratios};
use super::variation::{Variation, list};
use crate::simulate::map_jobs;
use crate::study::StudyError;
use consort_experiment::ExperimentContext;

/// Extent of the tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct SensitivityExtent {
    /// Samples with everything varied.
    pub samples: usize,
    /// Index of the scale among a headline's times alone and runs.
    pub scale: usize,
}

/// Conclusions that stand on the same runs, and the descriptions that are varied beneath them.
struct SensitivityGroup<'a> {
    headlines: &'a [StudyConclusion],
    subject: VariedDescriptions,
    parameters: Vec<VariedParameter>,
    variations: Vec<Variation>,
}

/// Puts conclusions to the test; those on the same runs next to each other.
///
/// # Errors
/// Descriptions or policies that are not there, runs that do not end.
pub(super) fn put_to_the_test<'a>(
    headlines: &'a [StudyConclusion],
    effort: SensitivityExtent,
    context: &ExperimentContext<'_>,
) -> Result<Vec<ConclusionTrials<'a>>, StudyError> {
    let grounds = headlines.chunk_by(StudyConclusion::has_runs_of);
    let grounds = grounds.filter(|headlines| headlines[0].runs[effort.scale] > 0);
    let grounds = grounds.map(|headlines| SensitivityGroup::new(headlines, effort, context.seed()));
    let grounds: Vec<SensitivityGroup<'_>> = grounds.collect::<Result<_, _>>()?;
    let mut jobs = Vec::new();
    for ground in &grounds {
        let of_ground = ground.variations.iter();
        jobs.extend(of_ground.map(|variation| (ground, variation)));
    }
    let made = map_jobs(context, &jobs, |(ground, variation)| {
        ground.trial(variation, effort, context)
    })?;
    let mut made = made.into_iter();
    let tested = grounds.iter().flat_map(|ground| {
        let made: Vec<Vec<SensitivityTrial>> =
            made.by_ref().take(ground.variations.len()).collect();
        ground.tested(&made)
    });
    Ok(tested.collect())
}

impl<'a> SensitivityGroup<'a> {
    fn new(
        headlines: &'a [StudyConclusion],
        effort: SensitivityExtent,
        seed: u64,
    ) -> Result<Self, StudyError> {
        let subject = VariedDescriptions::from_headline(&headlines[0])?;
        let parameters = subject.parameters();
        Ok(Self {
            variations: list(seed, parameters.len(), effort.samples),
            headlines,
            subject,
            parameters,
        })
    }

    /// One trial, for each of the headlines.
    fn trial(
        &self,
        variation: &Variation,
        effort: SensitivityExtent,
        context: &ExperimentContext<'_>,
    ) -> Result<Vec<SensitivityTrial>, StudyError> {
        let (subject, reached) = variation.apply_to(&self.subject, &self.parameters);
        let repeats = Repeats {
            seed: context.seed(),
            runs: self.headlines[0].runs[effort.scale],
            alone_s: self.headlines[0].alone_s[effort.scale],
        };
        let ratios = ratios(self.headlines, &subject, repeats)?;
        Ok(ratios
            .into_iter()
            .map(|ratios| SensitivityTrial { ratios, reached })
            .collect())
    }

    fn tested(&self, made: &[Vec<SensitivityTrial>]) -> Vec<ConclusionTrials<'a>> {
        let one = |(number, headline): (usize, &'a StudyConclusion)| ConclusionTrials {
            headline,
            parameters: self.parameters.clone(),
            trials: made.iter().map(|trials| trials[number].clone()).collect(),
        };
        self.headlines.iter().enumerate().map(one).collect()
    }
}
