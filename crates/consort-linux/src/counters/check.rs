//! The self-test of an event file: every event over loops of known counts.
//!
//! # Method
//!
//! Each event is counted, in a group with cycles and instructions, over two numbers of iterations;
//! the difference drops what is executed around the loop. Tolerances: instructions and branches 0.2
//! percent (interrupts add some), floating-point counts 1 percent. Events without an architectural
//! count (operations, slots, causes of stalls) are opened and read, and only their refusal is an
//! error.

use super::judge::{CheckRow, EventVerdict, judge_cycles};
use super::pmu::Pmu;
use super::program::event_spec;
use super::{check_software, core_pmus};
use crate::events::{EventDefinition, EventFile, EventUnit, PmuEvents};
use crate::perf::{CounterGroup, PerfError, PerfTarget};
use std::path::Path;

/// Counts of a loop that are known from its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedCounts {
    /// All instructions.
    pub instructions: u64,
    /// Floating-point operations, one for each element.
    pub fp_ops: u64,
    /// Scalar floating-point arithmetic instructions.
    pub fp_scalar_instructions: u64,
    /// Packed floating-point arithmetic instructions.
    pub fp_packed_instructions: u64,
    /// Branches.
    pub branches: u64,
}

/// A loop of known counts.
#[derive(Clone, Copy)]
pub struct CheckKernel<'a> {
    /// Name of the loop in the rows.
    pub name: &'a str,
    /// Runs a number of iterations.
    pub run: &'a dyn Fn(u64),
    /// Counts of the same number of iterations.
    pub counts: &'a dyn Fn(u64) -> ExpectedCounts,
}

/// Iterations of the short and the long run.
const SHORT: u64 = 1_000;
const LONG: u64 = 501_000;

/// Checks software events, then every event of the file on every PMU of this
/// host. Events that cannot be counted here are skipped with the reason.
pub fn check(root: &Path, file: Option<&EventFile>, kernels: &[CheckKernel<'_>]) -> Vec<CheckRow> {
    let mut rows = check_software::check_software_events();
    let Some(file) = file else {
        let reason = "there is no event file for this CPU".to_owned();
        rows.push(CheckRow::from_reason(
            "hardware events".to_owned(),
            "all",
            reason,
        ));
        return rows;
    };
    let present = core_pmus(root);
    for events in &file.pmus {
        match present.iter().find(|p| events.is_named(&p.name)) {
            Some(pmu) => rows.extend(pmu_rows(pmu, events, kernels)),
            None => rows.extend(absent_pmu_rows(events)),
        }
    }
    rows
}

fn absent_pmu_rows(events: &PmuEvents) -> Vec<CheckRow> {
    let reason = format!("no PMU {} on this host", events.names.join(" or "));
    let skipped =
        |e: &EventDefinition| CheckRow::from_reason(e.name.clone(), "all", reason.clone());
    events.events.iter().map(skipped).collect()
}

fn pmu_rows(pmu: &Pmu, events: &PmuEvents, kernels: &[CheckKernel<'_>]) -> Vec<CheckRow> {
    let row = |kernel| move |event| check_event(pmu, events, event, kernel);
    let per_kernel = |kernel| events.events.iter().map(row(kernel));
    kernels.iter().flat_map(per_kernel).collect()
}

fn check_event(
    pmu: &Pmu,
    events: &PmuEvents,
    event: &EventDefinition,
    kernel: &CheckKernel<'_>,
) -> CheckRow {
    let name = format!("{}/{}/", pmu.name, event.name);
    match measure(pmu, events, event, kernel) {
        Ok(measured) => verdict_row(name, event.unit, kernel, &measured),
        Err(error) => CheckRow::from_reason(name, kernel.name, error.to_string()),
    }
}

/// Counts over [`LONG`] less counts over [`SHORT`].
struct CountDifference {
    event: f64,
    instructions: f64,
}

/// The event beside instructions, led by its leader if it needs one.
fn measure(
    pmu: &Pmu,
    events: &PmuEvents,
    event: &EventDefinition,
    kernel: &CheckKernel<'_>,
) -> Result<CountDifference, PerfError> {
    let leader = event.leader.as_deref().and_then(|name| events.event(name));
    let instructions = events.event_of(EventUnit::Instructions);
    let mut group: Vec<&EventDefinition> = leader.into_iter().chain([event]).collect();
    group.extend(instructions.filter(|i| i.name != event.name));
    let specs: Vec<_> = group.iter().map(|e| event_spec(pmu.kind, e)).collect();
    let mut open = CounterGroup::open(&specs, PerfTarget::Thread { tid: 0 })?;
    let (short, long) = (
        count_over_run(&mut open, kernel, SHORT)?,
        count_over_run(&mut open, kernel, LONG)?,
    );
    let difference = |e: &EventDefinition| {
        let at = group.iter().position(|g| g.name == e.name).unwrap_or(0);
        long[at] - short[at]
    };
    Ok(CountDifference {
        event: difference(event),
        instructions: instructions.map_or(0.0, difference),
    })
}

/// Scaled counts over a run; [`PerfError::NoSuchEvent`] when the group was never
/// on the counters.
fn count_over_run(
    group: &mut CounterGroup,
    kernel: &CheckKernel<'_>,
    iterations: u64,
) -> Result<Vec<f64>, PerfError> {
    group.read()?;
    (kernel.run)(iterations);
    let delta = group.read()?;
    if delta.running_ns == 0 {
        return Err(PerfError::NoSuchEvent);
    }
    let scale = delta.enabled_ns as f64 / delta.running_ns as f64;
    Ok(delta.counts.iter().map(|&n| n as f64 * scale).collect())
}

fn verdict_row(
    name: String,
    unit: EventUnit,
    kernel: &CheckKernel<'_>,
    measured: &CountDifference,
) -> CheckRow {
    let counts = |n: fn(&ExpectedCounts) -> u64| {
        (n(&(kernel.counts)(LONG)) - n(&(kernel.counts)(SHORT))) as f64
    };
    let judged = |expected: f64, tolerance: f64| {
        CheckRow::from_counts(
            name.clone(),
            kernel.name,
            expected,
            measured.event,
            tolerance,
        )
    };
    match unit {
        EventUnit::Instructions => judged(counts(|c| c.instructions), 0.002),
        EventUnit::Branches => judged(counts(|c| c.branches), 0.002),
        EventUnit::FpOperations => judged(counts(|c| c.fp_ops), 0.01),
        EventUnit::FpScalarInstructions => judged(counts(|c| c.fp_scalar_instructions), 0.01),
        EventUnit::FpPackedInstructions => judged(counts(|c| c.fp_packed_instructions), 0.01),
        EventUnit::Cycles => {
            let known = counts(|c| c.instructions);
            let verdict = judge_cycles(measured.event, known, measured.instructions);
            inexact_row(name, kernel, measured.event, verdict)
        }
        EventUnit::CyclesOfCause
        | EventUnit::Slots
        | EventUnit::Operations
        | EventUnit::CacheAccesses => inexact_row(name, kernel, measured.event, EventVerdict::Ok),
    }
}

fn inexact_row(
    event: String,
    kernel: &CheckKernel<'_>,
    measured: f64,
    verdict: EventVerdict,
) -> CheckRow {
    CheckRow {
        event,
        kernel: kernel.name.to_owned(),
        expected: None,
        measured: Some(measured),
        relative_error: None,
        verdict,
    }
}
