//! `--explain`: one solution for one thread, term by term.

use crate::output::{self, OutputColumn, number, text};
use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::contention::{CpiStack, ThreadRates};
use consort_sim::engine::RunSegment;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Last segment of each thread: where it ran, and how.
#[derive(Clone, Default)]
pub(super) struct LastSegments(Rc<RefCell<BTreeMap<ThreadId, ThreadSegment>>>);

#[derive(Clone)]
struct ThreadSegment {
    name: String,
    pu: usize,
    at_s: f64,
    rates: ThreadRates,
}

/// A thread's cycles per instruction by cause, and what they rest on.
#[derive(Debug, Serialize)]
pub(super) struct CycleExplanation {
    thread: String,
    pu: usize,
    core_type: usize,
    at_s: f64,
    ips: f64,
    cpi: f64,
    stack: Vec<ExplanationTerm>,
    facts: Vec<ExplanationTerm>,
}

/// One number.
#[derive(Debug, Serialize)]
struct ExplanationTerm {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

const COLUMNS: &[OutputColumn<ExplanationTerm>] = &[
    text("term", |t| t.name.to_owned()),
    number("value", |t| format!("{:.4}", t.value)),
    text("unit", |t| t.unit.to_owned()),
];

impl LastSegments {
    pub(super) fn keep_segment(&self, segment: &RunSegment<'_>) {
        let seen = ThreadSegment {
            name: segment.name.to_owned(),
            pu: segment.pu,
            at_s: segment.to_ps as f64 / 1e12,
            rates: *segment.rates,
        };
        self.0.borrow_mut().insert(segment.thread, seen);
    }

    /// Explains the n-th thread, by id; none when it never ran.
    pub(super) fn explain(&self, thread: usize, chip: &Chip) -> Option<CycleExplanation> {
        let threads = self.0.borrow();
        let (id, seen) = threads.iter().nth(thread)?;
        let place = chip.places().get(seen.pu)?;
        Some(CycleExplanation {
            thread: format!("{} ({id})", seen.name),
            pu: seen.pu,
            core_type: place.core_type,
            at_s: seen.at_s,
            ips: seen.rates.ips,
            cpi: seen.rates.cpi,
            stack: stack(&seen.rates),
            facts: facts(&seen.rates),
        })
    }
}

impl CycleExplanation {
    pub(super) fn table(&self) -> String {
        format!(
            "\nthread {} on PU {} at {:.3} s: {:.4} cycles per instruction, {:.3e} instructions \
             per second\n{}\n{}",
            self.thread,
            self.pu,
            self.at_s,
            self.cpi,
            self.ips,
            output::table(COLUMNS, &self.stack),
            output::table(COLUMNS, &self.facts),
        )
    }
}

fn stack(rates: &ThreadRates) -> Vec<ExplanationTerm> {
    let parts = CpiStack::NAMES.into_iter().zip(rates.stack.to_array());
    parts
        .map(|(name, value)| ExplanationTerm {
            name,
            value,
            unit: "cycles/instruction",
        })
        .collect()
}

fn facts(rates: &ThreadRates) -> Vec<ExplanationTerm> {
    let fact = |name, value, unit| ExplanationTerm { name, value, unit };
    let per_kilo = |name, value: f64| fact(name, value * 1000.0, "per 1000 instructions");
    let flow = &rates.flow;
    vec![
        fact("window", rates.window, "instructions"),
        fact("overlapping misses", rates.mlp, ""),
        fact("L1D held", rates.l1d_bytes / 1024.0, "KiB"),
        fact("L2 held", rates.l2_bytes / 1024.0, "KiB"),
        fact("LLC held", rates.llc_bytes / 1024.0, "KiB"),
        per_kilo("L1D misses", flow.l1d_misses),
        per_kilo("L1I misses", flow.l1i_misses),
        per_kilo("L2 misses", flow.l2_misses),
        per_kilo("LLC misses waited for", flow.llc_misses),
        per_kilo("lines prefetched", flow.prefetched_lines),
        per_kilo("lines to and from memory", flow.memory_lines),
        per_kilo("branches mispredicted", flow.branch_misses),
        per_kilo("TLB misses", flow.tlb_misses),
    ]
}
