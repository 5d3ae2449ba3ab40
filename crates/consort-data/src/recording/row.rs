//! One thread in one interval.

use consort_core::plan::PlanReport;
use consort_core::{
    ControlTurn, Observation, Placement, Plan, ProgramId, PuId, Signal, ThreadId, ThreadObservation,
};
use parquet::data_type::ByteArray;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One thread in one interval; by default a row without a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct IntervalRow {
    pub(crate) time_ns: i64,
    pub(crate) interval_ns: i64,
    pub(crate) plan: i64,
    pub(crate) pid: i64,
    pub(crate) tid: i64,
    pub(crate) program: i64,
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) exited: bool,
    pub(crate) managed: bool,
    pub(crate) allowed: String,
    pub(crate) last_pu: Option<i64>,
    pub(crate) placed: Option<String>,
    pub(crate) moved: bool,
    pub(crate) chosen: Option<String>,
    pub(crate) cpu_ns: f64,
    pub(crate) wait_ns: Option<f64>,
    pub(crate) planned_ns: Option<f64>,
    pub(crate) fp_usage: Option<f64>,
    pub(crate) memory_stall: Option<f64>,
    pub(crate) instructions: Option<f64>,
    pub(crate) cycles: Option<f64>,
    /// The thread's observation as JSON; `None` in the only row of a quantum without threads.
    pub(crate) observation: Option<String>,
    /// Values of the whole quantum, as JSON; in its first row.
    pub(crate) quantum: Option<String>,
}

/// Values of a whole quantum.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QuantumFacts {
    /// The observation without its threads.
    pub(crate) observation: Observation,
    /// Length of the next quantum, ns, if the plan sets it.
    pub(crate) quantum_ns: Option<u64>,
    /// Programs that the plan paused.
    pub(crate) paused: BTreeSet<ProgramId>,
    /// Sizes of teams.
    pub(crate) teams: BTreeMap<ProgramId, u32>,
    /// Notes of the plan on itself.
    pub(crate) notes: Vec<String>,
}

impl QuantumFacts {
    fn from_turn(turn: &ControlTurn) -> Self {
        let mut observation = turn.observation.clone();
        observation.threads.clear();
        observation.exited.clear();
        Self {
            observation,
            quantum_ns: turn.plan.quantum_ns,
            paused: turn.plan.paused.clone(),
            teams: turn.plan.teams.clone(),
            notes: turn.plan.report.notes.clone(),
        }
    }

    /// The plan, without what it said of threads.
    pub(crate) fn plan(&self, generation: u64) -> Plan {
        Plan {
            generation,
            quantum_ns: self.quantum_ns,
            paused: self.paused.clone(),
            teams: self.teams.clone(),
            report: PlanReport {
                notes: self.notes.clone(),
                ..PlanReport::default()
            },
            ..Plan::default()
        }
    }
}

/// The rows of a turn; one row without a thread if the turn has no threads.
pub(crate) fn rows(turn: &ControlTurn) -> Result<Vec<IntervalRow>, serde_json::Error> {
    let moved: BTreeSet<ThreadId> = turn.enacted.moved.iter().copied().collect();
    let alive = turn.observation.threads.iter().map(|t| (t, false));
    let exited = turn.observation.exited.iter().map(|t| (t, true));
    let rows = alive.chain(exited).map(|(thread, exited)| {
        let mut row = row(turn, thread, exited)?;
        row.moved = moved.contains(&thread.id);
        Ok(row)
    });
    let mut rows: Vec<IntervalRow> = rows.collect::<Result<_, serde_json::Error>>()?;
    if rows.is_empty() {
        rows.push(empty_row(turn));
    }
    rows[0].quantum = Some(serde_json::to_string(&QuantumFacts::from_turn(turn))?);
    Ok(rows)
}

fn whole_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn empty_row(turn: &ControlTurn) -> IntervalRow {
    IntervalRow {
        time_ns: whole_number(turn.observation.time_ns),
        interval_ns: whole_number(turn.observation.interval_ns),
        plan: whole_number(turn.plan.generation),
        ..IntervalRow::default()
    }
}

fn row(
    turn: &ControlTurn,
    thread: &ThreadObservation,
    exited: bool,
) -> Result<IntervalRow, serde_json::Error> {
    let seen = &turn.observation;
    let get = |signal| thread.sample.get(signal);
    let placed = match turn.plan.placements.get(&thread.id) {
        Some(Placement::Restricted(pus)) => Some(pus.to_string()),
        Some(Placement::Unrestricted) | None => None,
    };
    let reason = turn.plan.report.threads.get(&thread.id);
    Ok(IntervalRow {
        pid: i64::from(thread.id.pid),
        tid: i64::from(thread.id.tid),
        program: i64::from(seen.program_of(thread.id).0),
        name: thread.name.to_string(),
        class: seen.class_of(thread).to_string(),
        exited,
        managed: thread.managed,
        allowed: thread.original.to_string(),
        last_pu: thread.last_pu.map(|PuId(pu)| i64::from(pu)),
        placed,
        chosen: reason.map(|reason| reason.chosen.clone()),
        cpu_ns: thread.sample.cpu_time_ns(),
        wait_ns: get(Signal::WaitTime),
        planned_ns: get(Signal::PlannedTime),
        fp_usage: get(Signal::FpUsage),
        memory_stall: get(Signal::MemoryStall),
        instructions: get(Signal::Instructions),
        cycles: get(Signal::Cycles),
        observation: Some(serde_json::to_string(thread)?),
        ..empty_row(turn)
    })
}

