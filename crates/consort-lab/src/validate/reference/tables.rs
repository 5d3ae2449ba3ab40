//! Tables and a figure of the runs of both engines.

use super::parts::ChipPart;
use super::runs::{AloneThreads, EngineThreads, find_alone};
use super::summary::{EngineCase, ReferenceSummary, antt, stp};
use consort_data::{
    Axis, Cell, Figure, FigurePoint, Plot, PointSeries, ReportColumn, ReportTable,
    ReportTableError, ScatterChart,
};
use consort_experiment::traced::TracedProgram;
use consort_reference::SlotCause;
use consort_sim::contention::CpiStack;

/// Cases explained term by term.
const WORST: usize = 10;

/// Names that rows are made of.
#[derive(Clone, Copy)]
pub(super) struct CaseNames<'a> {
    pub(super) parts: &'a [ChipPart],
    pub(super) programs: &'a [TracedProgram],
}

impl CaseNames<'_> {
    fn case_name(&self, case: &EngineCase) -> String {
        let names = case
            .programs
            .iter()
            .map(|&program| self.programs[program].name());
        let names: Vec<&str> = names.collect();
        format!("{}/{}", self.parts[case.part].key, names.join("+"))
    }
}

/// Every case: slowdowns by both engines.
pub(super) fn case_table(
    cases: &[EngineCase],
    names: CaseNames<'_>,
) -> Result<ReportTable, ReportTableError> {
    let columns = vec![
        ReportColumn::plain("program", "program"),
        ReportColumn::plain("fast", "slowdown, fast engine"),
        ReportColumn::plain("reference", "slowdown, reference"),
        ReportColumn::plain("fast_stp", "STP of all, fast engine"),
        ReportColumn::plain("reference_stp", "STP of all, reference"),
        ReportColumn::plain("fast_antt", "ANTT of all, fast engine"),
        ReportColumn::plain("reference_antt", "ANTT of all, reference"),
    ];
    let mut table = ReportTable::new(
        "reference-cases",
        "Programs together, by both engines",
        columns,
    )?;
    for case in cases {
        for (place, &program) in case.programs.iter().enumerate() {
            let program = names.programs[program].name();
            let cells = vec![
                program.into(),
                case.fast[place].into(),
                case.reference[place].into(),
                stp(&case.fast).into(),
                stp(&case.reference).into(),
                antt(&case.fast).into(),
                antt(&case.reference).into(),
            ];
            table.push(&format!("{}/{place}", names.case_name(case)), cells)?;
        }
    }
    Ok(table)
}

/// Errors by part of a machine.
pub(super) fn part_table(
    by_part: &[(&str, ReferenceSummary)],
) -> Result<ReportTable, ReportTableError> {
    let columns = vec![
        ReportColumn::plain("ground", "where"),
        ReportColumn::plain("cases", "cases"),
        ReportColumn::with_unit("stp", "error of STP", "%"),
        ReportColumn::with_unit("antt", "error of ANTT", "%"),
        ReportColumn::with_unit("slowdown", "error of slowdowns", "%"),
        ReportColumn::plain("rank", "rank correlation of co-runners"),
        ReportColumn::with_unit("best_fast", "best over random pairing, fast", "%"),
        ReportColumn::with_unit("best_reference", "best over random pairing, reference", "%"),
        ReportColumn::with_unit(
            "chosen_reference",
            "fast engine's pairing over random, reference",
            "%",
        ),
        ReportColumn::with_unit("victim_fast", "variance by victim, fast", "%"),
        ReportColumn::with_unit("victim_reference", "variance by victim, reference", "%"),
    ];
    let title = "The fast engine against the reference: means over cases";
    let mut table = ReportTable::new("reference-grounds", title, columns)?;
    for (key, summary) in by_part {
        let gain = |ratio: Option<f64>| percent(ratio.map(|ratio| ratio - 1.0));
        let cells = vec![
            (*key).into(),
            ((summary.pairs + summary.larger) as u64).into(),
            percent(summary.stp_error_mean),
            percent(summary.antt_error_mean),
            percent(summary.slowdown_error_mean),
            cell(summary.rank_correlation),
            gain(summary.best_over_random_fast),
            gain(summary.best_over_random_reference),
            gain(summary.chosen_over_random_reference),
            percent(summary.variance_fast.victim),
            percent(summary.variance_reference.victim),
        ];
        table.push(key, cells)?;
    }
    Ok(table)
}

fn cell(value: Option<f64>) -> Cell {
    value.map_or_else(|| Cell::missing("too few cases"), Cell::from)
}

fn percent(share: Option<f64>) -> Cell {
    cell(share.map(|share| 100.0 * share))
}

/// Columns of a row for each engine.
fn cause_columns() -> Vec<ReportColumn> {
    let mut columns = vec![
        ReportColumn::plain("engine", "engine"),
        ReportColumn::plain("slowdown", "slowdown"),
        ReportColumn::plain("cpi", "cycles per instruction"),
    ];
    let terms = TERMS.iter();
    columns.extend(terms.map(|(key, title, ..)| ReportColumn::plain(key, title)));
    columns
}

