//! A profile as a page with pictures and tables.

use anyhow::Result;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Figure, FigurePoint, LineChart, Plot, PointSeries,
    ReportColumn, ReportTable, figures_page,
};
use consort_profile::measure::{CAPACITIES, WINDOWS};
use consort_profile::{ExecutionFigures, ProgramProfile, SharedLines, ThreadRelations};

/// The page, complete in one file.
pub(super) fn page(
    title: &str,
    facts: &[String],
    profile: &ProgramProfile,
    executed: u64,
) -> Result<String> {
    let figures = [
        mix(profile)?,
        parallelism(&profile.figures)?,
        curves(&profile.figures)?,
        time_figure(
            profile,
            executed,
            ("ILP", "instructions per cycle"),
            ILP_COURSES,
        )?,
        time_figure(
            profile,
            executed,
            ("Misses", "per 1000 instructions"),
            MISS_COURSES,
        )?,
    ];
    let mut tables = vec![phases(profile)?];
    if let Some(threads) = &profile.threads {
        tables.push(roles(threads)?);
        tables.push(sharing(threads)?);
        tables.extend(synchronisation(threads)?);
    }
    Ok(figures_page(title, facts, &tables, &figures)?)
}

fn shares(figures: &ExecutionFigures) -> [f64; 6] {
    let s = figures.shares();
    [s.fp, s.vector, s.int, s.load, s.store, s.branch]
}

fn mix(profile: &ProgramProfile) -> Result<Figure> {
    let errors = profile.errors(|figures| shares(figures).into());
    let ci95 = |at: usize| errors.as_ref().map(|errors| errors[at]);
    let values = shares(&profile.figures).into_iter().enumerate();
    let bars = values.map(|(at, value)| {
        Some(Bar {
            value,
            ci95: ci95(at),
        })
    });
    let plot = Plot::Bars(BarChart {
        category: "class".to_owned(),
        value: Axis::linear("share of instructions", None),
        baseline: 0.0,
        groups: ["fp", "vector", "int", "load", "store", "branch"]
            .map(str::to_owned)
            .into(),
        series: vec![BarSeries {
            name: "program".to_owned(),
            bars: bars.collect(),
        }],
    });
    Ok(Figure::new("mix", "Mix of instructions", "", 1, plot)?)
}

fn series(name: &str, points: impl Iterator<Item = (f64, f64)>) -> PointSeries {
    PointSeries {
        name: name.to_owned(),
        points: points.map(|(x, y)| FigurePoint::exact(x, y)).collect(),
    }
}

fn lines(key: &str, title: &str, axes: (Axis, Axis), series: Vec<PointSeries>) -> Result<Figure> {
    let (x, y) = axes;
    let plot = Plot::Lines(LineChart { x, y, series });
    Ok(Figure::new(key, title, "", 1, plot)?)
}

fn parallelism(figures: &ExecutionFigures) -> Result<Figure> {
    let windows = || WINDOWS.into_iter().map(|window| window as f64);
    let law = figures.ilp_law();
    let by_law = windows().map(|w| (w, law.factor * w.powf(law.exponent)));
    let axes = (
        Axis::log("window", Some("instructions")),
        Axis::linear("parallelism", None),
    );
    let series = vec![
        series("ILP, instructions per cycle", windows().zip(figures.ilp)),
        series("the law in the file", by_law),
        series("misses that overlap", windows().zip(figures.mlp)),
    ];
    lines("ilp", "Parallelism against window", axes, series)
}

fn curves(figures: &ExecutionFigures) -> Result<Figure> {
    let memory = &figures.memory;
    let curve = |name, misses: &[u64]| {
        let points = CAPACITIES.iter().zip(misses);
        let point = |(size, count): (&u64, &u64)| ((size >> 10) as f64, figures.per_kilo(*count));
        series(name, points.map(point))
    };
    let axes = (
        Axis::log("capacity", Some("KiB")),
        Axis::linear("misses", Some("per 1000 instructions")),
    );
    let series = vec![
        curve("data, lines of 64 bytes", &memory.data.misses),
        curve("data, lines of 128 bytes", &memory.data_128.misses),
        curve("code, lines of 64 bytes", &memory.code.misses),
        curve("code, lines of 128 bytes", &memory.code_128.misses),
    ];
    lines("misses", "Misses against capacity", axes, series)
}

