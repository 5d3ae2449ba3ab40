//! All trials of all conclusions, made.

use super::headlines::Headline;
use super::subject::{Parameter, Subject};
use super::tested::{Tested, Trial};
use super::trial::{Repeats, ratios};
use super::variation::{Variation, list};
use crate::simulate::each;
use crate::study::StudyError;
use consort_experiment::Context;

/// Extent of the tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Samples with everything varied.
    pub samples: usize,
    /// Index of the scale among a headline's times alone and runs.
    pub scale: usize,
}

/// Conclusions that stand on the same runs, and the descriptions that are varied beneath them.
struct Ground<'a> {
    headlines: &'a [Headline],
    subject: Subject,
    parameters: Vec<Parameter>,
    variations: Vec<Variation>,
}

/// Puts conclusions to the test; those on the same runs next to each other.
///
/// # Errors
/// Descriptions or policies that are not there, runs that do not end.
pub(super) fn put_to_the_test<'a>(
    headlines: &'a [Headline],
    effort: Effort,
    context: &Context<'_>,
) -> Result<Vec<Tested<'a>>, StudyError> {
    let grounds = headlines.chunk_by(Headline::has_runs_of);
    let grounds = grounds.filter(|headlines| headlines[0].runs[effort.scale] > 0);
    let grounds = grounds.map(|headlines| Ground::new(headlines, effort, context.seed()));
    let grounds: Vec<Ground<'_>> = grounds.collect::<Result<_, _>>()?;
    let mut jobs = Vec::new();
    for ground in &grounds {
        let of_ground = ground.variations.iter();
        jobs.extend(of_ground.map(|variation| (ground, variation)));
    }
    let made = each(context, &jobs, |(ground, variation)| {
        ground.trial(variation, effort, context)
    })?;
    let mut made = made.into_iter();
    let tested = grounds.iter().flat_map(|ground| {
        let made: Vec<Vec<Trial>> = made.by_ref().take(ground.variations.len()).collect();
        ground.tested(&made)
    });
    Ok(tested.collect())
}

impl<'a> Ground<'a> {
    fn new(headlines: &'a [Headline], effort: Effort, seed: u64) -> Result<Self, StudyError> {
        let subject = Subject::of(&headlines[0])?;
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
        effort: Effort,
        context: &Context<'_>,
    ) -> Result<Vec<Trial>, StudyError> {
        let (subject, reached) = variation.of(&self.subject, &self.parameters);
        let repeats = Repeats {
            seed: context.seed(),
            runs: self.headlines[0].runs[effort.scale],
            alone_s: self.headlines[0].alone_s[effort.scale],
        };
        let ratios = ratios(self.headlines, &subject, repeats)?;
        Ok(ratios
            .into_iter()
            .map(|ratios| Trial { ratios, reached })
            .collect())
    }

    fn tested(&self, made: &[Vec<Trial>]) -> Vec<Tested<'a>> {
        let one = |(number, headline): (usize, &'a Headline)| Tested {
            headline,
            parameters: self.parameters.clone(),
            trials: made.iter().map(|trials| trials[number].clone()).collect(),
        };
        self.headlines.iter().enumerate().map(one).collect()
    }
}
