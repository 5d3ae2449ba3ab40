//! M6: the key resources.
//!
//! Keys. Table `headline`: rows `RESOURCE is a key resource` (1 is yes) and `RESOURCE, moves performance`.
//! Table `key-resources`: rows resources; columns `matters` (yes, no), `approach`,
//! `varies_percent` and `moves_percent` (over seeds, where they are largest), `where` (program and
//! co-runner), `seeds` (of the seeds by themselves, those with the same answer).
//! Figure `moves`.

use super::mapping::{notes, sweep};
use crate::frame::interval_cell;
use crate::mapping::variation_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{KeyResource, ResourceFinding, Thresholds, key_resources};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let thresholds = Thresholds::default();
    let found = key_resources(&runs.table(), &thresholds);
    let by_seed: Vec<Vec<KeyResource>> = runs
        .by_seed()
        .iter()
        .map(|table| key_resources(table, &thresholds))
        .collect();
    let judged = KeyResourceVerdicts { found, by_seed };
    Ok(runs.output(
        vec![judged.headline()?, judged.table(file)?],
        vec![judged.figure(file)?],
        vec![judged.sentence(), notes::not_modelled()],
    ))
}

/// All resources, over all seeds and by each.
struct KeyResourceVerdicts {
    found: Vec<KeyResource>,
    by_seed: Vec<Vec<KeyResource>>,
}

/// Variation of the use of a resource, and the change of performance by it, where the approach has
/// both.
fn ranges(found: &KeyResource) -> Option<(f64, Option<f64>)> {
    match &found.finding {
        ResourceFinding::Direct { varies, moves, .. } => Some((*varies, Some(*moves))),
        ResourceFinding::Indirect { varies, .. } => Some((*varies, None)),
        ResourceFinding::NotCounted => None,
    }
}

impl KeyResourceVerdicts {
    /// Values of one resource in each seed.
    fn values(&self, n: usize, of: impl Fn(&KeyResource) -> Option<f64>) -> Vec<f64> {
        let values = self.by_seed.iter().filter_map(|seed| of(seed.get(n)?));
        values.map(|value| 100.0 * value).collect()
    }

    fn moves(&self, n: usize) -> Cell {
        let values = self.values(n, |found| ranges(found)?.1);
        match values.is_empty() {
            true => Cell::missing("no counter of its stall cycles"),
            false => interval_cell(&values),
        }
    }

    fn headline(&self) -> Result<ReportTable, StudyError> {
        let mut headline = HeadlineTable::new()?;
        for found in &self.found {
            let row = format!("{} is a key resource", found.resource);
            let cell = match found.key {
                Some(key) => Cell::Number(f64::from(u8::from(key))),
                None => Cell::missing("the simulation has no mechanism for it"),
            };
            headline.add(&row, "1 is yes", cell)?;
        }
        for (n, found) in self.found.iter().enumerate() {
            let row = format!("{}, moves performance", found.resource);
            headline.add(&row, "percent", self.moves(n))?;
        }
        Ok(headline.into_table())
    }

    fn table(&self, file: &StudyFile) -> Result<ReportTable, StudyError> {
        let rows = self.found.iter().enumerate();
        let rows = rows.map(|(n, found)| (found.resource.name(), self.row(n, found)));
        file.fill_table("key-resources", rows)
    }

    fn row(&self, n: usize, found: &KeyResource) -> Vec<Cell> {
        let Some(key) = found.key else {
            return vec![Cell::missing("the simulation has no mechanism for it"); 6];
        };
        let (approach, place) = match &found.finding {
            ResourceFinding::Direct { pair, .. } => ("direct", format!("{} / {}", pair.0, pair.1)),
            ResourceFinding::Indirect {
                improved, alone, ..
            } => (
                "indirect",
                format!("improved alone in {alone} of {improved} pairs of mappings"),
            ),
            ResourceFinding::NotCounted => ("none", String::new()),
        };
        let same = |seed: &&Vec<KeyResource>| seed.get(n).is_some_and(|k| k.key == found.key);
        vec![
            (if key { "yes" } else { "no" }).into(),
            approach.into(),
            variation_cell(
                &self.values(n, |found| Some(ranges(found)?.0)),
                interval_cell,
            ),
            self.moves(n),
            Cell::Text(place),
            Cell::Count(self.by_seed.iter().filter(same).count() as u64),
        ]
    }

    fn figure(&self, file: &StudyFile) -> Result<Figure, StudyError> {
        let all = self.found.iter().enumerate();
        let all = all.map(|(n, found)| (found.resource.name().to_owned(), self.moves(n)));
        let counted = all.filter(|(_, moves)| moves.value().is_some());
        let (names, cells) = counted.unzip();
        file.bar_figure(
            "moves",
            self.by_seed.len(),
            names,
            [("direct".to_owned(), cells)],
        )
    }

    fn sentence(&self) -> String {
        let named = |key: Option<bool>| {
            let of = self.found.iter().filter(|found| found.key == key);
            let names: Vec<&str> = of.map(|found| found.resource.name()).collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        format!(
            "Key resources: {}; not: {}; not counted: {}. Thresholds of 5 % each, as the source \
             gives none.",
            named(Some(true)),
            named(Some(false)),
            named(None),
        )
    }
}
