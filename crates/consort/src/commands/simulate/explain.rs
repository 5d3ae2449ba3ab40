//! A program's cycles per instruction by cause, alone and together, averaged over its work.

use crate::commands::compare::refusal;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text, wrap};
use anyhow::Result;
use consort_core::hint;
use consort_data::Cell;
use consort_experiment::{AloneWork, Contender, Experiment, ProgramResult, RunOptions, RunResult};
use consort_sim::contention::{CpiStack, ThreadRates};
use consort_sim::engine::{Observer, PuUse, RunMode, RunSegment};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Causes in the order of the sums: those of the cycle stack, and what a thread does apart from its
/// work.
const CAUSES: [(&str, &str); 16] = [
    ("base", "dispatch as width and dependences allow"),
    ("units", "functional units too few or too slow"),
    ("fetch", "instruction fetch"),
    ("branch", "mispredicted branches"),
    ("l2", "data from the L2"),
    ("llc", "data from the LLC"),
    ("memory", "data from near or remote memory, were it idle"),
    ("queue", "queueing for memory and interconnect"),
    ("tlb", "page walks"),
    ("window", "buffers held by co-runners"),
    ("dispatch", "slots, fetch turns, ports used by others"),
    ("lock", "locks too frequent to be events"),
    ("switching", "switches, sleeps and wake-ups"),
    ("refilling", "what others overwrote, learned again"),
    ("spinning", "spinning for siblings"),
    ("waiting", "no CPU, or siblings or I/O awaited"),
];
const SWITCHING: usize = CpiStack::NAMES.len();
const WAITING: usize = CAUSES.len() - 1;

/// A figure behind the cycles: name, unit with its factor, and value.
type Fact = (&'static str, (&'static str, f64), fn(&ThreadRates) -> f64);

const KIB: (&str, f64) = ("KiB", 1.0 / 1024.0);
const PER_KILO: (&str, f64) = ("per 1000 instructions", 1000.0);
const FACTS: [Fact; 13] = [
    ("window", ("instructions", 1.0), |r| r.window),
    ("overlapping misses", ("", 1.0), |r| r.mlp),
    ("L1D held", KIB, |r| r.l1d_bytes),
    ("L2 held", KIB, |r| r.l2_bytes),
    ("LLC held", KIB, |r| r.llc_bytes),
    ("L1D misses", PER_KILO, |r| r.flow.l1d_misses),
    ("L1I misses", PER_KILO, |r| r.flow.l1i_misses),
    ("L2 misses", PER_KILO, |r| r.flow.l2_misses),
    ("LLC misses awaited", PER_KILO, |r| r.flow.llc_misses),
    ("prefetched lines", PER_KILO, |r| r.flow.prefetched_lines),
    ("memory lines", PER_KILO, |r| r.flow.memory_lines),
    ("mispredictions", PER_KILO, |r| r.flow.branch_misses),
    ("TLB misses", PER_KILO, |r| r.flow.tlb_misses),
];

/// Time of a program's threads by cause.
#[derive(Clone, Debug, Default)]
struct CycleSums {
    times_s: [f64; CAUSES.len()],
    /// Facts, each times the instructions for which it held.
    facts: [f64; FACTS.len()],
    instructions: f64,
    /// Time on each CPU, ps.
    pus: BTreeMap<usize, u64>,
}

/// Sums of every program, by the process of its threads; clones add to the same sums.
#[derive(Clone)]
struct CycleWatch {
    sums: Rc<RefCell<BTreeMap<u32, CycleSums>>>,
    /// End of the time that counts, ps.
    until_ps: u64,
}

impl Observer for CycleWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut programs = self.sums.borrow_mut();
        let sums = programs.entry(segment.thread.pid).or_default();
        // No segment is longer than the time to the next event, and the end of the work is one.
        if segment.to_ps > self.until_ps {
            return;
        }
        let time_ps = segment.to_ps - segment.from_ps;
        let time_s = time_ps as f64 / 1e12;
        *sums.pus.entry(segment.pu).or_default() += time_ps;
        let rates = segment.rates;
        let place = match segment.doing {
            PuUse::Work => {
                let instructions = rates.ips * time_s;
                let causes = rates.stack.to_array();
                let terms = sums.times_s.iter_mut().zip(causes);
                terms.for_each(|(sum, cycles)| *sum += time_s * cycles / rates.cpi);
                let facts = sums.facts.iter_mut().zip(FACTS);
                facts.for_each(|(sum, fact)| *sum += instructions * fact.2(rates));
                sums.instructions += instructions;
                return;
            }
            PuUse::Kernel => SWITCHING,
            PuUse::Overhead => SWITCHING + 1,
            PuUse::Spin => SWITCHING + 2,
        };
        sums.times_s[place] += time_s;
    }
}

