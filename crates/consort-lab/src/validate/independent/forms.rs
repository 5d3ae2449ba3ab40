//! Known forms of sharing, with their numbers, on one generic core.

use super::NAME;
use crate::simulate::chips::full_chip;
use crate::validate::CheckResult;
use crate::validate::check::{CheckTemplate, PublishedFigure, Tolerance};
use crate::validate::data::{PublishedData, ValidateError, data_error};
use crate::validate::simulated::solve;
use consort_sim::contention::Solver;
use consort_sim::machine::{CoreSpec, MachineSpec, PipelineSpec, RobSharing, SmtMode};
use consort_sim::program::PhaseSpec;
use serde::Deserialize;

const FILE: &str = "forms.csv";

#[derive(Deserialize)]
struct FormRow {
    id: String,
    low: f64,
    high: Option<f64>,
    unit: String,
    what: String,
    source: String,
}

/// The behaviours that forms are made of.
#[derive(Deserialize)]
struct FormPhases {
    compute: PhaseSpec,
    chaser: PhaseSpec,
    random_loads: PhaseSpec,
    streamer: PhaseSpec,
    fits: PhaseSpec,
}

struct FormTestbed {
    machine: MachineSpec,
    phases: FormPhases,
}

pub(super) fn checks(data: &PublishedData) -> CheckResult {
    let bench = FormTestbed {
        machine: data.parse_machine("forms-machine.toml")?,
        phases: data.parse_toml("forms-phases.toml")?,
    };
    let mut checks = Vec::new();
    for row in data.parse_rows::<FormRow>(FILE)? {
        let template = CheckTemplate {
            group: NAME,
            source: &row.source,
            unit: &row.unit,
            tolerance: Tolerance::relative(0.0),
        };
        let low = row.low;
        let published = match row.high {
            Some(high) => PublishedFigure::Range { low, high },
            None => PublishedFigure::AtLeast(low),
        };
        let ours = bench.form_value(&row.id)?;
        checks.push(template.check(format!("form/{}", row.id), row.what, published, ours));
    }
    Ok(checks)
}

impl FormTestbed {
    fn form_value(&self, id: &str) -> Result<f64, ValidateError> {
        let p = &self.phases;
        let shared_rob =
            |sharing| self.with_changed_cores(|core: &mut CoreSpec| core.rob_sharing = sharing);
        let private = || shared_rob(RobSharing::Private);
        // 3.67 instructions per cycle alone: 0.4866·√128 over a mean latency of 1.5.
        let slow = || self.parallel_phase(0.4866, 0.5);
        // More parallel than the core is wide.
        let fast = || self.parallel_phase(2.0, 0.5);
        // 0.128 instructions per cycle at a mean latency of 1.5.
        let rare = || self.parallel_phase(0.128 * 1.5, 0.0);
        match id {
            "dispatch-slow" => Ok(1.0 / pair_cpis(&private(), [&slow(), &fast()], 1)?[0]),
            "dispatch-fast" => Ok(1.0 / pair_cpis(&private(), [&slow(), &fast()], 1)?[1]),
            "dispatch-left-over" => Ok(1.0 / pair_cpis(&private(), [&fast(), &rare()], 1)?[0]),
            "window-shared" => slowdown(&self.machine, [&p.compute, &p.chaser], 1),
            "window-halves" => {
                let halves = shared_rob(RobSharing::Partitioned);
                slowdown(&halves, [&p.compute, &p.chaser], 1)
            }
            "two-chasers" => slowdown(&self.machine, [&p.chaser, &p.chaser], 1),
            "big-little-chase" => self.gain_over(&self.in_order_machine(), &p.chaser),
            "big-little-loads" => self.gain_over(&self.in_order_machine(), &p.random_loads),
            "width" => {
                let half = self.with_changed_cores(|core| {
                    core.dispatch_width *= 0.5;
                    for mode in &mut core.smt {
                        mode.thread_dispatch_width *= 0.5;
                    }
                });
                self.gain_over(&half, &p.compute)
            }
            // A program that just fits the LLC, and a streamer on the next core of two CPUs.
            "llc-cliff" => slowdown(&self.machine, [&p.fits, &p.streamer], 2),
            "miss-cost-serial" => self.miss_cost(1.0),
            "miss-cost-mcf" => self.miss_cost(170.0 / 75.0),
            "miss-cost-lbm" => self.miss_cost(170.0 / 14.0),
            _ => Err(data_error(FILE, format!("unknown form '{id}'"))),
        }
    }

    fn with_changed_cores(&self, change: impl Fn(&mut CoreSpec)) -> MachineSpec {
        let mut machine = self.machine.clone();
        machine.core_types.values_mut().for_each(change);
        machine
    }

    fn in_order_machine(&self) -> MachineSpec {
        self.with_changed_cores(|core| {
            core.pipeline = PipelineSpec::InOrder;
            core.rob_entries = None;
            core.smt = vec![SmtMode {
                ways: 1,
                thread_dispatch_width: core.dispatch_width,
            }];
            core.outstanding_misses = 4;
        })
    }

    /// Compute with another law of parallelism.
    fn parallel_phase(&self, a: f64, b: f64) -> PhaseSpec {
        let mut phase = self.phases.compute.clone();
        phase.ilp.a = a;
        phase.ilp.b = b;
        phase
    }

    /// Speedup of a phase on the machine over another machine.
    fn gain_over(&self, other: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
        Ok(cpi_alone(other, phase)? / cpi_alone(&self.machine, phase)?)
    }

    /// Cycles of one more miss at an overlap.
    fn miss_cost(&self, overlap: f64) -> Result<f64, ValidateError> {
        let cpi = |mpki: f64| {
            let mut phase = self.phases.compute.clone();
            phase.data_mpki.fill(mpki);
            phase.mlp.value = overlap;
            cpi_alone(&self.machine, &phase)
        };
        Ok(1000.0 * (cpi(2.0)? - cpi(1.0)?))
    }
}

/// Cycles per instruction of two phases, the first on CPU 0 and the other on another CPU.
fn pair_cpis(
    machine: &MachineSpec,
    [first, other]: [&PhaseSpec; 2],
    pu: usize,
) -> Result<[f64; 2], ValidateError> {
    let solver = Solver::new(full_chip(machine)?);
    let rates = solve(&solver, &[(0, first), (pu, other)]);
    Ok([rates[0].cpi, rates[1].cpi])
}

/// Slowdown of the first of two phases.
fn slowdown(machine: &MachineSpec, both: [&PhaseSpec; 2], pu: usize) -> Result<f64, ValidateError> {
    Ok(pair_cpis(machine, both, pu)?[0] / cpi_alone(machine, both[0])?)
}

fn cpi_alone(machine: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
    let solver = Solver::new(full_chip(machine)?);
    Ok(solve(&solver, &[(0, phase)])[0].cpi)
}
