//! The answers as tables.

use super::analysis::Analysis;
use crate::frame::number_or_missing;
use consort_core::mapping::analysis::{
    AloneCharacteristics, Importance, KeyResource, MappingRow, ResourceFinding, SharedResource,
};
use consort_data::{Cell, ReportColumn, ReportTable, ReportTableError};
use std::collections::{BTreeMap, BTreeSet};

/// One characteristic: key, title, unit, and its value in that unit.
pub(super) type CharacteristicColumn = (
    &'static str,
    &'static str,
    &'static str,
    fn(&AloneCharacteristics) -> Option<f64>,
);

/// All characteristics.
pub(super) const CHARACTERISTICS: [CharacteristicColumn; 10] = [
    ("data_sharing", "data sharing", "%", |c| {
        percent(c.data_sharing)
    }),
    ("l2_mpki", "L2 misses", "per 1000 instructions", |c| {
        c.l2_mpki
    }),
    ("bandwidth", "bandwidth", "MB/s", |c| c.bandwidth_mb_s),
    ("io", "I/O", "% of time", |c| percent(c.io_share)),
    ("siblings", "waits for siblings", "% of time", |c| {
        percent(c.sibling_share)
    }),
    ("switches", "switched in", "per s", |c| c.switches_per_s),
    ("l1i_mpki", "L1I misses", "per 1000 instructions", |c| {
        c.l1i_mpki
    }),
    (
        "effectiveness",
        "prefetchers remove",
        "% of L2 misses",
        |c| percent(c.prefetch_effectiveness),
    ),
    ("excess", "prefetchers add", "% of lines", |c| {
        percent(c.prefetch_excess)
    }),
    ("fraction", "prefetched", "% of transactions", |c| {
        percent(c.prefetch_fraction)
    }),
];

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// Titles of the characteristics that no program has.
pub(super) fn missing_characteristics(all: &[(String, AloneCharacteristics)]) -> Vec<&'static str> {
    let missing = |item: &&CharacteristicColumn| all.iter().all(|(_, c)| item.3(c).is_none());
    CHARACTERISTICS
        .iter()
        .filter(missing)
        .map(|item| item.1)
        .collect()
}

/// All tables, the main one first.
pub(super) fn all_tables(analysis: &Analysis) -> Result<Vec<ReportTable>, ReportTableError> {
    Ok(vec![
        best_mapping_table(analysis)?,
        program_table(analysis)?,
        key_resource_table(analysis)?,
        characteristics_table(analysis)?,
        attribution_table(analysis)?,
        importance_table(analysis)?,
        l2mp_table(analysis)?,
    ])
}

/// The programs of a row's workload, in alphabetical order.
fn workload(row: &MappingRow) -> String {
    let others = row.co_runner.split('+').filter(|name| !name.is_empty());
    let mut names: Vec<&str> = others.chain([row.program.as_str()]).collect();
    names.sort_unstable();
    names.join("+")
}

/// Throughput under each mapping relative to the first: geometric mean over the programs.
pub(super) fn gains(analysis: &Analysis) -> BTreeMap<String, BTreeMap<String, f64>> {
    let Some(first) = analysis.mappings.first() else {
        return BTreeMap::new();
    };
    let mut logs: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for rows in analysis.table.pairs().values() {
        let Some(base) = rows.iter().find(|row| row.mapping == *first) else {
            continue;
        };
        for row in rows {
            let by_mapping = logs.entry(workload(row)).or_default();
            let log = libm::log(base.usage.time_s / row.usage.time_s);
            by_mapping.entry(row.mapping.clone()).or_default().push(log);
        }
    }
    let mean = |logs: Vec<f64>| libm::exp(logs.iter().sum::<f64>() / logs.len() as f64);
    let of = |by: BTreeMap<String, Vec<f64>>| by.into_iter().map(|(m, l)| (m, mean(l))).collect();
    logs.into_iter()
        .map(|(workload, by)| (workload, of(by)))
        .collect()
}

fn best_mapping_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let first = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "The best mapping of each workload, by the mean speed of its programs over that under {first}"
    );
    let mut columns = vec![ReportColumn::plain("best", "best")];
    let gain = |m: &String| ReportColumn::with_unit(&column_key(m), m, "% gain");
    columns.extend(analysis.mappings.iter().map(gain));
    let mut table = ReportTable::new("best", &title, columns)?;
    for (workload, gains) in gains(analysis) {
        let best = gains.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let mut cells = vec![Cell::Text(
            best.map_or_else(String::new, |(m, _)| m.clone()),
        )];
        let gain = |m: &String| {
            number_or_missing(
                gains.get(m).map(|g| 100.0 * (g - 1.0)),
                "it, or the first, was given up",
            )
        };
        cells.extend(analysis.mappings.iter().map(gain));
        table.push(&workload, cells)?;
    }
    Ok(table)
}

