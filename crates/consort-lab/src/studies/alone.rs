//! Copies of a program alone on one core, and the figures of the chip's own counters for them.
//!
//! Pitfalls: the figures are the chip's own events, with read noise, so a usage near 0 can come out
//! a hair below; FPU usage means another thing on each chip, and operations per cycle can exceed 1.

use super::pinned_settings;
use crate::frame::{Case, Frame};
use crate::simulate::chips::l2_event;
use crate::simulate::{CaseSpec, ExperimentSpec, part_error, run_every_case};
use crate::study::{Frames, StudyError};
use consort_core::{Machine, Placement, Plan, PuSet, Sample, Signal, SignalOffers, ThreadId};
use consort_experiment::ExperimentContext;
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{SampleSource, SimulatedProgram, ThreadCounts};
use consort_sim::machine::{self, Quantity};
use consort_sim::pmu::{PmuError, PmuRequest, Readout, SimulatedPmu};
use consort_sim::program::presets;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Time between two readings of the counters, ns: the source's one second.
const READ_EVERY_NS: u64 = 1_000_000_000;
/// Count of the first chip for its FPU: empty cycles per cycle; usage is 1 less this.
const FPU_EMPTY: &str = "fpu-empty-cycles per cycles";
/// Count of the second chip for its FPU: operations per cycle. The policies' signal is this, too,
/// but ends at 1.
const FP_OPERATIONS: &str = "fp-operations per cycles";
/// Instructions in the unit in which programs state their lengths.
const GIGA: f64 = 1e9;
/// The work of a quick run of a program, 10⁹ instructions: its first seconds.
const QUICK_GINSTR: f64 = 20.0;
/// The product whose copies share units in W1.
const PRODUCT: &str = "matmul-fp";

/// Copies of a program, and their machine.
struct ProgramCopies {
    /// Name of a machine that comes with Consort.
    machine: String,
    /// CPUs per core that are in use; all if `None`.
    smt: Option<u32>,
    /// Name of a program that comes with Consort.
    program: String,
    /// Copies of it, each on a CPU of its own while there are CPUs.
    copies: u32,
    /// Most work per copy, 10⁹ instructions; at most the program's whole length is done.
    at_most_ginstr: f64,
}

/// Runs copies of programs on one core, each of the experiment's cases with a machine and the
/// labels `smt` and `copies`; the policies are the programs.
pub(super) fn count_places(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let number = |case: &CaseSpec, label: &str| case.labels.get(label)?.parse().ok();
    count_copies(context, spec, |case, program| ProgramCopies {
        machine: case.machine.as_ref().unwrap_or(&spec.machine).clone(),
        smt: number(case, "smt"),
        program: program.to_owned(),
        copies: number(case, "copies").unwrap_or(1),
        at_most_ginstr: f64::INFINITY,
    })
}

/// Runs each of the experiment's programs by itself; the policies are the machines.
pub(super) fn count_programs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let at_most_ginstr = context.by_scale(QUICK_GINSTR, f64::INFINITY);
    count_copies(context, spec, |case, machine| {
        let (machine, smt) = machine.split_once(":smt=").unwrap_or((machine, ""));
        ProgramCopies {
            machine: machine.to_owned(),
            smt: smt.parse().ok(),
            program: case.workload.clone().unwrap_or_default(),
            copies: 1,
            at_most_ginstr,
        }
    })
}

/// Runs every case with every policy.
fn count_copies(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    copies: impl Fn(&CaseSpec, &str) -> ProgramCopies + Sync,
) -> Result<Frame, StudyError> {
    let runs = spec.runs(context);
    let jobs = (&spec.cases[..], &spec.policies[..], runs);
    let totals = run_every_case(context, jobs, |case, policy, seed| {
        copies(case, policy).run(seed)
    })?;
    let cases = spec.cases.iter().map(|case| Case {
        key: { case.key.clone() }
            .or_else(|| case.workload.clone())
            .unwrap_or_default(),
        labels: case.labels.clone(),
        programs: Vec::new(),
    });
    let mut frame = Frame::new(cases.collect(), spec.policies.clone(), runs);
    let mut set = |measure, value: fn(&CounterTotals) -> f64| {
        frame.set_run_values(measure, totals.iter().map(value).collect());
    };
    set("fpu_usage", CounterTotals::fpu_usage);
    set("l2_per_100_cycles", CounterTotals::l2_misses);
    set("cycles_g", CounterTotals::gcycles);
    set("instructions_g", CounterTotals::ginstr);
    set("ipc", |totals| totals.ginstr() / totals.gcycles());
    Ok(frame)
}

