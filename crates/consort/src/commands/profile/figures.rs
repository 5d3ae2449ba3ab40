//! A profile's figures as rows.

use crate::output::{OutputColumn, number, text};
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_profile::measure::{CAPACITIES, PREDICTOR_KIB, WINDOWS};
use consort_profile::{ExecutionFigures, ProgramProfile, ThreadRelations};
use serde::Serialize;

/// One measured figure.
#[derive(Serialize)]
pub(super) struct ProfileFigure {
    name: String,
    value: f64,
    unit: &'static str,
    /// Half width of the 95 percent interval that sampling leaves.
    ci95: Option<f64>,
}

pub(super) const COLUMNS: &[OutputColumn<ProfileFigure>] = &[
    text("figure", |f| f.name.clone()),
    number("value", |f| format!("{:.3}", f.value)),
    number("ci95", |f| {
        f.ci95
            .map_or_else(String::new, |ci95| format!("±{ci95:.3}"))
    }),
    text("unit", |f| f.unit.to_owned()),
];

/// Figures one per row, as measures of a program; half widths of intervals end in `_ci95`.
pub(super) fn table(program: &str, figures: &[ProfileFigure]) -> Table {
    let mut rows = LongRows::default();
    let of = RowOwner {
        case: "profile",
        program: Some(program),
        ..RowOwner::default()
    };
    for figure in figures {
        let unit = Some(figure.unit).filter(|unit| !unit.is_empty());
        rows.push(of, &figure.name, figure.value, unit);
        rows.push_if_some(of, &format!("{}_ci95", figure.name), figure.ci95, unit);
    }
    rows.table()
}

/// All figures of a profile of a program that executed so many instructions.
pub(super) fn figures(profile: &ProgramProfile, executed: u64) -> Vec<ProfileFigure> {
    let mut rows = rows(&profile.figures);
    let errors = profile.errors(values);
    for (row, ci95) in rows.iter_mut().zip(errors.into_iter().flatten()) {
        row.ci95 = Some(ci95);
    }
    let calls = profile.system_calls as f64;
    rows.push(figure("system calls".to_owned(), calls, "calls"));
    let rate = profile.system_calls_per_million(executed);
    let name = "system calls per 10^6 instructions".to_owned();
    rows.push(figure(name, rate, "calls"));
    rows.extend(profile.threads.iter().flat_map(thread_figures));
    rows
}

fn thread_figures(threads: &ThreadRelations) -> Vec<ProfileFigure> {
    let (data, code) = (&threads.data, &threads.code);
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    let (of_data, of_code) = (
        share(data.by_several, data.lines),
        share(code.by_several, code.lines),
    );
    let mut rows = vec![
        ("threads", threads.count as f64, "threads"),
        (
            "threads at work at a time",
            threads.at_once as f64,
            "threads",
        ),
        ("roles", threads.working_roles().count() as f64, "roles"),
        ("serial", threads.serial_share(), "share"),
        ("lines of data used by several", of_data, "share"),
        (
            "of these written to",
            share(data.written, data.by_several),
            "share",
        ),
        ("a thread's data in common", data.by_all, "share"),
        ("lines of code used by several", of_code, "share"),
        ("a thread's code in common", code.by_all, "share"),
    ];
    rows.extend(lock_figures(threads).into_iter().flatten());
    rows.extend(barrier_figures(threads).into_iter().flatten());
    let rows = rows.into_iter();
    rows.map(|(name, value, unit)| figure(name.to_owned(), value, unit))
        .collect()
}

type FigureTriple = (&'static str, f64, &'static str);

fn lock_figures(threads: &ThreadRelations) -> Option<[FigureTriple; 4]> {
    let locks = threads.locks?;
    let rate = threads.locks_per_million();
    Some([
        ("locks taken, at least", rate, "per 10^6 instructions"),
        ("lock held", locks.hold_instr, "instructions"),
        ("locks", locks.words as f64, "locks"),
        ("waits for locks", locks.waits as f64, "waits"),
    ])
}

