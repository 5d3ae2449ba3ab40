//! Studies of one pair of programs: M2, M3, M5, M10 and M12. They differ in the pair, its mappings
//! and measures, and in nothing else.

use super::breakdown::MappingChange;
use super::measures::MappingMeasure;
use super::pair::PairView;
use super::plan::ProgramNamePair;
use super::sweep;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::ExperimentContext;

/// A study of a pair: its mappings, measures and figures.
pub(in crate::studies) struct PairStudy {
    pub pair: ProgramNamePair,
    pub mappings: &'static [&'static str],
    pub measures: &'static [MappingMeasure],
    /// Measures that the source's chart shows beside times.
    pub headline: &'static [MappingMeasure],
    /// The change of mapping, from one to the other, whose parts are shown.
    pub change: Option<[&'static str; 2]>,
    /// Measures that have a figure.
    pub figures: &'static [MappingMeasure],
}

impl PairStudy {
    /// Runs the study.
    pub fn run(
        &self,
        context: &ExperimentContext<'_>,
        file: &StudyFile,
    ) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PairView {
            runs: &runs,
            pair: self.pair,
            mappings: self.mappings,
            measures: self.measures,
        };
        let mut output = runs.output(
            vec![view.headline(self.headline)?, view.table(file)?],
            vec![view.speeds(file)?],
            vec![view.sentence()],
        );
        for measure in self.figures {
            output.figures.push(view.figure(file, *measure)?);
        }
        if let Some([from, to]) = self.change {
            let change = MappingChange {
                runs: &runs,
                pair: self.pair,
                from,
                to,
            };
            output.tables.push(change.table(file)?);
            output.figures.push(change.figure(file)?);
        }
        output.notes.extend(file.mechanism.clone());
        Ok(output)
    }
}
