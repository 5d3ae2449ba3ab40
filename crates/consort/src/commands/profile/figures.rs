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
    let owner = RowOwner {
        case: "profile",
        program: Some(program),
        ..RowOwner::default()
    };
    for figure in figures {
        let unit = Some(figure.unit).filter(|unit| !unit.is_empty());
        rows.push(owner, &figure.name, figure.value, unit);
        rows.push_if_some(owner, &format!("{}_ci95", figure.name), figure.ci95, unit);
    }
    rows.table()
}

/// All figures of a profile of a program that executed so many instructions.
pub(super) fn figures(profile: &ProgramProfile, executed: u64) -> Vec<ProfileFigure> {
    let mut rows = rows(&profile.figures);
    let values = |figures: &ExecutionFigures| -> Vec<f64> {
        self::rows(figures)
            .into_iter()
            .map(|row| row.value)
            .collect()
    };
    let errors = profile.errors(values);
    for (row, ci95) in rows.iter_mut().zip(errors.into_iter().flatten()) {
        row.ci95 = Some(ci95);
    }
    let calls = profile.system_calls as f64;
    rows.push(figure("system calls", calls, "calls"));
    let rate = profile.system_calls_per_million(executed);
    rows.push(figure("system calls per 10^6 instructions", rate, "calls"));
    rows.extend(profile.threads.iter().flat_map(thread_figures));
    rows
}

fn thread_figures(threads: &ThreadRelations) -> Vec<ProfileFigure> {
    let (data, code) = (&threads.data, &threads.code);
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let of_data = share(data.by_several, data.lines);
    let of_code = share(code.by_several, code.lines);
    let written = share(data.written, data.by_several);
    let roles = threads.working_roles().count() as f64;
    let mut rows = vec![
        figure("threads", threads.count as f64, "threads"),
        figure(
            "threads at work at a time",
            threads.at_once as f64,
            "threads",
        ),
        figure("roles", roles, "roles"),
        figure("serial", threads.serial_share(), "share"),
        figure("lines of data used by several", of_data, "share"),
        figure("of these written to", written, "share"),
        figure("a thread's data in common", data.by_all, "share"),
        figure("lines of code used by several", of_code, "share"),
        figure("a thread's code in common", code.by_all, "share"),
    ];
    if let Some(locks) = threads.locks {
        let rate = threads.locks_per_million();
        rows.extend([
            figure("locks taken, at least", rate, "per 10^6 instructions"),
            figure("lock held", locks.hold_instr, "instructions"),
            figure("locks", locks.words as f64, "locks"),
            figure("waits for locks", locks.waits as f64, "waits"),
        ]);
    }
    if let (Some(barriers), Some(spacing)) = (threads.barriers, threads.barrier_spacing()) {
        rows.extend([
            figure("barriers", barriers.opened as f64, "barriers"),
            figure("between barriers", spacing, "instructions"),
            figure("imbalance at barriers", barriers.imbalance, "share"),
        ]);
    }
    rows
}

fn figure(name: impl Into<String>, value: f64, unit: &'static str) -> ProfileFigure {
    ProfileFigure {
        name: name.into(),
        value,
        unit,
        ci95: None,
    }
}

fn rows(figures: &ExecutionFigures) -> Vec<ProfileFigure> {
    let shares = figures.shares();
    let of_vectors = figures.mix.vector_access_share();
    let mut rows = vec![
        figure("fp", shares.fp, "share"),
        figure("vector", shares.vector, "share"),
        figure("int", shares.int, "share"),
        figure("load", shares.load, "share"),
        figure("store", shares.store, "share"),
        figure("branch", shares.branch, "share"),
        figure("loads and stores of vectors", of_vectors, "share"),
    ];
    for (window, (ilp, mlp)) in WINDOWS.iter().zip(figures.ilp.iter().zip(&figures.mlp)) {
        let overlap = format!("overlap of misses in {window}");
        rows.push(figure(
            format!("ILP in {window}"),
            *ilp,
            "instructions/cycle",
        ));
        rows.push(figure(overlap, *mlp, "misses"));
    }
    let memory = &figures.memory;
    let misses = memory.data.misses.iter().zip(&memory.code.misses);
    for (size, (data, code)) in CAPACITIES.iter().zip(misses) {
        for (what, count) in [("data", data), ("code", code)] {
            let name = format!("{what} misses, {} KiB", size >> 10);
            rows.push(figure(name, figures.per_kilo(*count), "per 1000"));
        }
    }
    let schemes = ["tagged predictor", "gshare"].into_iter();
    for (scheme, missed) in schemes.zip(figures.branch_mpki()) {
        for (kib, missed) in PREDICTOR_KIB.iter().zip(missed) {
            let name = format!("mispredictions, {scheme} of {kib} KiB");
            rows.push(figure(name, missed, "per 1000"));
        }
    }
    let first_uses = figures.per_kilo(memory.data.first_uses);
    let (prefetched, excess) = (memory.prefetch_effectiveness, memory.prefetch_excess);
    rows.extend([
        figure("first uses of lines", first_uses, "per 1000"),
        figure("prefetching removes", prefetched, "share"),
        figure("prefetched in vain", excess, "per miss"),
        figure("written back", memory.writeback_share, "share"),
        figure("misses on new pages", memory.page_spread, "share"),
        figure("value to first use", figures.use_distance, "instructions"),
        figure(
            "load to first use",
            figures.load_use_distance,
            "instructions",
        ),
    ]);
    rows
}
