//! Tables and figures of an analysis of mappings.

use super::Analysis;
use crate::frame::number_or_missing;
use consort_core::mapping::analysis::{
    AloneCharacteristics, KeyResource, MappingRow, ResourceFinding, SharedResource,
};
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Cell, Figure, FigureError, FigurePoint, HeatMap, MAX_SERIES,
    Plot, PointSeries, ReportColumn, ReportTable, ReportTableError, ScatterChart,
};
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
    let missing = CHARACTERISTICS
        .iter()
        .filter(|(.., value)| all.iter().all(|(_, c)| value(c).is_none()));
    missing.map(|(_, title, ..)| *title).collect()
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
    let mut gains: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for (workload, by_mapping) in logs {
        let means = by_mapping.into_iter().map(|(mapping, logs)| {
            let mean = libm::exp(logs.iter().sum::<f64>() / logs.len() as f64);
            (mapping, mean)
        });
        gains.insert(workload, means.collect());
    }
    gains
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

/// Use of the hardware by every program under every mapping.
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
        let (usage, reason) = (&row.usage, analysis.reason.as_str());
        let mut cells = vec![
            Cell::Number(usage.time_s),
            number_or_missing(usage.cycles.map(|c| c / 1e9), reason),
            number_or_missing(percent(usage.utilisation), reason),
        ];
        for resource in &counted {
            let amount = usage.amounts.get(resource);
            cells.push(number_or_missing(amount.map(|a| a.used / 1e6), reason));
            let share = amount.and_then(|a| Some(100.0 * a.stall_cycles? / usage.cycles?));
            cells.push(number_or_missing(share, "no counter of its stall cycles"));
        }
        table.push(&key, cells)?;
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

/// Range of the use of a resource, percent; `cell` makes a cell of its number, or of the numbers of
/// several seeds. A use that begins near zero has no meaningful range.
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
        let mut cells = vec![
            Cell::Text(found.best.clone()),
            Cell::Number(100.0 * (found.slower - 1.0)),
        ];
        for resource in &resources {
            let part = found.parts.get(resource).map(|part| 100.0 * part);
            cells.push(number_or_missing(part, &analysis.reason));
        }
        cells.push(Cell::Number(100.0 * found.unexplained_part()));
        table.push(&key, cells)?;
    }
    Ok(table)
}

fn importance_table(analysis: &Analysis) -> Result<ReportTable, ReportTableError> {
    let co_runners: BTreeSet<&str> = analysis.importance.keys().map(|p| p.1.as_str()).collect();
    let column = |name: &&str| {
        ReportColumn::plain(&column_key(co_runner_label(name)), co_runner_label(name))
    };
    let columns = co_runners.iter().map(column).collect();
    let base = analysis.mappings.first().map_or("", String::as_str);
    let title = format!(
        "The most important resources of each program (row) next to each co-runner (column): what makes \
         {base} slower than its fastest mapping; lm is L2, prefetchers and memory path"
    );
    let mut table = ReportTable::new("importance", &title, columns)?;
    let programs: BTreeSet<&str> = analysis.importance.keys().map(|p| p.0.as_str()).collect();
    for program in programs {
        let cell = |co: &&str| {
            let pair = (program.to_owned(), (*co).to_owned());
            match analysis.importance.get(&pair) {
                None => Cell::missing("was not run"),
                Some(found) if found.resources.is_empty() => {
                    Cell::missing("it is the fastest or nearly, or for other reasons")
                }
                Some(found) => Cell::Text(found.resources.join("+")),
            }
        };
        table.push(program, co_runners.iter().map(cell).collect())?;
    }
    Ok(table)
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

/// Figures for which there are numbers.
pub(super) fn all_figures(analysis: &Analysis, runs: usize) -> Result<Vec<Figure>, FigureError> {
    let figures = [
        gain_figure(analysis, runs),
        attribution_figure(analysis, runs),
        l2mp_figure(analysis, runs),
    ];
    figures.into_iter().flatten().collect()
}

/// Speed of each workload under each mapping over that under the first.
fn gain_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let (first, others) = analysis.mappings.split_first()?;
    let gains = gains(analysis);
    let workloads: Vec<String> = gains.keys().cloned().collect();
    let value = |workload: &String, mapping: &String| gains[workload].get(mapping).copied();
    if others.is_empty() || workloads.is_empty() {
        return None;
    }
    let axis = Axis::linear(&format!("speed relative to {first}"), None);
    let plot = if others.len() <= MAX_SERIES {
        let series = |mapping: &String| BarSeries {
            name: mapping.clone(),
            bars: workloads
                .iter()
                .map(|w| value(w, mapping).map(Bar::exact))
                .collect(),
        };
        Plot::Bars(BarChart {
            category: "workload".to_owned(),
            value: axis,
            baseline: 1.0,
            groups: workloads.clone(),
            series: others.iter().map(series).collect(),
        })
    } else {
        let row = |m: &String| workloads.iter().map(|w| value(w, m)).collect();
        Plot::HeatMap(HeatMap {
            x: "workload".to_owned(),
            y: "mapping".to_owned(),
            value: axis,
            columns: workloads.clone(),
            rows: others.to_vec(),
            cells: others.iter().map(row).collect(),
        })
    };
    let title = "Mean speed of the programs under each mapping";
    let text = "Geometric mean over the programs of a workload; above 1 is faster.";
    Some(Figure::new("gain", title, text, runs, plot))
}

