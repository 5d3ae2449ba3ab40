//! History of a run for its picture: which thread ran on which CPU, when.
//!
//! Time is divided into columns, one per quantum at first. When there are too many, neighbours are
//! merged, so that a run of any length takes bounded memory and a picture stays small.

use crate::output::count;
use anyhow::Result;
use consort_core::trial::Arm;
use consort_core::{ControlTurn, Observation, ProgramId, PuId, ThreadId};
use consort_data::{Axis, Figure, MAX_SERIES, Plot, RowSpan, SpanChart, SpanRow};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Columns from which on neighbours are merged.
const MOST_COLUMNS: usize = 192;
/// Rows of the picture: the threads with most CPU time.
const ROWS: usize = 20;
/// Threads that are remembered; beyond twice as many, those with least CPU time are forgotten.
const KEPT: usize = 128;
/// Steps of the height of a span: spans whose shares differ by less are drawn as one.
const STEPS: f64 = 4.0;
/// CPUs that the legend names for a colour.
const NAMED: usize = 4;
/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;

/// Columns of time, and the cells of each thread in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunHistory {
    columns: Vec<Column>,
    threads: BTreeMap<ThreadId, ThreadHistory>,
    /// Programs that are paused in the present quantum.
    paused: BTreeSet<ProgramId>,
    /// True if the present quantum is in an unmanaged stretch of a trial.
    is_unmanaged: bool,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    from_ns: u64,
    to_ns: u64,
    unmanaged_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct ThreadHistory {
    name: Arc<str>,
    ran_ns: f64,
    cells: Vec<HistoryCell>,
}

/// A thread in one column.
#[derive(Clone, Copy, Debug, Default)]
struct HistoryCell {
    column: usize,
    /// The CPU on which it ran longest, and the time there.
    cpu: Option<u32>,
    on_cpu_ns: f64,
    ran_ns: f64,
    paused_ns: u64,
    /// True if it was sent to another place at the end.
    moved: bool,
}

impl HistoryCell {
    fn merge(&mut self, next: &Self) {
        if self.cpu == next.cpu {
            self.on_cpu_ns += next.on_cpu_ns;
        } else if next.on_cpu_ns > self.on_cpu_ns {
            (self.cpu, self.on_cpu_ns) = (next.cpu, next.on_cpu_ns);
        }
        self.ran_ns += next.ran_ns;
        self.paused_ns += next.paused_ns;
        self.moved |= next.moved;
    }
}

impl RunHistory {
    /// Adds the quantum that has ended, and what the plan means for the next.
    pub(super) fn add(&mut self, turn: &ControlTurn) {
        self.observe(&turn.observation);
        for id in &turn.enacted.moved {
            if let Some(cell) = { self.threads.get_mut(id) }.and_then(|t| t.cells.last_mut()) {
                cell.moved = true;
            }
        }
        if turn.was_enacted() {
            self.paused.clone_from(&turn.plan.paused);
        }
        self.is_unmanaged = turn.arm == Arm::Unmanaged;
        if self.columns.len() > MOST_COLUMNS {
            self.merge_columns();
        }
        if self.threads.len() > 2 * KEPT {
            let mut by_time: Vec<f64> = self.threads.values().map(|t| t.ran_ns).collect();
            by_time.sort_by(|a, b| b.total_cmp(a));
            let least = by_time[KEPT];
            self.threads.retain(|_, thread| thread.ran_ns > least);
        }
    }

    fn observe(&mut self, seen: &Observation) {
        let from_ns = seen.time_ns.saturating_sub(seen.interval_ns);
        self.columns.push(Column {
            from_ns,
            to_ns: seen.time_ns,
            unmanaged_ns: if self.is_unmanaged {
                seen.interval_ns
            } else {
                0
            },
        });
        let column = self.columns.len() - 1;
        for thread in seen.threads.iter().chain(&seen.exited) {
            let ran_ns = thread.sample.cpu_time_ns();
            let is_paused = self.paused.contains(&seen.program_of(thread.id));
            if ran_ns <= 0.0 && !is_paused {
                continue;
            }
            let history = self.threads.entry(thread.id).or_default();
            history.name = Arc::clone(&thread.name);
            history.ran_ns += ran_ns;
            history.cells.push(HistoryCell {
                column,
                cpu: thread.last_pu.map(|PuId(cpu)| cpu),
                on_cpu_ns: ran_ns,
                ran_ns,
                paused_ns: if is_paused { seen.interval_ns } else { 0 },
                moved: false,
            });
        }
    }

    /// Merges each two neighbouring columns.
    fn merge_columns(&mut self) {
        let pairs = self.columns.chunks(2);
        let merged = pairs.map(|pair| Column {
            from_ns: pair[0].from_ns,
            to_ns: pair[pair.len() - 1].to_ns,
            unmanaged_ns: pair.iter().map(|column| column.unmanaged_ns).sum(),
        });
        self.columns = merged.collect();
        for thread in self.threads.values_mut() {
            let mut merged: Vec<HistoryCell> = Vec::with_capacity(thread.cells.len() / 2 + 1);
            for cell in &thread.cells {
                let column = cell.column / 2;
                match merged.last_mut().filter(|last| last.column == column) {
                    Some(last) => last.merge(cell),
                    None => merged.push(HistoryCell { column, ..*cell }),
                }
            }
            thread.cells = merged;
        }
    }

