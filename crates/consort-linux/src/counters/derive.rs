//! Signals from counts.
//!
//! Each event is taken per cycle of its own group, so that numerator and denominator cover the same
//! time even when groups are multiplexed; rates of groups that did not run stay as last seen.
//! Formulas then get rate x cycles of the interval.
//!
//! On hybrid chips a thread has groups on several PMUs, each counting only while
//! the thread is on its cores: counts add up, shares are weighted by cycles, and
//! the stack is that of the PMU with most cycles.

use super::plan::PmuProgram;
use crate::events::{Expr, SignalFormula};
use crate::perf::GroupDelta;
use consort_core::{CycleStack, Reading, Sample, Signal, Tier};

/// Events per cycle as last seen, for one thread on one PMU.
#[derive(Clone, Debug, Default)]
pub struct EventRates(Vec<Option<f64>>);

/// Counts of one PMU for a thread over an interval.
struct PmuInterval<'a> {
    program: &'a PmuProgram,
    rates: &'a EventRates,
    cycles: f64,
    enabled_ns: u64,
    running_ns: u64,
}

impl EventRates {
    fn update(&mut self, program: &PmuProgram, deltas: &[GroupDelta]) {
        self.0.resize(program.events.events.len(), None);
        for (group, delta) in program.groups.iter().zip(deltas) {
            let Some(cycles) = count_cycles(program, group, delta).filter(|&c| c > 0.0) else {
                continue;
            };
            for (&event, &n) in group.iter().zip(&delta.counts) {
                self.0[event] = Some(n as f64 / cycles);
            }
        }
    }

    fn rate(&self, event: usize) -> Option<f64> {
        self.0.get(event).copied().flatten()
    }
}

/// Cycles in one group's delta.
fn count_cycles(program: &PmuProgram, group: &[usize], delta: &GroupDelta) -> Option<f64> {
    let at = group.iter().position(|&e| e == program.cycles)?;
    delta.counts.get(at).map(|&n| n as f64)
}

/// Adds the counts of a thread's groups to a sample, as signals. `rates` has one entry for each
/// program; `deltas` has the groups of the first program, then those of the next.
pub fn fill_signals(
    sample: &mut Sample,
    programs: &[PmuProgram],
    rates: &mut [EventRates],
    deltas: &[GroupDelta],
) {
    let deltas = split(programs, deltas);
    let parts = programs.iter().zip(rates.iter_mut()).zip(&deltas);
    for ((program, rates), deltas) in parts {
        rates.update(program, deltas);
    }
    let parts = programs.iter().zip(rates.iter()).zip(&deltas);
    let intervals: Vec<PmuInterval<'_>> = parts
        .filter_map(|((program, rates), deltas)| interval(program, rates, deltas))
        .collect();
    add_counts(sample, &intervals);
    for signal in [Signal::FpUsage, Signal::MemoryStall] {
        add_share(sample, signal, &intervals);
    }
    add_stack(sample, &intervals);
}

fn split<'a>(programs: &[PmuProgram], mut deltas: &'a [GroupDelta]) -> Vec<&'a [GroupDelta]> {
    let mut take = |program: &PmuProgram| {
        let (mine, rest) = deltas.split_at(program.groups.len().min(deltas.len()));
        deltas = rest;
        mine
    };
    programs.iter().map(&mut take).collect()
}

/// The interval of one PMU, from its group that ran longest; `None` if no group ran.
fn interval<'a>(
    program: &'a PmuProgram,
    rates: &'a EventRates,
    deltas: &[GroupDelta],
) -> Option<PmuInterval<'a>> {
    let groups = program.groups.iter().zip(deltas);
    let (group, delta) = groups.max_by_key(|(_, delta)| delta.running_ns)?;
    let ran = delta.running_ns > 0;
    ran.then(|| PmuInterval {
        program,
        rates,
        cycles: count_cycles(program, group, delta).unwrap_or(0.0),
        enabled_ns: delta.enabled_ns,
        running_ns: delta.running_ns,
    })
}