/// A mapping's name as a column's key.
fn column_key(mapping: &str) -> String {
    mapping.replace([',', ':', '"', ' '], "_")
}

/// Use that every program made of the hardware under every mapping.
fn program_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let counted: BTreeSet<SharedResource> = analysis
        .table
        .rows
        .iter()
        .flat_map(|row| row.usage.amounts.keys().copied())
        .collect();
    let mut columns = vec![
        ReportColumn::with_unit("time", "time", "s"),
        ReportColumn::with_unit("cycles", "cycles", "1e9"),
        ReportColumn::with_unit("utilisation", "utilisation", "%"),
    ];
    for resource in &counted {
        let (name, unit) = (resource.name(), resource.unit());
        columns.push(ReportColumn::with_unit(name, name, &format!("1e6 {unit}")));
        let key = format!("{name}-stall");
        columns.push(ReportColumn::with_unit(
            &key,
            &format!("{name} stall"),
            "% of cycles",
        ));
    }
    let mut table = ReportTable::new("programs", "Programs under mappings, per run", columns)?;
    for row in &analysis.table.rows {
        let key = format!(
            "{} / {} / {}",
            row.program,
            co_runner_label(&row.co_runner),
            row.mapping
        );
        table.push(&key, usage_cells(row, &counted, &analysis.reason))?;
    }
    Ok(table)
}

fn co_runner_label(co_runner: &str) -> &str {
    if co_runner.is_empty() {
        "alone"
    } else {
        co_runner
    }
}

fn usage_cells(row: &MappingRow, counted: &BTreeSet<SharedResource>, reason: &str) -> Vec<Cell> {
    let usage = &row.usage;
    let mut cells = vec![
        Cell::Number(usage.time_s),
        number_or_missing(usage.cycles.map(|c| c / 1e9), reason),
        number_or_missing(percent(usage.utilisation), reason),
    ];
    for resource in counted {
        let amount = usage.amounts.get(resource);
        cells.push(number_or_missing(amount.map(|a| a.used / 1e6), reason));
        let share = amount.and_then(|a| Some(100.0 * a.stall_cycles? / usage.cycles?));
        cells.push(number_or_missing(share, "no counter of its stall cycles"));
    }
    cells
}

fn key_resource_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let columns = vec![
        ReportColumn::plain("matters", "matters"),
        ReportColumn::plain("approach", "approach"),
        ReportColumn::with_unit("varies", "use varies", "%"),
        ReportColumn::with_unit("moves", "moves cycles or time", "%"),
        ReportColumn::plain("where", "most for"),
    ];
    let title = "Key resources: use varies across mappings and moves performance";
    let mut table = ReportTable::new("key-resources", title, columns)?;
    for found in &analysis.key_resources {
        table.push(
            found.resource.name(),
            finding_cells(found, &analysis.reason),
        )?;
    }
    Ok(table)
}

/// Largest range of a use, percent, that is shown.
const WIDEST_PERCENT: f64 = 1e5;

/// Range of the use of a resource, percent; `cell` makes one of the number, or of the numbers of
/// several seeds. One that begins at next to nothing has no range to speak of.
pub(crate) fn variation_cell(percent: &[f64], cell: impl FnOnce(&[f64]) -> Cell) -> Cell {
    if percent.iter().any(|&range| range > WIDEST_PERCENT) {
        return Cell::missing("more than a thousandfold: next to none under some mapping");
    }
    cell(percent)
}

fn finding_cells(found: &KeyResource, reason: &str) -> Vec<Cell> {
    let variation = |varies: f64| variation_cell(&[100.0 * varies], |range| Cell::Number(range[0]));
    let key = match found.key {
        Some(true) => Cell::Text("yes".to_owned()),
        Some(false) => Cell::Text("no".to_owned()),
        None => Cell::missing(reason),
    };
    let text = |text: &str| Cell::Text(text.to_owned());
    let rest = match &found.finding {
        ResourceFinding::Direct {
            varies,
            moves,
            pair,
        } => [
            text("direct"),
            variation(*varies),
            Cell::Number(100.0 * moves),
            Cell::Text(format!("{} / {}", pair.0, co_runner_label(&pair.1))),
        ],
        ResourceFinding::Indirect {
            varies,
            improved,
            alone,
        } => [
            text("indirect"),
            variation(*varies),
            Cell::missing("no counter of its stall cycles"),
            Cell::Text(format!(
                "improved alone in {alone} of {improved} pairs of mappings"
            )),
        ],
        ResourceFinding::NotCounted => [(); 4].map(|()| Cell::missing(reason)),
    };
    std::iter::once(key).chain(rest).collect()
}

