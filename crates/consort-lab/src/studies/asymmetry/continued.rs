//! Where threads continue after a synchronisation call, and the split of their time.

use super::grid::Grid;
use super::returns::Tally;
use super::splash::POLICIES;
use crate::report::{Axis, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
use crate::studies::symbiosis::cells::{bar, interval};
use crate::study::StudyError;

/// A share of something in the runs of several cases together: the part and the whole.
type Share = fn(&Tally) -> [f64; 2];

/// Column, its title, its unit, and what it is a share of.
type Part = (&'static str, &'static str, &'static str, Share);

const PARTS: [Part; 6] = [
    (
        "large_at_once_percent",
        "Returns that go on on a large core",
        "%",
        |t| [100.0 * t.at_once as f64, t.returns as f64],
    ),
    (
        "large_soon_percent",
        "Returns on a large core within 1 ms",
        "%",
        SOON,
    ),
    ("returns_per_ms", "Returns per thread", "1/ms", |t| {
        [1e9 * t.returns as f64, t.thread_ps()]
    }),
    ("user_percent", "Threads' time in user mode", "%", USER),
    (
        "kernel_percent",
        "Threads' time in the kernel, on PUs",
        "%",
        |t| [100.0 * t.kernel_ps as f64, t.thread_ps()],
    ),
    (
        "off_percent",
        "Threads' time asleep or waiting for a PU",
        "%",
        |t| [t.off_percent() * t.thread_ps(), t.thread_ps()],
    ),
];

/// Returns after which the thread is on a large core within 1 ms, percent.
pub(in crate::studies) const SOON: Share = |t| [100.0 * t.soon as f64, t.returns as f64];
/// Threads' time in user mode, refills included, percent.
pub(in crate::studies) const USER: Share = |t| {
    [
        100.0 * (t.work_ps + t.spin_ps + t.refill_ps) as f64,
        t.thread_ps(),
    ]
};

/// Rows of several cases each.
pub(in crate::studies) type Rows = Vec<(String, Vec<usize>)>;

/// Table `returns`: rows `ROW/POLICY`; columns `large_at_once_percent`, `large_soon_percent`,
/// `returns_per_ms`, `user_percent`, `kernel_percent`, `off_percent`. The policies are those of
/// [`super::splash`].
pub(in crate::studies) fn table(grids: &[(&Grid, Rows)]) -> Result<Table, StudyError> {
    let column = |&(key, title, unit, _): &Part| Column::with_unit(key, title, unit);
    let title = "Where threads go on after the kernel, and what their time goes to";
    let mut table = Table::new("returns", title, PARTS.iter().map(column).collect())?;
    for (grid, rows) in grids {
        for (key, cases) in rows {
            for name in POLICIES {
                let Some(policy) = grid.policy(name) else {
                    continue;
                };
                let cell = |part: &Part| share(grid, cases, policy, part.3);
                let cells = PARTS.iter().map(cell).collect();
                table.push(&format!("{key}/{name}"), cells)?;
            }
        }
    }
    Ok(table)
}

/// A share in the cases together, with the interval over runs; runs without the whole are left
/// out.
pub(in crate::studies) fn share(grid: &Grid, cases: &[usize], policy: usize, of: Share) -> Cell {
    let of_run = |run: usize| {
        let sum = cases.iter().fold([0.0; 2], |[part, whole], &case| {
            let [p, w] = of(&grid.outcomes(case, policy)[run].tally);
            [part + p, whole + w]
        });
        (sum[1] > 0.0).then(|| sum[0] / sum[1])
    };
    let known: Vec<f64> = (0..grid.runs).filter_map(of_run).collect();
    if known.is_empty() {
        return Cell::missing("no thread returned from the kernel");
    }
    interval(&known)
}

/// Figure of a share by row, one bar for each policy.
pub(in crate::studies) fn figure(
    key: &str,
    title: &str,
    value: &str,
    (grid, rows): (&Grid, &Rows),
    of: Share,
) -> Result<Figure, StudyError> {
    let one = |(policy, name): (usize, &str)| BarSeries {
        name: name.to_owned(),
        bars: { rows.iter() }
            .map(|(_, cases)| bar(&share(grid, cases, policy, of)))
            .collect(),
    };
    let bars = Bars {
        category: "Program".to_owned(),
        value: Axis::linear(value, Some("%")),
        baseline: 0.0,
        groups: rows.iter().map(|(key, _)| key.clone()).collect(),
        series: { POLICIES.into_iter() }
            .filter_map(|name| Some((grid.policy(name)?, name)))
            .map(one)
            .collect(),
    };
    let text = "All numbers of threads together; intervals are over runs.";
    Ok(Figure::new(key, title, text, grid.runs, Plot::Bars(bars))?)
}
