//! Tables and a figure of what was run.

use super::case::{EngineCase, antt, stp};
use super::chip_part::ChipPart;
use super::runs::{AloneThreads, EngineThreads};
use crate::reference_summary::ReferenceSummary;
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
    pub(super) grounds: &'a [ChipPart],
    pub(super) programs: &'a [TracedProgram],
}

impl CaseNames<'_> {
    fn case_name(&self, case: &EngineCase) -> String {
        let names = case
            .programs
            .iter()
            .map(|&program| self.programs[program].name());
        let names: Vec<&str> = names.collect();
        format!("{}/{}", self.grounds[case.ground].key, names.join("+"))
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

/// Errors by ground.
pub(super) fn part_table(
    by_ground: &[(&str, ReferenceSummary)],
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
    for (key, summary) in by_ground {
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

/// Every program alone on every ground, term by term.
pub(super) fn alone_table(
    alone: &AloneThreads,
    names: CaseNames<'_>,
) -> Result<ReportTable, ReportTableError> {
    let title = "Programs alone: cycles per instruction by cause";
    let mut table = ReportTable::new("reference-alone", title, cause_columns())?;
    for (&(ground, place, program), both) in alone.iter() {
        let (ground, program) = (names.grounds[ground].key, names.programs[program].name());
        let key = format!("{ground}/{place}/{program}");
        push_engine_rows(&mut table, &key, [1.0; 2], both)?;
    }
    Ok(table)
}

/// The threads whose slowdowns are farthest off, alone and together, term by term.
pub(super) fn worst_case_table(
    cases: &[(EngineCase, Vec<EngineThreads>)],
    alone: impl Fn(&EngineCase, usize) -> Option<EngineThreads>,
    names: CaseNames<'_>,
) -> Result<ReportTable, ReportTableError> {
    let title =
        "The slowdowns that are farthest off: cycles per instruction by cause, alone and together";
    let mut table = ReportTable::new("reference-worst", title, cause_columns())?;
    let mut order: Vec<&(EngineCase, Vec<EngineThreads>)> = cases.iter().collect();
    order.sort_by(|a, b| {
        b.0.worst_slowdown_error()
            .1
            .total_cmp(&a.0.worst_slowdown_error().1)
    });
    for (case, threads) in order.into_iter().take(WORST) {
        let (place, _) = case.worst_slowdown_error();
        let key = format!("{}/{place}", names.case_name(case));
        let alone = alone(case, place);
        for (when, both) in [
            ("alone", alone.as_ref()),
            ("together", Some(&threads[place])),
        ] {
            let Some(both) = both else { continue };
            let slowdowns = match when {
                "together" => [case.fast[place], case.reference[place]],
                _ => [1.0; 2],
            };
            push_engine_rows(&mut table, &format!("{key}/{when}"), slowdowns, both)?;
        }
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
    let terms = fast_terms(&both.fast.stack);
    push_row(table, &format!("{key}/fast"), "fast", fast.into(), &terms)?;
    let (row, terms) = (format!("{key}/reference"), reference_terms(both));
    push_row(table, &row, "reference", reference.into(), &terms)
}

fn push_row(
    table: &mut ReportTable,
    row: &str,
    engine: &str,
    slowdown: Cell,
    terms: &[f64; TERMS.len()],
) -> Result<(), ReportTableError> {
    let mut cells = vec![engine.into(), slowdown, terms.iter().sum::<f64>().into()];
    cells.extend(terms.map(Cell::from));
    table.push(row, cells)
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

fn fast_terms(stack: &CpiStack) -> [f64; TERMS.len()] {
    TERMS.map(|(_, _, of, _)| of(stack))
}

fn reference_terms(both: &EngineThreads) -> [f64; TERMS.len()] {
    let thread = &both.reference;
    let instructions = thread.instructions.max(1) as f64;
    let cycles = |causes: &[SlotCause]| -> f64 {
        causes.iter().map(|&cause| thread.stack.cycles(cause)).sum()
    };
    TERMS.map(|(_, _, _, causes)| cycles(causes) / instructions)
}

/// Slowdown against slowdown.
pub(super) fn slowdown_figure(
    cases: &[EngineCase],
    names: CaseNames<'_>,
) -> Result<Figure, consort_data::FigureError> {
    let mut series = Vec::new();
    for (number, ground) in names.grounds.iter().enumerate() {
        let here = cases.iter().filter(|case| case.ground == number);
        let points = here.flat_map(|case| case.reference.iter().zip(&case.fast));
        let points = points.map(|(&x, &y)| FigurePoint { x, y, ci95: None });
        series.push(PointSeries {
            name: ground.key.to_owned(),
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
