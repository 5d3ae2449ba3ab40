//! The answers as tables.

use super::analysis::Analysis;
use crate::frame::known;
use consort_core::mapping::analysis::{
    Characteristics, Finding, Importance, KeyResource, Resource, Row,
};
use consort_report::{Cell, Column, Table, TableError};
use std::collections::{BTreeMap, BTreeSet};

/// One characteristic: key, title, unit, and its value in that unit.
pub(super) type Item = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Characteristics) -> Option<f64>,
);

/// All characteristics.
pub(super) const CHARACTERISTICS: [Item; 10] = [
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
pub(super) fn missing_characteristics(all: &[(String, Characteristics)]) -> Vec<&'static str> {
    let missing = |item: &&Item| all.iter().all(|(_, c)| item.3(c).is_none());
    CHARACTERISTICS
        .iter()
        .filter(missing)
        .map(|item| item.1)
        .collect()
}

/// All tables, the main one first.
pub(super) fn all(analysis: &Analysis) -> Result<Vec<Table>, TableError> {
    Ok(vec![
        best(analysis)?,
        programs(analysis)?,
        key_resources(analysis)?,
        characteristics(analysis)?,
        attribution(analysis)?,
        importance(analysis)?,
        l2mp(analysis)?,
    ])
}

/// The programs of a row's workload, in alphabetical order.
fn workload(row: &Row) -> String {
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

fn best(analysis: &Analysis) -> Result<Table, TableError> {
    let first = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "The best mapping of each workload, by the mean speed of its programs over that under {first}"
    );
    let mut columns = vec![Column::plain("best", "best")];
    let gain = |m: &String| Column::with_unit(&column_key(m), m, "% gain");
    columns.extend(analysis.mappings.iter().map(gain));
    let mut table = Table::new("best", &title, columns)?;
    for (workload, gains) in gains(analysis) {
        let best = gains.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let mut cells = vec![Cell::Text(
            best.map_or_else(String::new, |(m, _)| m.clone()),
        )];
        let gain = |m: &String| {
            known(
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
fn programs(analysis: &Analysis) -> Result<Table, TableError> {
    let counted: BTreeSet<Resource> = analysis
        .table
        .rows
        .iter()
        .flat_map(|row| row.usage.amounts.keys().copied())
        .collect();
    let mut columns = vec![
        Column::with_unit("time", "time", "s"),
        Column::with_unit("cycles", "cycles", "1e9"),
        Column::with_unit("utilisation", "utilisation", "%"),
    ];
    for resource in &counted {
        let (name, unit) = (resource.name(), resource.unit());
        columns.push(Column::with_unit(name, name, &format!("1e6 {unit}")));
        let key = format!("{name}-stall");
        columns.push(Column::with_unit(
            &key,
            &format!("{name} stall"),
            "% of cycles",
        ));
    }
    let mut table = Table::new("programs", "Programs under mappings, per run", columns)?;
    for row in &analysis.table.rows {
        let key = format!(
            "{} / {} / {}",
            row.program,
            beside(&row.co_runner),
            row.mapping
        );
        table.push(&key, used(row, &counted, &analysis.reason))?;
    }
    Ok(table)
}

fn beside(co_runner: &str) -> &str {
    if co_runner.is_empty() {
        "alone"
    } else {
        co_runner
    }
}

fn used(row: &Row, counted: &BTreeSet<Resource>, reason: &str) -> Vec<Cell> {
    let usage = &row.usage;
    let mut cells = vec![
        Cell::Number(usage.time_s),
        known(usage.cycles.map(|c| c / 1e9), reason),
        known(percent(usage.utilisation), reason),
    ];
    for resource in counted {
        let amount = usage.amounts.get(resource);
        cells.push(known(amount.map(|a| a.used / 1e6), reason));
        let share = amount.and_then(|a| Some(100.0 * a.stall_cycles? / usage.cycles?));
        cells.push(known(share, "no counter of its stall cycles"));
    }
    cells
}

fn key_resources(analysis: &Analysis) -> Result<Table, TableError> {
    let columns = vec![
        Column::plain("matters", "matters"),
        Column::plain("approach", "approach"),
        Column::with_unit("varies", "use varies", "%"),
        Column::with_unit("moves", "moves cycles or time", "%"),
        Column::plain("where", "most for"),
    ];
    let title = "Key resources: use varies across mappings and moves performance";
    let mut table = Table::new("key-resources", title, columns)?;
    for found in &analysis.key_resources {
        table.push(found.resource.name(), judged(found, &analysis.reason))?;
    }
    Ok(table)
}

/// Largest range of a use, percent, that is shown.
const WIDEST_PERCENT: f64 = 1e5;

/// Range of the use of a resource, percent; `cell` makes one of the number, or of the numbers of
/// several seeds. One that begins at next to nothing has no range to speak of.
pub(crate) fn variation(percent: &[f64], cell: impl FnOnce(&[f64]) -> Cell) -> Cell {
    if percent.iter().any(|&range| range > WIDEST_PERCENT) {
        return Cell::missing("more than a thousandfold: next to none under some mapping");
    }
    cell(percent)
}

fn judged(found: &KeyResource, reason: &str) -> Vec<Cell> {
    let variation = |varies: f64| variation(&[100.0 * varies], |range| Cell::Number(range[0]));
    let key = match found.key {
        Some(true) => Cell::Text("yes".to_owned()),
        Some(false) => Cell::Text("no".to_owned()),
        None => Cell::missing(reason),
    };
    let text = |text: &str| Cell::Text(text.to_owned());
    let rest = match &found.finding {
        Finding::Direct {
            varies,
            moves,
            pair,
        } => [
            text("direct"),
            variation(*varies),
            Cell::Number(100.0 * moves),
            Cell::Text(format!("{} / {}", pair.0, beside(&pair.1))),
        ],
        Finding::Indirect {
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
        Finding::NotCounted => [(); 4].map(|()| Cell::missing(reason)),
    };
    std::iter::once(key).chain(rest).collect()
}

fn characteristics(analysis: &Analysis) -> Result<Table, TableError> {
    let column = |item: &Item| Column::with_unit(item.0, item.1, item.2);
    let columns = CHARACTERISTICS.iter().map(column).collect();
    let mut table = Table::new("characteristics", "The programs alone", columns)?;
    for (program, found) in &analysis.characteristics {
        let cell = |item: &Item| known(item.3(found), &analysis.reason);
        table.push(program, CHARACTERISTICS.iter().map(cell).collect())?;
    }
    Ok(table)
}

/// Resources with a part in some attribution.
pub(super) fn attributed(analysis: &Analysis) -> Vec<Resource> {
    let parts = analysis
        .importance
        .values()
        .flat_map(|i| i.parts.keys().copied());
    let parts: BTreeSet<Resource> = parts.collect();
    parts.into_iter().collect()
}

fn attribution(analysis: &Analysis) -> Result<Table, TableError> {
    let resources = attributed(analysis);
    let mut columns = vec![
        Column::plain("best", "fastest"),
        Column::with_unit("slower", "slower", "%"),
    ];
    let part = |r: &Resource| Column::with_unit(r.name(), r.name(), "log %");
    columns.extend(resources.iter().map(part));
    columns.push(Column::with_unit("other", "other cycles", "log %"));
    let base = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "From the fastest mapping to {base}: parts of the logarithm of the ratio of times; cores is \
         utilisation"
    );
    let mut table = Table::new("attribution", &title, columns)?;
    for ((program, co_runner), found) in &analysis.importance {
        let key = format!("{program} / {}", beside(co_runner));
        table.push(&key, parts(found, &resources, &analysis.reason))?;
    }
    Ok(table)
}

fn parts(found: &Importance, resources: &[Resource], reason: &str) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Text(found.best.clone()),
        Cell::Number(100.0 * (found.slower - 1.0)),
    ];
    let part = |r: &Resource| known(found.parts.get(r).map(|part| 100.0 * part), reason);
    cells.extend(resources.iter().map(part));
    cells.push(Cell::Number(100.0 * found.other()));
    cells
}

fn importance(analysis: &Analysis) -> Result<Table, TableError> {
    let co_runners: BTreeSet<&str> = analysis.importance.keys().map(|p| p.1.as_str()).collect();
    let column = |name: &&str| Column::plain(&column_key(beside(name)), beside(name));
    let columns = co_runners.iter().map(column).collect();
    let base = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "The most important resources of each program (row) beside each co-runner (column): what makes \
         {base} slower than its fastest mapping; lm is L2, prefetchers and memory path"
    );
    let mut table = Table::new("importance", &title, columns)?;
    let programs: BTreeSet<&str> = analysis.importance.keys().map(|p| p.0.as_str()).collect();
    for program in programs {
        let cell = |co: &&str| {
            let pair = (program.to_owned(), (*co).to_owned());
            analysis
                .importance
                .get(&pair)
                .map_or_else(|| Cell::missing("was not run"), most)
        };
        table.push(program, co_runners.iter().map(cell).collect())?;
    }
    Ok(table)
}

fn most(found: &Importance) -> Cell {
    match found.resources.is_empty() {
        false => Cell::Text(found.resources.join("+")),
        true => Cell::missing("it is the fastest or nearly, or for other reasons"),
    }
}

fn l2mp(analysis: &Analysis) -> Result<Table, TableError> {
    let columns = vec![
        Column::plain("correlation", "correlation with cycles"),
        Column::plain("rows", "rows"),
    ];
    let title =
        "L2MP, L2 misses times memory latency: correlation with executed cycles over mappings";
    let mut table = Table::new("l2mp", title, columns)?;
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
            vec![known(correlation, why_not), Cell::Count(counted as u64)],
        )?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_from_next_to_nothing_is_no_number() {
        let shown = |percent: &[f64]| variation(percent, |range| Cell::Number(range[0])).value();
        assert_eq!(shown(&[551.0, 549.0]), Some(551.0));
        // One of three seeds begins at 10^-17 lines per thousand instructions.
        assert_eq!(shown(&[340.0, 2e18, 341.0]), None);
    }
}