fn add_counts(sample: &mut Sample, intervals: &[PmuInterval<'_>]) {
    let enabled_ns = intervals.iter().map(|i| i.enabled_ns).max().unwrap_or(0);
    let running: u64 = intervals.iter().map(|i| i.running_ns).sum();
    let mut set = |signal, amounts: f64| {
        let reading = Reading {
            raw: amounts,
            tier: Tier::Counters,
            enabled_ns,
            running_ns: running.min(enabled_ns),
        };
        sample.set(signal, reading);
    };
    if running > 0 {
        set(Signal::Cycles, intervals.iter().map(|i| i.cycles).sum());
        let instructions = intervals.iter().filter_map(PmuInterval::instructions).sum();
        set(Signal::Instructions, instructions);
        let counts = [Signal::L1dAccesses, Signal::LlcAccesses, Signal::LlcMisses];
        for signal in counts {
            let amounts = intervals.iter().filter_map(|i| i.amount(signal));
            if let Some(amount) = amounts.reduce(|a, b| a + b) {
                set(signal, amount);
            }
        }
    }
}

impl PmuInterval<'_> {
    fn instructions(&self) -> Option<f64> {
        Some(self.rates.rate(self.program.instructions)? * self.cycles)
    }

    fn formula(&self, signal: Signal) -> Option<&SignalFormula> {
        let planned = self.program.signals.contains(&signal);
        self.program.events.formula(signal).filter(|_| planned)
    }

    /// A count that a formula gives.
    fn amount(&self, signal: Signal) -> Option<f64> {
        let value = self.formula(signal)?.value.as_ref()?;
        Some(self.eval(value)?.max(0.0))
    }

    fn eval(&self, value: &Expr) -> Option<f64> {
        let events = &self.program.events.events;
        value.eval(&|name| {
            let event = events.iter().position(|e| e.name == name)?;
            Some(self.rates.rate(event)? * self.cycles)
        })
    }
}

/// The mean of a share over the PMUs that have it, weighted by cycles. It is a
/// ratio, so there is nothing to scale by time.
fn add_share(sample: &mut Sample, signal: Signal, intervals: &[PmuInterval<'_>]) {
    let value = |i: &PmuInterval<'_>| {
        let value = i.formula(signal)?.value.as_ref()?;
        Some((i.eval(value)?.clamp(0.0, 1.0) * i.cycles, i.cycles))
    };
    let values: Vec<(f64, f64)> = intervals.iter().filter_map(value).collect();
    let cycles: f64 = values.iter().map(|v| v.1).sum();
    let enabled_ns = intervals.iter().map(|i| i.enabled_ns).max().unwrap_or(0);
    if cycles > 0.0 {
        let mean = values.iter().map(|v| v.0).sum::<f64>() / cycles;
        sample.set(
            signal,
            Reading::fully_counted(mean, Tier::Counters, enabled_ns),
        );
    }
}

fn add_stack(sample: &mut Sample, intervals: &[PmuInterval<'_>]) {
    let by_cycles = |a: &&PmuInterval<'_>, b: &&PmuInterval<'_>| a.cycles.total_cmp(&b.cycles);
    let Some(main) = intervals.iter().max_by(by_cycles) else {
        return;
    };
    let Some(formula) = main.formula(Signal::CycleStack) else {
        return;
    };
    let mut amounts: Vec<(String, f64)> = Vec::new();
    for part in formula.components.iter().flatten() {
        match main.eval(&part.value) {
            Some(amount) => {
                if let Some((_, whole)) = amounts.iter_mut().find(|(of, _)| part.is_part_of(of)) {
                    *whole -= amount;
                }
                amounts.push((part.name.clone(), amount));
            }
            None if part.optional => {}
            None => return,
        }
    }
    sample.stack = Some((CycleStack::from_amounts(amounts), Tier::Counters));
}