fn barrier_figures(threads: &ThreadRelations) -> Option<[FigureTriple; 3]> {
    let (barriers, spacing) = (threads.barriers?, threads.barrier_spacing()?);
    Some([
        ("barriers", barriers.opened as f64, "barriers"),
        ("between barriers", spacing, "instructions"),
        ("imbalance at barriers", barriers.imbalance, "share"),
    ])
}

fn values(figures: &ExecutionFigures) -> Vec<f64> {
    rows(figures).into_iter().map(|row| row.value).collect()
}

fn figure(name: String, value: f64, unit: &'static str) -> ProfileFigure {
    ProfileFigure {
        name,
        value,
        unit,
        ci95: None,
    }
}

fn rows(figures: &ExecutionFigures) -> Vec<ProfileFigure> {
    let mut rows = mix(figures);
    rows.extend(parallelism(figures));
    rows.extend(misses(figures));
    rows.extend(mispredictions(figures));
    rows.extend(other_figures(figures));
    rows
}

fn mix(figures: &ExecutionFigures) -> Vec<ProfileFigure> {
    let shares = figures.shares();
    let of_vectors = figures.mix.vector_access_share();
    let rows = [
        ("fp", shares.fp),
        ("vector", shares.vector),
        ("int", shares.int),
        ("load", shares.load),
        ("store", shares.store),
        ("branch", shares.branch),
        ("loads and stores of vectors", of_vectors),
    ];
    rows.map(|(name, share)| figure(name.to_owned(), share, "share"))
        .into()
}

fn parallelism(figures: &ExecutionFigures) -> impl Iterator<Item = ProfileFigure> {
    let both = figures.ilp.iter().zip(&figures.mlp);
    WINDOWS.iter().zip(both).flat_map(|(window, (ilp, mlp))| {
        let name = format!("overlap of misses in {window}");
        [
            figure(format!("ILP in {window}"), *ilp, "instructions/cycle"),
            figure(name, *mlp, "misses"),
        ]
    })
}

fn misses(figures: &ExecutionFigures) -> impl Iterator<Item = ProfileFigure> {
    let memory = &figures.memory;
    let both = memory.data.misses.iter().zip(&memory.code.misses);
    CAPACITIES
        .iter()
        .zip(both)
        .flat_map(|(size, (data, code))| {
            let kib = size >> 10;
            [("data", data), ("code", code)].map(|(what, count)| {
                let name = format!("{what} misses, {kib} KiB");
                figure(name, figures.per_kilo(*count), "per 1000")
            })
        })
}

fn mispredictions(figures: &ExecutionFigures) -> impl Iterator<Item = ProfileFigure> {
    let schemes = ["tagged predictor", "gshare"]
        .into_iter()
        .zip(figures.branch_mpki());
    schemes.flat_map(|(scheme, missed)| {
        let sizes = PREDICTOR_KIB.iter().zip(missed);
        sizes.map(move |(kib, missed)| {
            let name = format!("mispredictions, {scheme} of {kib} KiB");
            figure(name, missed, "per 1000")
        })
    })
}

fn other_figures(figures: &ExecutionFigures) -> [ProfileFigure; 7] {
    let memory = &figures.memory;
    let first_uses = figures.per_kilo(memory.data.first_uses);
    [
        ("first uses of lines", first_uses, "per 1000"),
        (
            "prefetching removes",
            memory.prefetch_effectiveness,
            "share",
        ),
        ("prefetched in vain", memory.prefetch_excess, "per miss"),
        ("written back", memory.writeback_share, "share"),
        ("misses on new pages", memory.page_spread, "share"),
        ("value to first use", figures.use_distance, "instructions"),
        (
            "load to first use",
            figures.load_use_distance,
            "instructions",
        ),
    ]
    .map(|(name, value, unit)| figure(name.to_owned(), value, unit))
}
