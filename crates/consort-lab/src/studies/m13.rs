//! M13: the most important resources of each program beside each co-runner.
//!
//! Keys. Table `headline`: rows `RESOURCE, programs and co-runners`, and `PROGRAM beside CO_RUNNER`
//! (text). Tables `importance` and `inside-cycles`: rows programs; columns co-runners; text. Table
//! `shares`: rows `PROGRAM/CO_RUNNER`; columns `best` (mapping), `slower_percent` (os over the best),
//! one for each resource and `other` (parts of the logarithm of the ratio of times), `seeds` (of the
//! seeds by themselves, those with the same resources). Table `counts`: rows resources, `none` and
//! `os-best`; column `cells`. Figure `slower`.

use super::mapping::plan::PROGRAMS;
use super::mapping::sweep;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{
    CoRunnerPair, Importance, SharedResource, Thresholds, importance,
};
use consort_data::{Cell, Figure, HeadlineTable, ReportColumn, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::OS;
use std::collections::{BTreeMap, BTreeSet};

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let thresholds = Thresholds::default();
    let matrix = ImportanceMatrix {
        found: importance(&runs.table(), OS, &thresholds),
        by_seed: runs
            .by_seed()
            .iter()
            .map(|table| importance(table, OS, &thresholds))
            .collect(),
    };
    Ok(runs.output(
        vec![
            matrix.headline()?,
            file.fill_table("importance", matrix.by_name(name))?,
            file.fill_table("inside-cycles", matrix.by_name(inside))?,
            matrix.shares()?,
            matrix.counts_table(file)?,
        ],
        vec![matrix.figure(file, runs.seeds)?],
        vec![matrix.sentence()],
    ))
}

type ImportanceByPair = BTreeMap<CoRunnerPair, Importance>;

/// The most important resources over all seeds, and by each.
struct ImportanceMatrix {
    found: ImportanceByPair,
    by_seed: Vec<ImportanceByPair>,
}

/// Text of a cell where os is the fastest.
const OS_BEST: &str = "os-best";
/// Text of a cell where no resource by itself makes os slower by the threshold.
const NONE: &str = "none";

/// Text of a cell: the resources, the largest part first.
fn name(found: &Importance) -> String {
    if found.best == OS {
        return OS_BEST.to_owned();
    }
    match found.resources.is_empty() {
        true => NONE.to_owned(),
        false => found.resources.join("+"),
    }
}

/// Part of the logarithm of the ratio of times from which on a resource inside the cycles counts.
const INSIDE: f64 = 0.01;

/// Name of the resource with the largest part, the cores left out.
fn inside(found: &Importance) -> String {
    let parts = found
        .parts
        .iter()
        .filter(|(r, _)| **r != SharedResource::Cores);
    let most = parts.max_by(|a, b| a.1.total_cmp(b.1));
    let counts = most.filter(|(_, part)| **part >= INSIDE);
    counts
        .map_or(NONE, |(resource, _)| resource.name())
        .to_owned()
}

impl ImportanceMatrix {
    fn at(&self, program: &str, co_runner: &str) -> Option<&Importance> {
        self.found.get(&(program.to_owned(), co_runner.to_owned()))
    }

    fn headline(&self) -> Result<ReportTable, StudyError> {
        let mut headline = HeadlineTable::new()?;
        for (name, count) in self.counts() {
            let row = format!("{name}, programs and co-runners");
            headline.add(&row, "cells", count as u64)?;
        }
        for ((program, co_runner), found) in &self.found {
            let row = format!("{program} beside {co_runner}");
            headline.add(&row, "resources", Cell::Text(name(found)))?;
        }
        Ok(headline.into_table())
    }