    /// The picture; `None` if no thread ran.
    pub(super) fn figure(&self) -> Result<Option<Figure>> {
        let mut threads: Vec<(&ThreadId, &ThreadHistory)> = self.threads.iter().collect();
        threads.sort_by(|a, b| b.1.ran_ns.total_cmp(&a.1.ran_ns).then(a.0.cmp(b.0)));
        let left = threads.len().saturating_sub(ROWS);
        threads.truncate(ROWS);
        let Some(end) = self.columns.last().filter(|_| !threads.is_empty()) else {
            return Ok(None);
        };
        let cells = threads.iter().flat_map(|(_, thread)| &thread.cells);
        let used: BTreeSet<u32> = cells.filter_map(|cell| cell.cpu).collect();
        let used: Vec<u32> = used.into_iter().collect();
        let is_unmanaged =
            |column: &&Column| 2 * column.unmanaged_ns > column.to_ns - column.from_ns;
        let mut shaded: Vec<[f64; 2]> = Vec::new();
        for column in self.columns.iter().filter(is_unmanaged) {
            let [from, to] = [column.from_ns, column.to_ns].map(|ns| ns as f64 / NS_PER_S);
            match shaded.last_mut().filter(|last| last[1] >= from) {
                Some(last) => last[1] = to,
                None => shaded.push([from, to]),
            }
        }
        let rows: Vec<SpanRow> = { threads.iter() }
            .map(|(id, thread)| self.row(**id, thread, &used))
            .collect();
        let mut text = "Bars are as high as the share of its CPU that a thread used.".to_owned();
        if rows.iter().any(|row| !row.marks.is_empty()) {
            text.push_str(" Strokes are moves by Consort.");
        }
        if rows
            .iter()
            .flat_map(|row| &row.spans)
            .any(|span| span.series.is_none())
        {
            text.push_str(" Grey lines are pauses.");
        }
        if !shaded.is_empty() {
            text.push_str(" Shaded: stretches of the trial without management.");
        }
        if left > 0 {
            text.push_str(&format!(
                " Not drawn: {} with less CPU time.",
                count(left, "thread")
            ));
        }
        let chart = SpanChart {
            time: Axis::linear("Time", Some("s")),
            end: end.to_ns as f64 / NS_PER_S,
            series: series_names(&used),
            rows,
            shaded,
        };
        let plot = Plot::Spans(chart);
        Ok(Some(Figure::new(
            "history",
            "Who ran where",
            &text,
            1,
            plot,
        )?))
    }

    /// The row of a thread; equal neighbours are one span.
    fn row(&self, id: ThreadId, thread: &ThreadHistory, used: &[u32]) -> SpanRow {
        let mut row = SpanRow {
            name: format!("{} {}", thread.name, id.tid),
            ..SpanRow::default()
        };
        for cell in &thread.cells {
            let column = self.columns[cell.column];
            let length_ns = column.to_ns - column.from_ns;
            let [from, to] = [column.from_ns, column.to_ns].map(|ns| ns as f64 / NS_PER_S);
            if cell.moved {
                row.marks.push(to);
            }
            let is_paused = 2 * cell.paused_ns > length_ns;
            let cpu = cell.cpu.filter(|_| !is_paused);
            // The CPU of a thread that was only seen to end is not known.
            if cpu.is_none() && !is_paused {
                continue;
            }
            let share = (STEPS * cell.ran_ns / length_ns.max(1) as f64).ceil() / STEPS;
            let series = cpu.and_then(|cpu| used.binary_search(&cpu).ok());
            let label = cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}"));
            let span = RowSpan {
                from,
                to,
                series: series.map(|at| at % MAX_SERIES),
                share: if cpu.is_some() { share.min(1.0) } else { 0.0 },
                label,
            };
            let continues = |last: &&mut RowSpan| {
                let same = (last.share, last.series) == (span.share, span.series);
                same && last.label == span.label && last.to >= from
            };
            match row.spans.last_mut().filter(continues) {
                Some(last) => last.to = to,
                None => row.spans.push(span),
            }
        }
        row
    }
}

