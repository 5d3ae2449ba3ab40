//! A profile's figures as rows.

use crate::output::{Column, number, text};
use consort_profile::measure::{CAPACITIES, PREDICTOR_KIB, WINDOWS};
use consort_profile::{Figures, Profile};
use serde::Serialize;

/// One measured figure.
#[derive(Serialize)]
pub(super) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// Half width of the 95 percent interval that sampling leaves.
    ci95: Option<f64>,
}

pub(super) const COLUMNS: &[Column<Figure>] = &[
    text("figure", |f| f.name.clone()),
    number("value", |f| format!("{:.3}", f.value)),
    number("ci95", |f| {
        f.ci95
            .map_or_else(String::new, |ci95| format!("±{ci95:.3}"))
    }),
    text("unit", |f| f.unit.to_owned()),
];

/// All figures of a profile.
pub(super) fn figures(profile: &Profile) -> Vec<Figure> {
    let mut rows = rows(&profile.figures);
    let errors = profile.errors(values);
    for (row, ci95) in rows.iter_mut().zip(errors.into_iter().flatten()) {
        row.ci95 = Some(ci95);
    }
    let calls = profile.system_calls as f64;
    rows.push(figure("system calls".to_owned(), calls, "calls"));
    rows
}

fn values(figures: &Figures) -> Vec<f64> {
    rows(figures).into_iter().map(|row| row.value).collect()
}

fn figure(name: String, value: f64, unit: &'static str) -> Figure {
    Figure {
        name,
        value,
        unit,
        ci95: None,
    }
}

fn rows(figures: &Figures) -> Vec<Figure> {
    let mut rows = mix(figures);
    rows.extend(parallelism(figures));
    rows.extend(misses(figures));
    rows.extend(mispredictions(figures));
    rows.extend(rest(figures));
    rows
}

fn mix(figures: &Figures) -> Vec<Figure> {
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

fn parallelism(figures: &Figures) -> impl Iterator<Item = Figure> {
    let both = figures.ilp.iter().zip(&figures.mlp);
    WINDOWS.iter().zip(both).flat_map(|(window, (ilp, mlp))| {
        let name = format!("overlap of misses in {window}");
        [
            figure(format!("ILP in {window}"), *ilp, "instructions/cycle"),
            figure(name, *mlp, "misses"),
        ]
    })
}

fn misses(figures: &Figures) -> impl Iterator<Item = Figure> {
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

fn mispredictions(figures: &Figures) -> impl Iterator<Item = Figure> {
    let missed = PREDICTOR_KIB.iter().zip(figures.branch_mpki());
    missed.map(|(kib, missed)| figure(format!("mispredictions, {kib} KiB"), missed, "per 1000"))
}

fn rest(figures: &Figures) -> [Figure; 7] {
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
