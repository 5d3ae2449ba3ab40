//! The columns of a recording.

use crate::row::IntervalRow;
use parquet::data_type::ByteArray;

/// Content of a column in a row; none where there is nothing to tell.
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
    text("allowed", "PUs that it may run on without Consort", |r| {
        Some(&r.allowed)
    }),
    whole("last_pu", "PU on which it was seen last", |r| r.last_pu),
    text(
        "placed",
        "PUs that the plan gives it; null where it is unrestricted",
        |r| r.placed.as_deref(),
    ),
    flag("moved", "whether it was sent to another place", |r| {
        Some(r.moved)
    }),
    text("chosen", "why it is placed there", |r| r.chosen.as_deref()),
    real("cpu_ns", "CPU time in the interval, ns", |r| Some(r.cpu_ns)),
    real("wait_ns", "time waiting for a PU, ns", |r| r.wait_ns),
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

/// Values that are there, and for each row whether there is one.
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