/// Every program alone on every part, term by term.
pub(super) fn alone_table(
    alone: &AloneThreads,
    names: CaseNames<'_>,
) -> Result<ReportTable, ReportTableError> {
    let title = "Programs alone: cycles per instruction by cause";
    let mut table = ReportTable::new("reference-alone", title, cause_columns())?;
    for (&(part, place, program), both) in alone {
        let (part, program) = (names.parts[part].key, names.programs[program].name());
        let key = format!("{part}/{place}/{program}");
        push_engine_rows(&mut table, &key, [1.0; 2], both)?;
    }
    Ok(table)
}

/// The threads whose slowdowns are farthest off, alone and together, term by term.
pub(super) fn worst_case_table(
    cases: &[(EngineCase, Vec<EngineThreads>)],
    alone: &AloneThreads,
    names: CaseNames<'_>,
) -> Result<ReportTable, ReportTableError> {
    let title =
        "The slowdowns that are farthest off: cycles per instruction by cause, alone and together";
    let mut table = ReportTable::new("reference-worst", title, cause_columns())?;
    let mut order: Vec<&(EngineCase, Vec<EngineThreads>)> = cases.iter().collect();
    let error = |case: &EngineCase| case.worst_slowdown_error().1;
    order.sort_by(|a, b| error(&b.0).total_cmp(&error(&a.0)));
    for (case, threads) in order.into_iter().take(WORST) {
        let (place, _) = case.worst_slowdown_error();
        let key = format!("{}/{place}", names.case_name(case));
        let place_alone = (case.part, place, case.programs[place]);
        if let Some(alone) = find_alone(alone, &names.parts[case.part], place_alone) {
            push_engine_rows(&mut table, &format!("{key}/alone"), [1.0; 2], alone)?;
        }
        let slowdowns = [case.fast[place], case.reference[place]];
        let together = &threads[place];
        push_engine_rows(&mut table, &format!("{key}/together"), slowdowns, together)?;
    }
    Ok(table)
}

/// Adds a thread's rows, that of the fast engine first.
fn push_engine_rows(
    table: &mut ReportTable,
    key: &str,
    [fast, reference]: [f64; 2],
    both: &EngineThreads,
) -> Result<(), ReportTableError> {
    let thread = &both.reference;
    let instructions = thread.instructions.max(1) as f64;
    let fast_terms = TERMS.map(|(_, _, term, _)| term(&both.fast.stack));
    let reference_terms = TERMS.map(|(_, _, _, causes)| {
        let cycles = causes.iter().map(|&cause| thread.stack.cycles(cause));
        cycles.sum::<f64>() / instructions
    });
    for (engine, slowdown, terms) in [
        ("fast", fast, fast_terms),
        ("reference", reference, reference_terms),
    ] {
        let mut cells: Vec<Cell> = vec![
            engine.into(),
            slowdown.into(),
            terms.iter().sum::<f64>().into(),
        ];
        cells.extend(terms.map(Cell::from));
        table.push(&format!("{key}/{engine}"), cells)?;
    }
    Ok(())
}

/// A term's key and title, its parts in the fast engine, and its causes in the reference.
type StackTerm = (
    &'static str,
    &'static str,
    fn(&CpiStack) -> f64,
    &'static [SlotCause],
);

/// Causes that both engines have.
const TERMS: [StackTerm; 8] = [
    (
        "base",
        "base, dependences",
        |s| s.base + s.window,
        &[SlotCause::Base, SlotCause::Dependence, SlotCause::Commit],
    ),
    ("units", "units and ports", |s| s.units, &[SlotCause::Ports]),
    ("fetch", "fetch", |s| s.fetch, &[SlotCause::Fetch]),
    ("branch", "branch", |s| s.branch, &[SlotCause::Branch]),
    ("l2", "L2", |s| s.l2, &[SlotCause::L2]),
    ("llc", "LLC", |s| s.llc, &[SlotCause::Llc]),
    (
        "memory",
        "memory, stores, TLB",
        |s| s.memory + s.queue + s.tlb,
        &[SlotCause::Memory, SlotCause::Stores],
    ),
    (
        "slots",
        "slots taken by co-runners",
        |s| s.dispatch,
        &[SlotCause::CoRunner],
    ),
];

/// Slowdown against slowdown.
pub(super) fn slowdown_figure(
    cases: &[EngineCase],
    names: CaseNames<'_>,
) -> Result<Figure, consort_data::FigureError> {
    let mut series = Vec::new();
    for (number, part) in names.parts.iter().enumerate() {
        let here = cases.iter().filter(|case| case.part == number);
        let points = here.flat_map(|case| case.reference.iter().zip(&case.fast));
        let points = points.map(|(&x, &y)| FigurePoint { x, y, ci95: None });
        series.push(PointSeries {
            name: part.key.to_owned(),
            points: points.collect(),
        });
    }
    series.retain(|one| !one.points.is_empty());
    let plot = Plot::Scatter(ScatterChart {
        x: Axis::linear("Slowdown by the reference", None),
        y: Axis::linear("Slowdown by the fast engine", None),
        series,
        diagonal: true,
    });
    Figure::new(
        "reference",
        "Slowdowns of programs together, by both engines",
        "",
        1,
        plot,
    )
}