type IntervalSeries = (&'static str, fn(&ExecutionFigures) -> f64);

const ILP_COURSES: &[IntervalSeries] = &[("ILP in 128 instructions", |f| f.ilp[3])];

const MISS_COURSES: &[IntervalSeries] = &[
    ("data, 32 KiB", |f| f.per_kilo(f.memory.data.misses[3])),
    ("data, 1 MiB", |f| f.per_kilo(f.memory.data.misses[8])),
    (
        "mispredictions, 32 KiB",
        ExecutionFigures::misprediction_mpki,
    ),
];

/// Courses over the program's execution, an interval per point.
fn time_figure(
    profile: &ProgramProfile,
    executed: u64,
    (what, unit): (&str, &str),
    courses: &[IntervalSeries],
) -> Result<Figure> {
    let step = executed as f64 / 1e9 / profile.intervals.len().max(1) as f64;
    let axes = (
        Axis::linear("executed", Some("10^9 instructions")),
        Axis::linear(what, Some(unit)),
    );
    let mut series = Vec::new();
    for (name, value) in courses {
        let points = profile.intervals.iter().enumerate();
        let points = points.map(|(at, figures)| ((at as f64 + 0.5) * step, value(figures)));
        series.push(self::series(name, points));
    }
    let key = format!("{}-over-time", what.to_lowercase());
    lines(&key, &format!("{what} over time"), axes, series)
}

fn phases(profile: &ProgramProfile) -> Result<ReportTable> {
    let columns = [
        ("share", "Share of execution"),
        ("ilp", "ILP in 128"),
        ("load", "Loads"),
        ("branch", "Branches"),
        ("missed", "Mispredictions per 1000"),
        ("l1", "Data misses per 1000, 32 KiB"),
        ("l2", "Data misses per 1000, 1 MiB"),
    ];
    let mut table = table("phases", "Phases, in their order", columns)?;
    let all = profile.figures.mix.instructions.max(1) as f64;
    for (number, phase) in profile.phases.iter().enumerate() {
        let data = &phase.memory.data.misses;
        let shares = phase.shares();
        let cells = [
            phase.mix.instructions as f64 / all,
            phase.ilp[3],
            shares.load,
            shares.branch,
            phase.misprediction_mpki(),
            phase.per_kilo(data[3]),
            phase.per_kilo(data[8]),
        ];
        let cells = cells.map(Into::into);
        table.push(&format!("phase {}", number + 1), cells.into())?;
    }
    Ok(table)
}

fn table<const N: usize>(
    key: &str,
    title: &str,
    columns: [(&str, &str); N],
) -> Result<ReportTable> {
    let columns = columns.map(|(key, title)| ReportColumn::plain(key, title));
    Ok(ReportTable::new(key, title, columns.into())?)
}

fn roles(threads: &ThreadRelations) -> Result<ReportTable> {
    let columns = [
        ("threads", "Threads"),
        ("at-once", "At a time"),
        ("executed", "10^6 instructions"),
        ("fp", "Floating point"),
        ("load", "Loads"),
        ("ilp", "ILP in 128"),
        ("missed", "Mispredictions per 1000"),
        ("l1", "Data misses per 1000, 32 KiB"),
        ("l2", "Data misses per 1000, 1 MiB"),
    ];
    let mut table = table("roles", "Roles: threads that run alike code", columns)?;
    for role in &threads.roles {
        let (figures, shares) = (&role.figures, role.figures.shares());
        let data = &figures.memory.data.misses;
        let cells = [
            role.threads.len() as f64,
            role.at_once as f64,
            role.executed as f64 / 1e6,
            shares.fp,
            shares.load,
            figures.ilp[3],
            figures.misprediction_mpki(),
            figures.per_kilo(data[3]),
            figures.per_kilo(data[8]),
        ];
        table.push(&role.name, cells.map(Into::into).into())?;
    }
    Ok(table)
}

fn sharing(threads: &ThreadRelations) -> Result<ReportTable> {
    let columns = [
        ("lines", "Lines of 64 bytes"),
        ("several", "Used by several threads"),
        ("written", "Of these written to"),
        ("common", "Share of a thread's lines in common"),
    ];
    let title = "Sharing while there are several threads";
    let mut table = table("sharing", title, columns)?;
    let cells = |shared: &SharedLines| {
        let counts = [shared.lines, shared.by_several, shared.written].map(|lines| lines as f64);
        let [lines, several, written] = counts;
        [lines, several, written, shared.by_all].map(Into::into)
    };
    table.push("data", cells(&threads.data).into())?;
    table.push("code", cells(&threads.code).into())?;
    Ok(table)
}

fn synchronisation(threads: &ThreadRelations) -> Result<Option<ReportTable>> {
    if threads.locks.is_none() && threads.barriers.is_none() {
        return Ok(None);
    }
    let columns = [
        ("times", "Times"),
        ("per-million", "Per 10^6 instructions of a thread"),
        ("lasts", "Held, or apart, instructions"),
    ];
    let title = "Locks, a lower bound, and barriers";
    let mut table = table("together", title, columns)?;
    if let Some(locks) = &threads.locks {
        let rate = threads.locks_per_million();
        let cells = [locks.taken as f64, rate, locks.hold_instr];
        table.push("locks", cells.map(Into::into).into())?;
    }
    if let (Some(barriers), Some(spacing)) = (&threads.barriers, threads.barrier_spacing()) {
        let cells = [barriers.opened as f64, 1e6 / spacing.max(1.0), spacing];
        table.push("barriers", cells.map(Into::into).into())?;
    }
    Ok(Some(table))
}
