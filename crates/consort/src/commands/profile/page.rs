//! A profile as a page with pictures.

use anyhow::Result;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Figure, FigurePoint, LineChart, Plot, PointSeries,
    ReportColumn, ReportTable, figures_page,
};
use consort_profile::measure::{CAPACITIES, WINDOWS};
use consort_profile::{ExecutionFigures, ProgramProfile};

/// The page, which needs nothing else to be read.
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
        time_figure(profile, executed, "ILP", ilp_over_time(profile))?,
        time_figure(profile, executed, "Misses", misses_over_time(profile))?,
    ];
    let mut tables = vec![phases(profile)?];
    if let Some(threads) = &profile.threads {
        tables.extend(super::threads::tables(threads)?);
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

type IntervalSeries = (&'static str, Vec<f64>);

fn ilp_over_time(profile: &ProgramProfile) -> Vec<IntervalSeries> {
    let of = |figures: &ExecutionFigures| figures.ilp[3];
    vec![(
        "ILP in 128 instructions",
        profile.intervals.iter().map(of).collect(),
    )]
}

fn misses_over_time(profile: &ProgramProfile) -> Vec<IntervalSeries> {
    let course = |of: &dyn Fn(&ExecutionFigures) -> f64| profile.intervals.iter().map(of).collect();
    let data = |size: usize| move |f: &ExecutionFigures| f.per_kilo(f.memory.data.misses[size]);
    vec![
        ("data, 32 KiB", course(&data(3))),
        ("data, 1 MiB", course(&data(8))),
        (
            "mispredictions, 32 KiB",
            course(&|f| f.misprediction_mpki()),
        ),
    ]
}

/// Courses over the program's execution, an interval per point.
fn time_figure(
    profile: &ProgramProfile,
    executed: u64,
    what: &str,
    courses: Vec<IntervalSeries>,
) -> Result<Figure> {
    let step = executed as f64 / 1e9 / profile.intervals.len().max(1) as f64;
    let unit = match what {
        "ILP" => "instructions per cycle",
        _ => "per 1000 instructions",
    };
    let axes = (
        Axis::linear("executed", Some("10^9 instructions")),
        Axis::linear(what, Some(unit)),
    );
    let places = |at: usize| (at as f64 + 0.5) * step;
    let series = courses.into_iter().map(|(name, values)| {
        series(
            name,
            values
                .into_iter()
                .enumerate()
                .map(|(at, y)| (places(at), y)),
        )
    });
    let key = format!("{}-over-time", what.to_lowercase());
    lines(&key, &format!("{what} over time"), axes, series.collect())
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
    let columns = columns.map(|(key, title)| ReportColumn::plain(key, title));
    let mut table = ReportTable::new("phases", "Phases, in their order", columns.into())?;
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