impl ProgramCopies {
    /// Puts each copy on a CPU of the first core, in the order of the ways, and lets all of them do
    /// their work once; the seed is that of the read noise and of the program's variation.
    ///
    /// # Errors
    /// A machine or a program that is not there, counters that the machine lacks.
    fn run(&self, seed: u64) -> Result<CounterTotals, StudyError> {
        let part = format!("{} on {}", self.program, self.machine);
        let spec = machine::presets::find(&self.machine).map_err(part_error(&part))?;
        let chip = Arc::new(Chip::new(&spec, self.smt).map_err(part_error(&part))?);
        let mut events = spec.pmu.events.iter();
        let empty = events.any(|event| event.counts == Quantity::FpuEmptyCycles);
        // Both fit the counters of either chip at once.
        let fpu = if empty { FPU_EMPTY } else { FP_OPERATIONS };
        let l2 = format!("{} per 100 cycles", l2_event(&spec).1);
        let readouts = [fpu, &l2];
        let readouts = readouts.into_iter().map(str::parse::<Readout>);
        let readouts = readouts.collect::<Result<_, PmuError>>();
        let request = PmuRequest {
            signals: Some(Vec::new()),
            readouts: readouts.map_err(part_error(&part))?,
        };
        let pmu = SimulatedPmu::new(&spec, &request, seed).map_err(part_error(&part))?;
        let program = Arc::new(presets::find(&self.program).map_err(part_error(&part))?);
        let length_ginstr: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
        let copy = SimulatedProgram {
            instructions: length_ginstr.min(self.at_most_ginstr) * GIGA,
            program,
            threads: 1,
            start_ms: 0.0,
        };
        let settings = pinned_settings(seed);
        let totals = Rc::new(RefCell::new(CounterTotals {
            copies: f64::from(self.copies),
            ..CounterTotals::default()
        }));
        let source = Box::new(SummingPmu {
            pmu,
            empty,
            totals: Rc::clone(&totals),
        });
        let (copies, meter) = (vec![copy; self.copies as usize], EnergyModel::new(&chip));
        let meter = Box::new(meter);
        let machine = SimMachine::new(chip, &copies, &settings, READ_EVERY_NS, meter, source);
        let mut machine = machine.map_err(part_error(&part))?;
        let first = machine.topology().cores().first();
        // More copies than ways share CPUs from the first one on.
        let pus = first.map_or_else(Vec::new, |core| core.pus.as_slice().to_vec());
        let threads = machine.oracle().threads().collect::<Vec<_>>();
        let each = threads.into_iter().zip(pus.into_iter().cycle());
        let placements = each.map(|(thread, pu)| (thread, Placement::Restricted(PuSet::from(pu))));
        let plan = Plan {
            generation: 1,
            placements: placements.collect(),
            ..Plan::default()
        };
        machine.enact(&plan).map_err(part_error(&part))?;
        while machine.observe().map_err(part_error(&part))?.is_some() {}
        let totals = *totals.borrow();
        Ok(totals)
    }
}

/// Sums over all copies and readings. A ratio of a reading counts by its cycles, so that
/// the quotients of the sums are those of the events over the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct CounterTotals {
    copies: f64,
    cycles: f64,
    instructions: f64,
    fpu_cycles: f64,
    l2_misses: f64,
}

impl CounterTotals {
    /// FPU usage as the chip's event gives it, over all cycles of the run.
    fn fpu_usage(&self) -> f64 {
        // Read noise may take a counter of empty cycles beyond the cycles.
        (self.fpu_cycles / self.cycles).clamp(0.0, 1.0)
    }

    /// L2 misses per 100 cycles.
    fn l2_misses(&self) -> f64 {
        100.0 * self.l2_misses / self.cycles
    }

    /// Cycles of a copy, 10⁹.
    fn gcycles(&self) -> f64 {
        self.cycles / self.copies / GIGA
    }

    /// Instructions of a copy, 10⁹.
    fn ginstr(&self) -> f64 {
        self.instructions / self.copies / GIGA
    }
}

/// A PMU whose readings are added up.
struct SummingPmu {
    pmu: SimulatedPmu,
    /// True if the chip counts empty cycles of the FPU instead of operations.
    empty: bool,
    totals: Rc<RefCell<CounterTotals>>,
}