/// Parts by which the first mapping is slower than the fastest.
fn attribution_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let resources = attributed_resources(analysis);
    if resources.is_empty() || resources.len() >= MAX_SERIES {
        return None;
    }
    let found: Vec<_> = analysis.importance.values().collect();
    let group = |(program, co_runner): &(String, String)| match co_runner.as_str() {
        "" => program.clone(),
        co_runner => format!("{program} / {co_runner}"),
    };
    let of = |resource: &SharedResource| BarSeries {
        name: resource.name().to_owned(),
        bars: found
            .iter()
            .map(|i| i.parts.get(resource).map(|part| Bar::exact(100.0 * part)))
            .collect(),
    };
    let other = BarSeries {
        name: "other cycles".to_owned(),
        bars: found
            .iter()
            .map(|i| Some(Bar::exact(100.0 * i.unexplained_part())))
            .collect(),
    };
    let plot = Plot::Bars(BarChart {
        category: "program / co-runner".to_owned(),
        value: Axis::linear("part of the log ratio of times", Some("%")),
        baseline: 0.0,
        groups: analysis.importance.keys().map(group).collect(),
        series: resources.iter().map(of).chain([other]).collect(),
    });
    let base = analysis.mappings.first()?;
    let title = &format!("From each program's fastest mapping to {base}, by resource");
    let text = "Parts sum to the logarithm of the ratio of times; cores is utilisation. Below 0 \
                are parts that make the slower mapping less slow.";
    Some(Figure::new("attribution", title, text, runs, plot))
}

/// L2MP against executed cycles.
fn l2mp_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let rows = &analysis.table.rows;
    let programs: BTreeSet<&str> = rows.iter().map(|row| row.program.as_str()).collect();
    let series = |program: &&str| {
        let mine = rows.iter().filter(|row| row.program == **program);
        let points = mine.filter_map(|row| {
            let l2mp = row.usage.memory?.l2mp_cycles()?;
            Some(FigurePoint::exact(l2mp / 1e9, row.usage.cycles? / 1e9))
        });
        PointSeries {
            name: (*program).to_owned(),
            points: points.collect(),
        }
    };
    let all = programs.iter().map(series);
    let series: Vec<PointSeries> = all.filter(|s| !s.points.is_empty()).collect();
    if series.is_empty() || series.len() > MAX_SERIES {
        return None;
    }
    let plot = Plot::Scatter(ScatterChart {
        x: Axis::linear("L2MP", Some("1e9 cycles")),
        y: Axis::linear("executed cycles", Some("1e9")),
        series,
        diagonal: false,
    });
    let title = "Executed cycles by L2MP";
    let text = "One point per mapping and co-runner; L2MP is L2 misses times memory latency.";
    Some(Figure::new("l2mp", title, text, runs, plot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_from_near_zero_has_no_number() {
        let shown =
            |percent: &[f64]| variation_cell(percent, |range| Cell::Number(range[0])).value();
        assert_eq!(shown(&[551.0, 549.0]), Some(551.0));
        // One of three seeds begins at 10^-17 lines per thousand instructions.
        assert_eq!(shown(&[340.0, 2e18, 341.0]), None);
    }
}