/// Value of a column in a row; `None` is null.
pub(crate) enum ColumnValue {
    Whole(fn(&IntervalRow) -> Option<i64>),
    Real(fn(&IntervalRow) -> Option<f64>),
    Flag(fn(&IntervalRow) -> Option<bool>),
    Text(fn(&IntervalRow) -> Option<&str>),
}

/// A column: its name, and what it means.
pub struct ColumnInfo {
    /// Name.
    pub name: &'static str,
    /// Meaning, with unit.
    pub meaning: &'static str,
    pub(crate) of: ColumnValue,
}

const fn whole(
    name: &'static str,
    meaning: &'static str,
    of: fn(&IntervalRow) -> Option<i64>,
) -> ColumnInfo {
    let of = ColumnValue::Whole(of);
    ColumnInfo { name, meaning, of }
}

const fn real(
    name: &'static str,
    meaning: &'static str,
    of: fn(&IntervalRow) -> Option<f64>,
) -> ColumnInfo {
    let of = ColumnValue::Real(of);
    ColumnInfo { name, meaning, of }
}

const fn flag(
    name: &'static str,
    meaning: &'static str,
    of: fn(&IntervalRow) -> Option<bool>,
) -> ColumnInfo {
    let of = ColumnValue::Flag(of);
    ColumnInfo { name, meaning, of }
}

const fn text(
    name: &'static str,
    meaning: &'static str,
    of: fn(&IntervalRow) -> Option<&str>,
) -> ColumnInfo {
    let of = ColumnValue::Text(of);
    ColumnInfo { name, meaning, of }
}

/// All columns, in their order. A row without a thread (`tid` 0) stands for a quantum in which
/// there was none.
pub const COLUMNS: &[ColumnInfo] = &[
    whole("time_ns", "end of the interval since the start, ns", |r| {
        Some(r.time_ns)
    }),
    whole("interval_ns", "length of the interval, ns", |r| {
        Some(r.interval_ns)
    }),
    whole("plan", "number of the plan made at its end", |r| {
        Some(r.plan)
    }),
    whole("pid", "process", |r| Some(r.pid)),
    whole("tid", "kernel thread id", |r| Some(r.tid)),
    whole("program", "process that stands for the program", |r| {
        Some(r.program)
    }),
    text("name", "name of the thread", |r| Some(&r.name)),
    text("class", "what it mainly did", |r| Some(&r.class)),
    flag("exited", "whether it ended in the interval", |r| {
        Some(r.exited)
    }),
    flag("managed", "whether it may be placed", |r| Some(r.managed)),
    text("allowed", "CPUs that it may run on without Consort", |r| {
        Some(&r.allowed)
    }),
    whole("last_pu", "CPU on which it was seen last", |r| r.last_pu),
    text(
        "placed",
        "CPUs that the plan gives it; null where it is unrestricted",
        |r| r.placed.as_deref(),
    ),
    flag("moved", "whether it was sent to another place", |r| {
        Some(r.moved)
    }),
    text("chosen", "why it is placed there", |r| r.chosen.as_deref()),
    real("cpu_ns", "CPU time in the interval, ns", |r| Some(r.cpu_ns)),
    real("wait_ns", "time waiting for a CPU, ns", |r| r.wait_ns),
    real("planned_ns", "CPU time where the plan had it, ns", |r| {
        r.planned_ns
    }),
    real("fp_usage", "floating-point usage, share", |r| r.fp_usage),
    real("memory_stall", "share of CPU time behind loads", |r| {
        r.memory_stall
    }),
    real("instructions", "instructions executed", |r| r.instructions),
    real("cycles", "cycles", |r| r.cycles),
    text("observation", "all that was seen of it, JSON", |r| {
        r.observation.as_deref()
    }),
    text(
        "quantum",
        "what holds for the whole quantum, JSON; in its first row",
        |r| r.quantum.as_deref(),
    ),
];

/// The schema as Parquet has it.
pub(crate) fn message() -> String {
    let columns = COLUMNS.iter().map(|column| {
        let kind = match column.of {
            ColumnValue::Whole(_) => "int64",
            ColumnValue::Real(_) => "double",
            ColumnValue::Flag(_) => "boolean",
            ColumnValue::Text(_) => return format!("optional binary {} (UTF8);", column.name),
        };
        format!("optional {kind} {};", column.name)
    });
    let columns: Vec<String> = columns.collect();
    format!("message thread_interval {{ {} }}", columns.join(" "))
}

/// Present values, and for each row the definition level of Parquet: 1 if it has a value, else 0.
pub(crate) fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut there = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        levels.push(i16::from(value.is_some()));
        there.extend(value);
    }
    (there, levels)
}

/// A text as Parquet has it.
pub(crate) fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}