impl SampleSource for SummingPmu {
    fn offers(&self) -> &SignalOffers {
        self.pmu.offers()
    }

    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        let sample = self.pmu.sample(thread, counts, interval_ns);
        let reported = [0, 1].map(|i| self.pmu.readout(thread, i).map(|read| read.value));
        if let [Some(fpu), Some(l2_per_100)] = reported {
            let fpu_usage = if self.empty { 1.0 - fpu } else { fpu };
            let cycles = sample.get(Signal::Cycles).unwrap_or(0.0);
            let mut totals = self.totals.borrow_mut();
            totals.cycles += cycles;
            totals.instructions += sample.get(Signal::Instructions).unwrap_or(0.0);
            totals.fpu_cycles += fpu_usage * cycles;
            totals.l2_misses += l2_per_100 / 100.0 * cycles;
        }
        sample
    }
}

/// W1: notes on the units that copies on a module of Bulldozer and on a core of POWER7 share.
pub(super) fn sharing(frames: &Frames) -> Vec<String> {
    let Some(frame) = frames.get("places") else {
        return Vec::new();
    };
    let mean = |place: &str, copies: u32, measure: &str| {
        let key = format!("{place}/{copies}");
        let case = frame.cases.iter().position(|known| known.key == key);
        let both = case.zip(frame.policy_index(PRODUCT));
        let values = both.map_or(&[][..], |(case, policy)| {
            frame.run_values(case, policy, measure)
        });
        values.iter().sum::<f64>() / values.len() as f64
    };
    let module = |copies, measure| mean("bulldozer-6282se/smt2", copies, measure);
    let core = |copies, measure| mean("power7/smt4", copies, measure);
    let each = [1, 2, 4].map(|copies| core(copies, "fpu_usage"));
    let all = [1, 2, 4].map(|copies| f64::from(copies) * core(copies, "ipc"));
    vec![
        format!(
            "Bulldozer: two copies on a module take {:.2} times the cycles of one, because \
             they take turns at its four decode slots. Usage hardly falls, from {:.3} to {:.3}: \
             an operation is in the FPU for five cycles, so even at half the rate the FPU is \
             seldom empty. The event shows whether a thread uses the FPU, not how much.",
            module(2, "cycles_g") / module(1, "cycles_g"),
            module(1, "fpu_usage"),
            module(2, "fpu_usage"),
        ),
        format!(
            "POWER7: with one, two and four copies on a core a copy's usage is {:.3}, {:.3} and \
             {:.3}, while all copies together complete {:.2}, {:.2} and {:.2} instructions per \
             cycle. What they share, two load/store units first, is nearly used up by one copy, \
             so this usage shows a thread's rate as much as its nature.",
            each[0], each[1], each[2], all[0], all[1], all[2],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(program: &str, machine: &str, copies: u32) -> ProgramCopies {
        ProgramCopies {
            machine: machine.to_owned(),
            smt: None,
            program: program.to_owned(),
            copies,
            at_most_ginstr: 20.0,
        }
    }

    fn run(program: &str, machine: &str, count: u32) -> CounterTotals {
        copies(program, machine, count).run(7).unwrap()
    }

    /// Asserts that a value is near: over ten readings the noise of 0.5 percent is below 1 percent.
    fn near(value: f64, expect: f64) {
        assert!(
            (value / expect - 1.0).abs() < 0.01,
            "{value} is not {expect}"
        );
    }

    #[test]
    fn every_copy_does_its_work() {
        for copies in [1, 2, 4] {
            near(run("matmul-fp", "power7", copies).ginstr(), 20.0);
        }
    }

    #[test]
    fn power7_counts_operations_per_cycle() {
        let totals = run("matmul-fp", "power7", 2);
        let fp_share = presets::find("matmul-fp").unwrap().phases[0].mix.fp;
        let per_cycle = fp_share * totals.ginstr() / totals.gcycles();
        near(totals.fpu_usage(), per_cycle);
    }

    #[test]
    fn copies_on_one_core_are_slower() {
        let [one, two] = [1, 2].map(|copies| run("matmul-fp", "bulldozer-6282se", copies));
        assert!(two.gcycles() > 1.05 * one.gcycles(), "{one:?} {two:?}");
    }

    #[test]
    fn l2_misses_are_those_of_the_program() {
        assert_eq!(run("pure-int", "power7", 1).l2_misses(), 0.0);
        assert!(run("mcf", "bulldozer-6282se", 1).l2_misses() > 0.1);
    }

    #[test]
    fn bulldozer_counts_lines_that_its_prefetchers_bring() {
        // 75 lines in 1000 instructions, most brought in time by prefetchers.
        let totals = run("streamer", "bulldozer-6282se", 1);
        near(1000.0 * totals.l2_misses / totals.instructions, 75.0);
    }

    #[test]
    fn unknown_program_is_named() {
        let error = copies("mfc", "power7", 1).run(7).unwrap_err().to_string();
        assert!(error.starts_with("mfc on power7: "), "{error}");
    }
}
