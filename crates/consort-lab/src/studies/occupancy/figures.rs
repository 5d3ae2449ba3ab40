//! The figures: bars per policy with intervals, and every run as a point.

use super::classes::Class;
use super::{AGGREGATE, LINUX, Measured, POLICIES, WORKOVER};
use crate::report::{Axis, Bar, BarSeries, Bars, Cell, Figure, Plot, Point, PointSeries, Scatter};
use crate::study::StudyError;
use consort_core::stats::RatioInterval;
use std::ops::Range;

pub(super) fn figures(
    once: &[Measured<'_>],
    equal: &[Measured<'_>],
    runs: usize,
) -> Result<Vec<Figure>, StudyError> {
    let mut figures = vec![speedups(&ONCE, once, runs)?, speedups(&EQUAL, equal, runs)?];
    figures.extend(l2_changes(once, runs)?);
    for m in once {
        figures.push(makespans(m)?);
    }
    Ok(figures)
}

/// A chart of speedups over linux.
struct Speedups {
    key: &'static str,
    title: &'static str,
    text: &'static str,
    of: fn(&Measured<'_>, usize) -> Option<RatioInterval>,
}

const ONCE: Speedups = Speedups {
    key: "speedup",
    title: "Speedup over linux",
    text: "Time until all have finished under linux over that under the policy, each program once.",
    of: |m, policy| {
        let times = |p| m.over(p, |o| o.result.makespan_s);
        RatioInterval::paired(&times(LINUX), &times(policy))
    },
};

const EQUAL: Speedups = Speedups {
    key: "speedup-equal-work",
    title: "Speedup over linux, equal work",
    text: "System throughput over that of linux; all have equal work and start again.",
    of: |m, policy| {
        let stp = |p| m.over(p, |o| o.result.stp);
        RatioInterval::paired(&stp(policy), &stp(LINUX))
    },
};

/// Policies beside linux, in the order of series, as far as some case has them.
fn others(measured: &[Measured<'_>]) -> Vec<usize> {
    let is_run = |policy: &usize| measured.iter().any(|m| m.policies().contains(policy));
    [AGGREGATE, WORKOVER].into_iter().filter(is_run).collect()
}

/// Names of cases, across which keys are joined by slashes, for people.
fn label(key: &str) -> String {
    key.replace('/', " ")
}

fn speedups(what: &Speedups, measured: &[Measured<'_>], runs: usize) -> Result<Figure, StudyError> {
    let one = |m: &Measured<'_>, policy| bar(&(what.of)(m, policy)?.into());
    let series = |policy: usize| BarSeries {
        name: POLICIES[policy].name.to_owned(),
        bars: measured.iter().map(|m| one(m, policy)).collect(),
    };
    let bars = Bars {
        category: "Workload".to_owned(),
        value: Axis::linear("Speedup over linux", None),
        baseline: 1.0,
        groups: measured.iter().map(|m| label(m.case.key)).collect(),
        series: others(measured).into_iter().map(series).collect(),
    };
    let plot = Plot::Bars(bars);
    Ok(Figure::new(what.key, what.title, what.text, runs, plot)?)
}

fn bar(cell: &Cell) -> Option<Bar> {
    Some(Bar {
        value: cell.value()?,
        ci95: cell.ci95(),
    })
}

/// None where nothing misses the L2.
fn l2_changes(measured: &[Measured<'_>], runs: usize) -> Result<Option<Figure>, StudyError> {
    let mut classes: Vec<(&Measured<'_>, &str, Range<usize>)> = Vec::new();
    for m in measured {
        let of_case = m.case.classes().into_iter();
        classes.extend(of_case.map(|(name, programs)| (m, name, programs)));
    }
    let change = |policy, class: &(&Measured<'_>, &str, Range<usize>)| {
        let class = Class {
            measured: class.0,
            policy,
            programs: class.2.clone(),
        };
        bar(&class.l2_change_percent())
    };
    let series = |policy: usize| BarSeries {
        name: POLICIES[policy].name.to_owned(),
        bars: classes.iter().map(|class| change(policy, class)).collect(),
    };
    let series: Vec<BarSeries> = others(measured).into_iter().map(series).collect();
    if series.iter().all(|s| s.bars.iter().all(Option::is_none)) {
        return Ok(None);
    }
    let group = |class: &(&Measured<'_>, &str, Range<usize>)| {
        format!("{} {}", label(class.0.case.key), class.1)
    };
    let bars = Bars {
        category: "Workload and class".to_owned(),
        value: Axis::linear("L2 misses over linux", Some("%")),
        baseline: 0.0,
        groups: classes.iter().map(group).collect(),
        series,
    };
    let title = "Change of L2 misses, each program once";
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
    let series = m.policies().map(|policy| PointSeries {
        name: POLICIES[policy].name.to_owned(),
        points: points(policy),
    });
    let scatter = Scatter {
        x: Axis::linear("Run", None),
        y: Axis::linear("Time until all have finished", Some("s")),
        series: series.collect(),
        diagonal: false,
    };
    let key = format!("spread-{}", m.case.key.replace(['/', '+'], "-"));
    let title = format!("Time of each run, each program once, {}", label(m.case.key));
    Ok(Figure::new(&key, &title, "", 1, Plot::Scatter(scatter))?)
}
