//! Tables and a figure of what was run.

use super::case::{Case, antt, stp};
use super::ground::Ground;
use super::runs::{Alone, Both};
use crate::reference_summary::ReferenceSummary;
use consort_experiment::traced::Traced;
use consort_reference::Cause;
use consort_report::{
    Axis, Cell, Column, Figure, Plot, Point, PointSeries, Scatter, Table, TableError,
};
use consort_sim::contention::Stack;

/// Cases explained term by term.
const WORST: usize = 10;

/// Names that rows are made of.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) grounds: &'a [Ground],
    pub(super) programs: &'a [Traced],
}

impl Names<'_> {
    fn of(&self, case: &Case) -> String {
        let names = case
            .programs
            .iter()
            .map(|&program| self.programs[program].name());
        let names: Vec<&str> = names.collect();
        format!("{}/{}", self.grounds[case.ground].key, names.join("+"))
    }
}

/// Every case: slowdowns by both engines.
pub(super) fn cases(cases: &[Case], names: Names<'_>) -> Result<Table, TableError> {
    let columns = vec![
        Column::plain("program", "program"),
        Column::plain("fast", "slowdown, fast engine"),
        Column::plain("reference", "slowdown, reference"),
        Column::plain("fast_stp", "STP of all, fast engine"),
        Column::plain("reference_stp", "STP of all, reference"),
        Column::plain("fast_antt", "ANTT of all, fast engine"),
        Column::plain("reference_antt", "ANTT of all, reference"),
    ];
    let mut table = Table::new(
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
            table.push(&format!("{}/{place}", names.of(case)), cells)?;
        }
    }
    Ok(table)
}

/// Errors by ground.
pub(super) fn grounds(by_ground: &[(&str, ReferenceSummary)]) -> Result<Table, TableError> {
    let columns = vec![
        Column::plain("ground", "where"),
        Column::plain("cases", "cases"),
        Column::with_unit("stp", "error of STP", "%"),
        Column::with_unit("antt", "error of ANTT", "%"),
        Column::with_unit("slowdown", "error of slowdowns", "%"),
        Column::plain("rank", "rank correlation of co-runners"),
        Column::with_unit("best_fast", "best over random pairing, fast", "%"),
        Column::with_unit("best_reference", "best over random pairing, reference", "%"),
        Column::with_unit(
            "chosen_reference",
            "fast engine's pairing over random, reference",
            "%",
        ),
        Column::with_unit("victim_fast", "variance by victim, fast", "%"),
        Column::with_unit("victim_reference", "variance by victim, reference", "%"),
    ];
    let title = "The fast engine against the reference: means over cases";
    let mut table = Table::new("reference-grounds", title, columns)?;
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
fn causes() -> Vec<Column> {
    let mut columns = vec![
        Column::plain("engine", "engine"),
        Column::plain("slowdown", "slowdown"),
        Column::plain("cpi", "cycles per instruction"),
    ];
    let terms = TERMS.iter();
    columns.extend(terms.map(|(key, title, ..)| Column::plain(key, title)));
    columns
}

/// Every program alone on every ground, term by term.
pub(super) fn alone(alone: &Alone, names: Names<'_>) -> Result<Table, TableError> {
    let title = "Programs alone: cycles per instruction by cause";
    let mut table = Table::new("reference-alone", title, causes())?;
    for (&(ground, place, program), both) in alone.iter() {
        let (ground, program) = (names.grounds[ground].key, names.programs[program].name());
        let key = format!("{ground}/{place}/{program}");
        push_both(&mut table, &key, [1.0; 2], both)?;
    }
    Ok(table)
}

/// The threads whose slowdowns are farthest off, alone and together, term by term.
pub(super) fn worst(
    cases: &[(Case, Vec<Both>)],
    alone: impl Fn(&Case, usize) -> Option<Both>,
    names: Names<'_>,
) -> Result<Table, TableError> {
    let title =
        "The slowdowns that are farthest off: cycles per instruction by cause, alone and together";
    let mut table = Table::new("reference-worst", title, causes())?;
    let mut order: Vec<&(Case, Vec<Both>)> = cases.iter().collect();
    order.sort_by(|a, b| b.0.worst().1.total_cmp(&a.0.worst().1));
    for (case, threads) in order.into_iter().take(WORST) {
        let (place, _) = case.worst();
        let key = format!("{}/{place}", names.of(case));
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
            push_both(&mut table, &format!("{key}/{when}"), slowdowns, both)?;
        }
    }
    Ok(table)
}

/// Adds a thread's rows, that of the fast engine first.
fn push_both(
    table: &mut Table,
    key: &str,
    [fast, reference]: [f64; 2],
    both: &Both,
) -> Result<(), TableError> {
    let terms = terms_of_fast(&both.fast.stack);
    push(table, &format!("{key}/fast"), "fast", fast.into(), &terms)?;
    let (row, terms) = (format!("{key}/reference"), terms_of_reference(both));
    push(table, &row, "reference", reference.into(), &terms)
}

fn push(
    table: &mut Table,
    row: &str,
    engine: &str,
    slowdown: Cell,
    terms: &[f64; TERMS.len()],
) -> Result<(), TableError> {
    let mut cells = vec![engine.into(), slowdown, terms.iter().sum::<f64>().into()];
    cells.extend(terms.map(Cell::from));
    table.push(row, cells)
}

/// A term's key and title, its parts in the fast engine, and its causes in the reference.
type Term = (
    &'static str,
    &'static str,
    fn(&Stack) -> f64,
    &'static [Cause],
);

/// Causes that both engines have.
const TERMS: [Term; 8] = [
    (
        "base",
        "base, dependences",
        |s| s.base + s.window,
        &[Cause::Base, Cause::Dependence, Cause::Commit],
    ),
    ("units", "units and ports", |s| s.units, &[Cause::Ports]),
    ("fetch", "fetch", |s| s.fetch, &[Cause::Fetch]),
    ("branch", "branch", |s| s.branch, &[Cause::Branch]),
    ("l2", "L2", |s| s.l2, &[Cause::L2]),
    ("llc", "LLC", |s| s.llc, &[Cause::Llc]),
    (
        "memory",
        "memory, stores, TLB",
        |s| s.memory + s.queue + s.tlb,
        &[Cause::Memory, Cause::Stores],
    ),
    (
        "slots",
        "slots taken by co-runners",
        |s| s.dispatch,
        &[Cause::CoRunner],
    ),
];

fn terms_of_fast(stack: &Stack) -> [f64; TERMS.len()] {
    TERMS.map(|(_, _, of, _)| of(stack))
}

fn terms_of_reference(both: &Both) -> [f64; TERMS.len()] {
    let thread = &both.reference;
    let instructions = thread.instructions.max(1) as f64;
    let cycles =
        |causes: &[Cause]| -> f64 { causes.iter().map(|&cause| thread.stack.cycles(cause)).sum() };
    TERMS.map(|(_, _, _, causes)| cycles(causes) / instructions)
}

/// Slowdown against slowdown.
pub(super) fn figure(
    cases: &[Case],
    names: Names<'_>,
) -> Result<Figure, consort_report::FigureError> {
    let mut series = Vec::new();
    for (number, ground) in names.grounds.iter().enumerate() {
        let here = cases.iter().filter(|case| case.ground == number);
        let points = here.flat_map(|case| case.reference.iter().zip(&case.fast));
        let points = points.map(|(&x, &y)| Point { x, y, ci95: None });
        series.push(PointSeries {
            name: ground.key.to_owned(),
            points: points.collect(),
        });
    }
    series.retain(|one| !one.points.is_empty());
    let plot = Plot::Scatter(Scatter {
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