/// A cause or a fact, alone and together.
#[derive(Clone, Copy, Debug, Serialize)]
struct ExplanationTerm {
    name: &'static str,
    alone: f64,
    /// Together.
    value: f64,
    unit: &'static str,
    /// Part of the slowdown: the difference over all cycles alone. `None` for facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    slowdown_part: Option<f64>,
    #[serde(skip)]
    meaning: &'static str,
}

/// A program's cycles per instruction by cause, and the figures behind them. Cycles are those of the
/// clock of the fastest core.
#[derive(Debug, Serialize)]
pub(super) struct CycleExplanation {
    /// The program.
    thread: String,
    /// CPU on which its threads were longest.
    pu: usize,
    core_type: usize,
    /// End of its work, s.
    at_s: f64,
    /// Instructions per second together, all threads.
    ips: f64,
    /// Cycles per instruction together, time off the CPU included.
    cpi: f64,
    /// The same alone.
    cpi_alone: f64,
    stack: Vec<ExplanationTerm>,
    facts: Vec<ExplanationTerm>,
}

const CAUSE_COLUMNS: &[OutputColumn<ExplanationTerm>] = &[
    text("cycles per instruction", |t| t.name.to_owned()),
    number("alone", |t| output::decimals(t.alone, 4)),
    number("together", |t| output::decimals(t.value, 4)),
    number("slower by (%)", |t| {
        output::or_dash(t.slowdown_part, |part| output::percent(part, 1))
    }),
];
const FACT_COLUMNS: &[OutputColumn<ExplanationTerm>] = &[
    text("average", |t| t.name.to_owned()),
    number("alone", |t| Cell::from(t.alone).text()),
    number("together", |t| Cell::from(t.value).text()),
    text("unit", |t| t.unit.to_owned()),
];

/// Position of the program that `--explain` names, by its number from 0, its name with the number
/// of its copy, or its name for the first copy.
pub(super) fn find_program(experiment: &Experiment, wanted: &str) -> Result<usize> {
    let entries = &experiment.workload.entries;
    let last = entries.len().saturating_sub(1);
    if let Ok(number) = wanted.parse::<usize>() {
        let message = || format!("--explain {number}: the workload has programs 0 to {last}");
        return (number <= last)
            .then_some(number)
            .ok_or_else(|| bad_input(message()));
    }
    let exact = entries.iter().position(|entry| entry.name == wanted);
    let first = || {
        entries
            .iter()
            .position(|entry| entry.program.name == wanted)
    };
    exact.or_else(first).ok_or_else(|| {
        let hint = hint(wanted, entries.iter().map(|entry| entry.name.as_str()));
        bad_input(format!(
            "--explain {wanted}: no program of the workload has that name; {hint}"
        ))
    })
}

