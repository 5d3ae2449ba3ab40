//! Tables and bars of schedulers and programs.

use super::entrants::{ENTRANTS, MAIN};
use super::grid::CoscheduleGrid;
use super::views::MeanScope;
use crate::study::StudyError;
use crate::study::file::StudyFile;
use consort_core::ProgramId;
use consort_data::{Cell, Figure};

/// Groups of programs that a mean is over, with their names in rows and in figures.
pub(in crate::studies) const GROUPS: [(&str, &str, MeanScope); 2] = [
    (
        "co-scheduled programs",
        "programs that share",
        MeanScope::Sharing,
    ),
    ("whole suite", "whole suite", MeanScope::All),
];

impl CoscheduleGrid {
    /// A row for each program, a cell for each of these schedulers.
    pub fn rows(
        &self,
        entrants: &(impl Iterator<Item = usize> + Clone),
        cell: impl Fn(usize, ProgramId) -> Cell,
    ) -> Vec<(String, Vec<Cell>)> {
        let cells = |id| entrants.clone().map(|entrant| cell(entrant, id)).collect();
        let rows = self.names().into_iter().zip(self.suite().ids());
        rows.map(|(name, id)| (name, cells(id))).collect()
    }

    /// A group for each program, a bar for each of these schedulers.
    pub fn by_program(
        &self,
        (file, key): (&StudyFile, &str),
        entrants: impl Iterator<Item = usize>,
        cell: impl Fn(usize, ProgramId) -> Cell,
    ) -> Result<Figure, StudyError> {
        let series = |entrant: usize| {
            let cells = self.suite().ids().map(|id| cell(entrant, id));
            (ENTRANTS[entrant].short().to_owned(), cells.collect())
        };
        file.bar_figure(key, self.runs(), self.names(), entrants.map(series))
    }

    /// A group for each of [`GROUPS`], a bar for each of the main schedulers.
    pub fn by_group(
        &self,
        (file, key): (&StudyFile, &str),
        cell: impl Fn(usize, MeanScope) -> Cell,
    ) -> Result<Figure, StudyError> {
        let series = |entrant: usize| {
            let cells = GROUPS.map(|(.., over)| cell(entrant, over));
            (ENTRANTS[entrant].short().to_owned(), cells.into())
        };
        let groups = GROUPS.map(|(_, name, _)| name.to_owned()).into();
        file.bar_figure(key, self.runs(), groups, MAIN.map(series))
    }
}
