//! The report as a page for a browser.

use super::render::{COLUMNS, write_foot, write_head, write_hidden_count};
use super::{RunReport, ThreadRow};
use anyhow::Result;
use consort_core::Mix;
use consort_data::{Axis, Bar, BarChart, BarSeries, Figure, List, Plot, figures_page};

/// Threads in the figures: those with most CPU time.
const DRAWN: usize = 8;

/// The page of a run of this command.
pub(crate) fn html(report: &RunReport, command: &str) -> Result<String> {
    let threads = List::new(COLUMNS, &report.threads);
    let threads = threads.to_report_table("threads", "Threads, by CPU time")?;
    let title = format!("Run of {command}");
    Ok(figures_page(
        &title,
        &facts(report),
        &[threads],
        &figures(report)?,
    )?)
}

/// Returns the lines that are printed around the table, a sentence each.
fn facts(report: &RunReport) -> Vec<String> {
    let mut text = String::new();
    write_head(&mut text, report);
    write_hidden_count(&mut text, report.others.count, report.others.cpu_s);
    write_foot(&mut text, report);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(str::to_owned).collect()
}

type ShareOf = fn(&Mix) -> f64;

const CLASSES: [(&str, ShareOf); 6] = [
    ("fp", |m| m.fp),
    ("vector", |m| m.vector),
    ("int", |m| m.int),
    ("load", |m| m.load),
    ("store", |m| m.store),
    ("branch", |m| m.branch),
];

fn figures(report: &RunReport) -> Result<Vec<Figure>> {
    let drawn = &report.threads[..report.threads.len().min(DRAWN)];
    if drawn.is_empty() {
        return Ok(Vec::new());
    }
    let cpu = BarSeries {
        name: "CPU time".to_owned(),
        bars: drawn.iter().map(|t| bar(Some(t.cpu_s))).collect(),
    };
    let mut figures = vec![bars(
        drawn,
        ("cpu", "CPU time"),
        Axis::linear("CPU time", Some("s")),
        vec![cpu],
    )?];
    if drawn.iter().any(|thread| thread.mix.is_some()) {
        let axis = Axis::linear("share of CPU time, estimated", None);
        figures.push(bars(
            drawn,
            ("mix", "What threads executed"),
            axis,
            mix(drawn),
        )?);
    }
    Ok(figures)
}

fn mix(drawn: &[ThreadRow]) -> Vec<BarSeries> {
    let series = CLASSES.into_iter().map(|(name, share)| BarSeries {
        name: name.to_owned(),
        bars: { drawn.iter() }
            .map(|t| bar(t.mix.as_ref().map(share)))
            .collect(),
    });
    let stalled = BarSeries {
        name: "stalled behind loads".to_owned(),
        bars: drawn.iter().map(|t| bar(t.memory_stall)).collect(),
    };
    series.chain([stalled]).collect()
}

fn bar(value: Option<f64>) -> Option<Bar> {
    value.map(|value| Bar { value, ci95: None })
}

fn bars(
    drawn: &[ThreadRow],
    (key, title): (&str, &str),
    value: Axis,
    series: Vec<BarSeries>,
) -> Result<Figure> {
    let name = |thread: &ThreadRow| format!("{} {}", thread.name, thread.tid);
    let plot = Plot::Bars(BarChart {
        category: "thread".to_owned(),
        value,
        baseline: 0.0,
        groups: drawn.iter().map(name).collect(),
        series,
    });
    Ok(Figure::new(key, title, "", 1, plot)?)
}
