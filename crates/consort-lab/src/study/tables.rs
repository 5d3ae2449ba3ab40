//! The headline and the tables of a study, from its frames.

use super::StudyError;
use super::file::{CellSpec, HeadlineSpec, TableSpec};
use super::frames::{Frames, LoopTurn};
use super::template::fill;
use consort_data::{HeadlineTable, ReportTable};

/// The unit of headline rows that shows a ratio as percent above 1.
pub(super) const GAIN: &str = "gain";

/// The first table of a study.
pub(super) fn headline(
    frames: &Frames,
    blocks: &[HeadlineSpec],
) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for block in blocks {
        for turn in frames.turns(block.looped()).iter().flatten() {
            add_rows(frames, &mut headline, block, turn)?;
        }
    }
    Ok(headline.into_table())
}

fn add_rows(
    frames: &Frames,
    headline: &mut HeadlineTable,
    block: &HeadlineSpec,
    turn: &LoopTurn,
) -> Result<(), StudyError> {
    for spec in &block.rows {
        let row = fill(spec.row.as_deref().unwrap_or("{group}"), &turn.words);
        let cell = frames.cell(spec, turn);
        match spec.unit.as_deref().unwrap_or("ratio") {
            GAIN => headline.add_gain(&row, cell)?,
            unit => headline.add(&row, unit, cell)?,
        }
    }
    Ok(())
}

/// One table: a row for each turn of its loop.
pub(super) fn table(frames: &Frames, spec: &TableSpec) -> Result<ReportTable, StudyError> {
    let columns = spec.columns.iter().map(CellSpec::column).collect();
    let mut table = ReportTable::new(&spec.key, &spec.title, columns)?;
    let usual = match spec.policies.is_empty() && spec.each.is_empty() {
        true => "{group}",
        false => "{group}/{name}",
    };
    let row = spec.row.as_deref().unwrap_or(usual);
    for turn in frames.turns(spec.looped()).iter().flatten() {
        let cells = spec.columns.iter().map(|column| frames.cell(column, turn));
        table.push(&fill(row, &turn.words), cells.collect())?;
    }
    Ok(table)
}
