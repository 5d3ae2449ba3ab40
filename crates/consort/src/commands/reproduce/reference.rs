//! Published figures from a file beside ours.

use crate::failure::bad_input;
use anyhow::Result;
use consort_data::{ReportTable, ReportTableError};
use consort_lab::StudyReport;
use consort_lab::reference::{self, ReferenceComparison, ReferenceLine};
use std::path::Path;

/// The lines of a reference file; none where there is no file.
pub(super) struct PublishedFigures(Option<Vec<ReferenceLine>>);

/// Comparison of studies with a reference file, and its table; none without a reference file.
pub(super) struct StudyComparison {
    comparison: Option<ReferenceComparison>,
    table: Option<ReportTable>,
}

impl PublishedFigures {
    pub(super) fn read(path: Option<&Path>) -> Result<Self> {
        let lines = path.map(reference::read).transpose();
        lines.map(Self).map_err(bad_input)
    }

    /// Sets the lines about these studies beside them.
    pub(super) fn compare(
        &self,
        reports: &[&StudyReport],
    ) -> Result<StudyComparison, ReportTableError> {
        let about = |line: &&ReferenceLine| {
            let mut ids = reports.iter().map(|report| &report.study);
            ids.any(|id| id.eq_ignore_ascii_case(&line.study))
        };
        let comparison = self.0.as_ref().map(|lines| {
            let lines: Vec<ReferenceLine> = lines.iter().filter(about).cloned().collect();
            reference::compare(&lines, reports)
        });
        let table = comparison
            .as_ref()
            .map(ReferenceComparison::table)
            .transpose()?;
        Ok(StudyComparison { comparison, table })
    }

    /// Names the lines that nothing of ours answers. Where nobody reads it, the table must do.
    pub(super) fn warn(&self, compared: &StudyComparison) {
        let gaps = compared.comparison.iter().flat_map(|c| &c.unmatched);
        for gap in gaps {
            let [study, row, column] = &gap.names;
            crate::failure::say(&format!(
                "reference line {} ({study}, {row}, {column}): {}",
                gap.line, gap.reason
            ));
        }
    }
}

impl StudyComparison {
    /// Ours and theirs; none without a reference file.
    pub(super) fn table(&self) -> Option<&ReportTable> {
        self.table.as_ref()
    }

    /// Returns the comparison; none without a reference file.
    pub(super) fn comparison(&self) -> Option<&ReferenceComparison> {
        self.comparison.as_ref()
    }
}
