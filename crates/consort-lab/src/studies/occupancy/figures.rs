//! The figures: bars per policy with intervals, and every run as a point.

use super::classes::Class;
use super::{AGGREGATE, LINUX, Measured, POLICIES, WORKOVER};
use crate::report::{Axis, Bar, BarSeries, Bars, Cell, Figure, Plot, Point, PointSeries, Scatter};
use crate::study::StudyError;
use consort_core::stats::RatioInterval;

pub(super) fn figures(measured: &[Measured<'_>], runs: usize) -> Result<Vec<Figure>, StudyError> {
    let mut figures = vec![speedups(measured, runs)?];
    figures.extend(l2_changes(measured, runs)?);
    for m in measured {
        figures.push(makespans(m)?);
    }
    Ok(figures)
}

/// Names of cases, across which keys are joined by slashes, for people.
fn label(key: &str) -> String {
    key.replace('/', " ")
}

fn speedups(measured: &[Measured<'_>], runs: usize) -> Result<Figure, StudyError> {
    let series = [AGGREGATE, WORKOVER].map(|policy| BarSeries {
        name: POLICIES[policy].name.to_owned(),
        bars: measured.iter().map(|m| speedup(m, policy)).collect(),
    });
    let bars = Bars {
        category: "Workload".to_owned(),
        value: Axis::linear("Speedup over linux", None),
        baseline: 1.0,
        groups: measured.iter().map(|m| label(m.case.key)).collect(),
        series: series.into(),
    };
    let (title, text) = (
        "Speedup over linux",
        "System throughput over that of linux.",
    );
    let plot = Plot::Bars(bars);
    Ok(Figure::new("speedup", title, text, runs, plot)?)
}

fn speedup(m: &Measured<'_>, policy: usize) -> Option<Bar> {
    let stp = |p| m.over(p, |o| o.result.stp);
    let ratio = RatioInterval::paired(&stp(policy), &stp(LINUX))?;
    bar(&ratio.into())
}

fn bar(cell: &Cell) -> Option<Bar> {
    Some(Bar {
        value: cell.value()?,
        ci95: cell.ci95(),
    })
}

/// None where nothing misses the L2.
fn l2_changes(measured: &[Measured<'_>], runs: usize) -> Result<Option<Figure>, StudyError> {
    let mut groups = Vec::new();
    let mut series = [AGGREGATE, WORKOVER].map(|policy| BarSeries {
        name: POLICIES[policy].name.to_owned(),
        bars: Vec::new(),
    });
    for m in measured {
        for (name, programs) in m.case.classes() {
            groups.push(format!("{} {name}", label(m.case.key)));
            for (series, policy) in series.iter_mut().zip([AGGREGATE, WORKOVER]) {
                let programs = programs.clone();
                let measured = m;
                let class = Class {
                    measured,
                    policy,
                    programs,
                };
                series.bars.push(bar(&class.l2_change_percent()));
            }
        }
    }
    if series.iter().all(|s| s.bars.iter().all(Option::is_none)) {
        return Ok(None);
    }
    let bars = Bars {
        category: "Workload and class".to_owned(),
        value: Axis::linear("L2 misses per instruction over linux", Some("%")),
        baseline: 0.0,
        groups,
        series: series.into(),
    };
    let title = "Change of L2 misses";
    let figure = Figure::new("l2-misses", title, "", runs, Plot::Bars(bars))?;
    Ok(Some(figure))
}

/// One point per run.
fn makespans(m: &Measured<'_>) -> Result<Figure, StudyError> {
    let points = |policy: usize| {
        let times = m.over(policy, |o| o.result.makespan_s).into_iter();
        let numbered = times.enumerate();
        numbered
            .map(|(run, s)| Point::exact((run + 1) as f64, s))
            .collect()
    };
    let series = (0..POLICIES.len()).map(|policy| PointSeries {
        name: POLICIES[policy].name.to_owned(),
        points: points(policy),
    });
    let scatter = Scatter {
        x: Axis::linear("Run", None),
        y: Axis::linear("Makespan", Some("s")),
        series: series.collect(),
        diagonal: false,
    };
    let key = format!("spread-{}", m.case.key.replace(['/', '+'], "-"));
    let title = format!("Makespan of each run, {}", label(m.case.key));
    Ok(Figure::new(&key, &title, "", 1, Plot::Scatter(scatter))?)
}