    /// Names of the resources of each program (row) beside each co-runner (column).
    fn by_name(&self, name: fn(&Importance) -> String) -> [(&'static str, Vec<Cell>); 9] {
        PROGRAMS.map(|program| {
            let cell = |co_runner: &&str| match self.at(program, co_runner) {
                Some(found) => Cell::Text(name(found)),
                None => Cell::missing("was not run"),
            };
            (program, PROGRAMS.iter().map(cell).collect())
        })
    }

    /// Resources that have a part anywhere.
    fn resources(&self) -> Vec<SharedResource> {
        let parts = self
            .found
            .values()
            .flat_map(|found| found.parts.keys().copied());
        parts
            .collect::<BTreeSet<SharedResource>>()
            .into_iter()
            .collect()
    }

    fn shares(&self) -> Result<ReportTable, StudyError> {
        let resources = self.resources();
        let mut columns = vec![
            ReportColumn::plain("best", "Fastest under"),
            ReportColumn::with_unit("slower_percent", "os slower by", "%"),
        ];
        columns.extend(
            resources
                .iter()
                .map(|r| ReportColumn::with_unit(r.name(), r.name(), "log %")),
        );
        columns.push(ReportColumn::with_unit("other", "Other cycles", "log %"));
        columns.push(ReportColumn::plain("seeds", "Seeds that agree"));
        let title = "From the fastest mapping to os, by resource";
        let mut table = ReportTable::new("shares", title, columns)?;
        for (pair, found) in &self.found {
            let cells = self.row(pair, found, &resources);
            table.push(&format!("{}/{}", pair.0, pair.1), cells)?;
        }
        Ok(table)
    }

    fn row(
        &self,
        pair: &CoRunnerPair,
        found: &Importance,
        resources: &[SharedResource],
    ) -> Vec<Cell> {
        let part = |r: &SharedResource| found.parts.get(r).map_or(0.0, |part| 100.0 * part);
        let same =
            |seed: &&ImportanceByPair| seed.get(pair).is_some_and(|f| name(f) == name(found));
        let mut cells = vec![
            found.best.as_str().into(),
            (100.0 * (found.slower - 1.0)).into(),
        ];
        cells.extend(resources.iter().map(|r| Cell::Number(part(r))));
        cells.push((100.0 * found.unexplained_part()).into());
        cells.push(Cell::Count(self.by_seed.iter().filter(same).count() as u64));
        cells
    }

    /// Number of programs and co-runners that name each resource, none, or have os as their best
    /// mapping.
    fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut names: Vec<&str> = Vec::new();
        for resource in self.resources() {
            if !names.contains(&resource.table_name()) {
                names.push(resource.table_name());
            }
        }
        names.extend([NONE, OS_BEST]);
        let says = |n: &str, found: &Importance| name(found).split('+').any(|part| part == n);
        let count = |n: &str| self.found.values().filter(|found| says(n, found)).count();
        names.into_iter().map(|n| (n, count(n))).collect()
    }

    fn counts_table(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let counts = self.counts().into_iter();
        let rows = counts.map(|(name, count)| (name, vec![Cell::Count(count as u64)]));
        file.fill_table("counts", rows)
    }

    fn figure(&self, file: &StudyFile, runs: usize) -> Result<Figure, StudyError> {
        let row = |program: &str| {
            let slower = |co_runner: &&str| {
                let found = self.at(program, co_runner);
                found.map(|found| 100.0 * (found.slower - 1.0))
            };
            (program.to_owned(), PROGRAMS.iter().map(slower).collect())
        };
        let names = PROGRAMS.map(str::to_owned);
        file.heat_figure("slower", runs, names.to_vec(), PROGRAMS.map(row).to_vec())
    }

    fn sentence(&self) -> String {
        let all = self.counts().into_iter().filter(|(_, count)| *count > 0);
        let all: Vec<String> = all.map(|(name, count)| format!("{name} {count}")).collect();
        let steady = self.found.iter().filter(|(pair, found)| {
            let same =
                |seed: &ImportanceByPair| seed.get(*pair).is_some_and(|f| name(f) == name(found));
            self.by_seed.iter().all(same)
        });
        format!(
            "Of {} programs and co-runners cells name: {}. In {} every seed by itself gives the same.",
            self.found.len(),
            all.join(", "),
            steady.count(),
        )
    }
}