/// Repeats a run, which must have ended, and runs the program alone, both with an eye on it.
pub(super) fn explain_program(
    experiment: &Experiment,
    contender: &Contender,
    work: &[AloneWork],
    run: &RunResult,
    program: usize,
) -> Result<CycleExplanation> {
    let seed = run.seed;
    let mut alone = experiment.clone();
    alone.workload.entries = vec![experiment.workload.entries[program].clone()];
    alone.workload.entries[0].start_ms = 0.0;
    let linux = Contender::new("linux", "linux").map_err(refusal)?;
    let once = watch(
        &alone,
        &linux,
        &work[program..=program],
        (seed, RunMode::Once),
        (0, u64::MAX),
    )?;
    let entry = &experiment.workload.entries[program];
    let result = &run.programs[program];
    let end_s = entry.start_ms / 1e3 + result.together_s;
    // Half a picosecond of rounding must not lose the last segment.
    let until_ps = (end_s * 1e12).round() as u64 + 1;
    let together = watch(
        experiment,
        contender,
        work,
        (seed, experiment.until.mode()),
        (program, until_ps),
    )?;
    let places = experiment.chip.places();
    let clocks = places
        .iter()
        .map(|place| experiment.chip.frequency_hz(*place));
    let per_program = f64::from(entry.threads);
    let clock = clocks.fold(0.0, f64::max);
    let cycles = |(sums, result): &(CycleSums, ProgramResult)| {
        let per_instruction = clock / result.instructions;
        let mut cycles = sums.times_s.map(|time_s| time_s * per_instruction);
        let cpi = per_program * result.together_s * per_instruction;
        cycles[WAITING] = cpi - cycles.iter().sum::<f64>();
        (cycles, cpi)
    };
    let ((alone_cycles, cpi_alone), (cycles, cpi)) = (cycles(&once), cycles(&together));
    let causes = CAUSES.iter().zip(alone_cycles.into_iter().zip(cycles));
    let stack = causes.map(|(&(name, meaning), (alone, value))| ExplanationTerm {
        name,
        alone,
        value,
        unit: "cycles/instruction",
        slowdown_part: Some((value - alone) / cpi_alone),
        meaning,
    });
    let mean =
        |sums: &CycleSums, fact: usize| FACTS[fact].1.1 * sums.facts[fact] / sums.instructions;
    let facts = FACTS
        .iter()
        .enumerate()
        .map(|(n, &(name, (unit, _), _))| ExplanationTerm {
            name,
            alone: mean(&once.0, n),
            value: mean(&together.0, n),
            unit,
            slowdown_part: None,
            meaning: "",
        });
    let pu = together.0.pus.iter().max_by_key(|(_, time)| **time);
    let pu = pu.map_or(0, |(pu, _)| *pu);
    Ok(CycleExplanation {
        thread: result.name.clone(),
        pu,
        core_type: places[pu].core_type,
        at_s: end_s,
        ips: result.instructions / result.together_s,
        cpi,
        cpi_alone,
        stack: stack.collect(),
        facts: facts.collect(),
    })
}

/// The sums of a program until a time, and its result.
fn watch(
    experiment: &Experiment,
    contender: &Contender,
    work: &[AloneWork],
    (seed, mode): (u64, RunMode),
    (program, until_ps): (usize, u64),
) -> Result<(CycleSums, ProgramResult)> {
    let watch = CycleWatch {
        sums: Rc::default(),
        until_ps,
    };
    let options = RunOptions {
        mode,
        observer: Some(Box::new(watch.clone())),
        listener: None,
    };
    let run = experiment.run_with(contender, work, seed, options);
    let result = run.map_err(refusal)?.programs.swap_remove(program);
    // Processes are numbered in the order of the workload.
    let sums = watch.sums.borrow().values().nth(program).cloned();
    Ok((sums.unwrap_or_default(), result))
}

impl CycleExplanation {
    /// The tables, and a legend of the causes that occur.
    pub(super) fn text(&self) -> String {
        let shown = |t: &ExplanationTerm| t.alone.abs().max(t.value.abs()) >= 5e-5;
        let mut causes: Vec<ExplanationTerm> =
            { self.stack.iter().copied() }.filter(shown).collect();
        let legend = causes.iter().map(|t| format!("{}: {}", t.name, t.meaning));
        let legend = legend.collect::<Vec<_>>().join("; ");
        causes.push(ExplanationTerm {
            name: "all",
            alone: self.cpi_alone,
            value: self.cpi,
            unit: "",
            slowdown_part: Some(self.cpi / self.cpi_alone - 1.0),
            meaning: "",
        });
        format!(
            "\n{}: its work took {:.3} times as long as alone; averages over that work\n{}\n{}\n{}",
            self.thread,
            self.cpi / self.cpi_alone,
            output::table(CAUSE_COLUMNS, &causes),
            output::table(FACT_COLUMNS, &self.facts),
            wrap("", &format!("{legend}.")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_begin_with_those_of_the_cycle_stack() {
        let names = CAUSES.map(|(name, _)| name);
        assert_eq!(names[..SWITCHING], CpiStack::NAMES);
    }
}