/// Names of the colours: every colour stands for each eighth of the CPUs that were used.
fn series_names(used: &[u32]) -> Vec<String> {
    let colours = used.len().min(MAX_SERIES);
    let name = |colour: usize| {
        let cpus: Vec<u32> = used
            .iter()
            .copied()
            .skip(colour)
            .step_by(MAX_SERIES)
            .collect();
        let named: Vec<String> = cpus.iter().take(NAMED).map(u32::to_string).collect();
        let more = if cpus.len() > NAMED { ", …" } else { "" };
        let noun = if cpus.len() > 1 { "CPUs" } else { "CPU" };
        format!("{noun} {}{more}", named.join(", "))
    };
    (0..colours).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{EnactmentReport, Plan, Reading, Sample, Signal, ThreadObservation, Tier};

    const QUANTUM_NS: u64 = 100_000_000;

    fn id(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    fn thread(tid: u32, cpu: u32, share: f64) -> ThreadObservation {
        let mut sample = Sample::default();
        let ran_ns = share * QUANTUM_NS as f64;
        let reading = Reading::fully_counted(ran_ns, Tier::Proc, QUANTUM_NS);
        sample.set(Signal::CpuTime, reading);
        ThreadObservation {
            id: id(tid),
            name: format!("t{tid}").into(),
            original: Arc::default(),
            managed: true,
            last_pu: Some(PuId(cpu)),
            sample,
        }
    }

    /// The turn after quantum `number`, from 1.
    fn turn(number: u64, threads: Vec<ThreadObservation>) -> ControlTurn {
        ControlTurn {
            observation: Observation {
                time_ns: number * QUANTUM_NS,
                interval_ns: QUANTUM_NS,
                threads,
                ..Observation::default()
            },
            plan: Plan::default(),
            changed: Vec::new(),
            findings: Vec::new(),
            enacted: EnactmentReport::default(),
            arm: Arm::Managed,
        }
    }

    fn chart(history: &RunHistory) -> SpanChart {
        match history.figure().unwrap().unwrap().plot() {
            Plot::Spans(chart) => chart.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn spans_follow_cpus_pauses_and_moves() {
        let mut history = RunHistory::default();
        for number in 1..=3 {
            let mut turn = turn(number, vec![thread(7, 0, 1.0)]);
            if number == 2 {
                turn.enacted.moved = vec![id(7)];
            }
            if number == 3 {
                turn.plan.paused = BTreeSet::from([ProgramId(1)]);
            }
            history.add(&turn);
        }
        history.add(&turn(4, vec![thread(7, 0, 0.0)]));
        history.add(&turn(5, vec![thread(7, 3, 0.3)]));
        let chart = chart(&history);
        assert_eq!(
            (chart.end, chart.series),
            (0.5, vec!["CPU 0".to_owned(), "CPU 3".to_owned()])
        );
        let row = &chart.rows[0];
        assert_eq!((row.name.as_str(), &row.marks[..]), ("t7 7", &[0.2][..]));
        let spans: Vec<_> = row
            .spans
            .iter()
            .map(|s| (s.from, s.to, s.series, s.share))
            .collect();
        // Paused in the fourth quantum; 0.3 of a CPU is drawn as the next quarter.
        let expected = [
            (0.0, 0.3, Some(0), 1.0),
            (0.3, 0.4, None, 0.0),
            (0.4, 0.5, Some(1), 0.5),
        ];
        assert_eq!(spans, expected);
        assert!(chart.shaded.is_empty());
    }

    #[test]
    fn unmanaged_stretches_are_shaded() {
        let mut history = RunHistory::default();
        for number in 1..=4 {
            let mut turn = turn(number, vec![thread(7, 0, 1.0)]);
            turn.arm = if number == 2 {
                Arm::Unmanaged
            } else {
                Arm::Managed
            };
            history.add(&turn);
        }
        // The arm is that of the quantum that follows.
        assert_eq!(chart(&history).shaded, [[0.2, 0.3]]);
    }

    /// The worst case: every thread is on another CPU and is moved in each quantum.
    #[test]
    fn page_of_thousands_of_quanta_stays_below_a_megabyte() {
        let mut history = RunHistory::default();
        for number in 1..=5_000_u64 {
            let threads = (0..40).map(|tid| thread(tid, (number as u32 + tid) % 64, 0.9));
            let mut turn = turn(number, threads.collect());
            turn.enacted.moved = (0..40).map(id).collect();
            history.add(&turn);
        }
        let chart = chart(&history);
        assert_eq!((chart.rows.len(), chart.end), (ROWS, 500.0));
        let drawn: f64 = chart.rows[0]
            .spans
            .iter()
            .map(|span| span.to - span.from)
            .sum();
        assert!((drawn - 500.0).abs() < 1e-6, "{drawn}");
        let svg = consort_data::draw(&history.figure().unwrap().unwrap()).unwrap();
        assert!(svg.len() < 900_000, "{} bytes", svg.len());
        // 64 CPUs share eight colours.
        let is_shared = |name: &String| name.starts_with("CPUs ");
        assert!(chart.series.len() == MAX_SERIES && chart.series.iter().all(is_shared));
    }

    #[test]
    fn many_threads_take_bounded_memory() {
        let mut history = RunHistory::default();
        for number in 1..=50_u64 {
            let first = 100 * number as u32;
            let threads = (first..first + 100).map(|tid| thread(tid, 0, 0.01));
            history.add(&turn(number, threads.chain([thread(1, 1, 1.0)]).collect()));
            assert!(history.threads.len() <= 2 * KEPT);
        }
        assert_eq!(chart(&history).rows[0].name, "t1 1");
    }
}