fn characteristics_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let column = |item: &CharacteristicColumn| ReportColumn::with_unit(item.0, item.1, item.2);
    let columns = CHARACTERISTICS.iter().map(column).collect();
    let mut table = ReportTable::new("characteristics", "The programs alone", columns)?;
    for (program, found) in &analysis.characteristics {
        let cell = |item: &CharacteristicColumn| number_or_missing(item.3(found), &analysis.reason);
        table.push(program, CHARACTERISTICS.iter().map(cell).collect())?;
    }
    Ok(table)
}

/// Resources with a part in some attribution.
pub(super) fn attributed_resources(analysis: &Analysis) -> Vec<SharedResource> {
    let parts = analysis
        .importance
        .values()
        .flat_map(|i| i.parts.keys().copied());
    let parts: BTreeSet<SharedResource> = parts.collect();
    parts.into_iter().collect()
}

fn attribution_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let resources = attributed_resources(analysis);
    let mut columns = vec![
        ReportColumn::plain("best", "fastest"),
        ReportColumn::with_unit("slower", "slower", "%"),
    ];
    let part = |r: &SharedResource| ReportColumn::with_unit(r.name(), r.name(), "log %");
    columns.extend(resources.iter().map(part));
    columns.push(ReportColumn::with_unit("other", "other cycles", "log %"));
    let base = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "From the fastest mapping to {base}: parts of the logarithm of the ratio of times; cores is \
         utilisation"
    );
    let mut table = ReportTable::new("attribution", &title, columns)?;
    for ((program, co_runner), found) in &analysis.importance {
        let key = format!("{program} / {}", co_runner_label(co_runner));
        table.push(&key, attribution_cells(found, &resources, &analysis.reason))?;
    }
    Ok(table)
}

fn attribution_cells(found: &Importance, resources: &[SharedResource], reason: &str) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Text(found.best.clone()),
        Cell::Number(100.0 * (found.slower - 1.0)),
    ];
    let part =
        |r: &SharedResource| number_or_missing(found.parts.get(r).map(|part| 100.0 * part), reason);
    cells.extend(resources.iter().map(part));
    cells.push(Cell::Number(100.0 * found.unexplained_part()));
    cells
}

fn importance_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let co_runners: BTreeSet<&str> = analysis.importance.keys().map(|p| p.1.as_str()).collect();
    let column = |name: &&str| {
        ReportColumn::plain(&column_key(co_runner_label(name)), co_runner_label(name))
    };
    let columns = co_runners.iter().map(column).collect();
    let base = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "The most important resources of each program (row) beside each co-runner (column): what makes \
         {base} slower than its fastest mapping; lm is L2, prefetchers and memory path"
    );
    let mut table = ReportTable::new("importance", &title, columns)?;
    let programs: BTreeSet<&str> = analysis.importance.keys().map(|p| p.0.as_str()).collect();
    for program in programs {
        let cell = |co: &&str| {
            let pair = (program.to_owned(), (*co).to_owned());
            analysis
                .importance
                .get(&pair)
                .map_or_else(|| Cell::missing("was not run"), importance_cell)
        };
        table.push(program, co_runners.iter().map(cell).collect())?;
    }
    Ok(table)
}

fn importance_cell(found: &Importance) -> Cell {
    match found.resources.is_empty() {
        false => Cell::Text(found.resources.join("+")),
        true => Cell::missing("it is the fastest or nearly, or for other reasons"),
    }
}

fn l2mp_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let columns = vec![
        ReportColumn::plain("correlation", "correlation with cycles"),
        ReportColumn::plain("rows", "rows"),
    ];
    let title =
        "L2MP, L2 misses times memory latency: correlation with executed cycles over mappings";
    let mut table = ReportTable::new("l2mp", title, columns)?;
    let rows = &analysis.table.rows;
    let programs: BTreeSet<&str> = rows.iter().map(|row| row.program.as_str()).collect();
    for program in programs {
        let mine = rows.iter().filter(|row| row.program == program);
        let counted = mine.filter(|row| row.usage.memory.is_some()).count();
        let why_not = if counted == 0 {
            analysis.reason.as_str()
        } else {
            "fewer than three rows, or all alike"
        };
        let correlation = analysis.correlation.get(program).copied();
        table.push(
            program,
            vec![
                number_or_missing(correlation, why_not),
                Cell::Count(counted as u64),
            ],
        )?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_from_next_to_nothing_is_no_number() {
        let shown =
            |percent: &[f64]| variation_cell(percent, |range| Cell::Number(range[0])).value();
        assert_eq!(shown(&[551.0, 549.0]), Some(551.0));
        // One of three seeds begins at 10^-17 lines per thousand instructions.
        assert_eq!(shown(&[340.0, 2e18, 341.0]), None);
    }
}
