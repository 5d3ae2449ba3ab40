//! Known forms of sharing, with their numbers, on one generic core.

use super::NAME;
use crate::alone::solve;
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::data::{PublishedData, data_error};
use crate::error::ValidateError;
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::machine::{CoreSpec, MachineSpec, PipelineSpec, RobSharing, SmtMode};
use consort_sim::program::PhaseSpec;
use serde::Deserialize;
use std::sync::Arc;

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

/// The machine and the behaviours.
struct FormTestbed {
    machine: MachineSpec,
    phases: FormPhases,
}

pub(super) fn checks(data: &PublishedData) -> Result<Vec<ValidationCheck>, ValidateError> {
    let bench = FormTestbed {
        machine: data.parse_machine("forms-machine.toml")?,
        phases: data.parse_toml("forms-phases.toml")?,
    };
    let lines: Vec<FormRow> = data.parse_rows(FILE)?;
    lines.iter().map(|line| check_form(&bench, line)).collect()
}

fn check_form(bench: &FormTestbed, line: &FormRow) -> Result<ValidationCheck, ValidateError> {
    let topic = CheckTemplate {
        group: NAME,
        source: &line.source,
        unit: &line.unit,
        tolerance: Tolerance::relative(0.0),
    };
    let low = line.low;
    let published = match line.high {
        Some(high) => PublishedFigure::Range { low, high },
        None => PublishedFigure::AtLeast(low),
    };
    let ours = bench.form_value(&line.id)?;
    Ok(topic.check(
        format!("form/{}", line.id),
        line.what.as_str(),
        published,
        ours,
    ))
}

impl FormTestbed {
    /// The number of a form.
    fn form_value(&self, id: &str) -> Result<f64, ValidateError> {
        let p = &self.phases;
        let private = || self.with_changed_cores(|core| core.rob_sharing = RobSharing::Private);
        match id {
            "dispatch-slow" => {
                Ok(1.0 / self.pair_cpis(&private(), &self.slow_phase(), &self.fast_phase())?[0])
            }
            "dispatch-fast" => {
                Ok(1.0 / self.pair_cpis(&private(), &self.slow_phase(), &self.fast_phase())?[1])
            }
            "dispatch-left-over" => {
                Ok(1.0 / self.pair_cpis(&private(), &self.fast_phase(), &self.rare_phase())?[0])
            }
            "window-shared" => self.slowdown(&self.machine, &p.compute, &p.chaser),
            "window-halves" => {
                let halves =
                    self.with_changed_cores(|core| core.rob_sharing = RobSharing::Partitioned);
                self.slowdown(&halves, &p.compute, &p.chaser)
            }
            "two-chasers" => self.slowdown(&self.machine, &p.chaser, &p.chaser),
            "big-little-chase" => self.gain(&self.in_order_machine(), &p.chaser),
            "big-little-loads" => self.gain(&self.in_order_machine(), &p.random_loads),
            "width" => self.gain(&self.narrow_machine(), &p.compute),
            "llc-cliff" => self.llc_cliff(),
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

    /// The same with in-order cores.
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

    /// The same with half the width.
    fn narrow_machine(&self) -> MachineSpec {
        self.with_changed_cores(|core| {
            core.dispatch_width *= 0.5;
            for mode in &mut core.smt {
                mode.thread_dispatch_width *= 0.5;
            }
        })
    }

    /// Compute with another law of parallelism.
    fn parallel_phase(&self, a: f64, b: f64) -> PhaseSpec {
        let mut phase = self.phases.compute.clone();
        phase.ilp.a = a;
        phase.ilp.b = b;
        phase
    }

    /// 3.67 instructions per cycle alone: 0.4866·√128 over a mean latency of 1.5.
    fn slow_phase(&self) -> PhaseSpec {
        self.parallel_phase(0.4866, 0.5)
    }

    /// More parallel than the core is wide.
    fn fast_phase(&self) -> PhaseSpec {
        self.parallel_phase(2.0, 0.5)
    }

    /// 0.128 instructions per cycle at a mean latency of 1.5.
    fn rare_phase(&self) -> PhaseSpec {
        self.parallel_phase(0.128 * 1.5, 0.0)
    }

    /// Cycles per instruction of two on one core.
    fn pair_cpis(
        &self,
        m: &MachineSpec,
        a: &PhaseSpec,
        b: &PhaseSpec,
    ) -> Result<[f64; 2], ValidateError> {
        let rates = solve(&solver(m)?, &[(0, a), (1, b)]);
        Ok([rates[0].cpi, rates[1].cpi])
    }

    fn slowdown(
        &self,
        m: &MachineSpec,
        a: &PhaseSpec,
        b: &PhaseSpec,
    ) -> Result<f64, ValidateError> {
        Ok(self.pair_cpis(m, a, b)?[0] / cpi_alone(m, a)?)
    }

    /// Speedup of a phase on the machine against another.
    fn gain(&self, other: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
        Ok(cpi_alone(other, phase)? / cpi_alone(&self.machine, phase)?)
    }

    /// Slowdown of who just fits the LLC beside a streamer on another core.
    fn llc_cliff(&self) -> Result<f64, ValidateError> {
        let p = &self.phases;
        let rates = solve(&solver(&self.machine)?, &[(0, &p.fits), (2, &p.streamer)]);
        Ok(rates[0].cpi / cpi_alone(&self.machine, &p.fits)?)
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

fn solver(machine: &MachineSpec) -> Result<Solver, ValidateError> {
    Ok(Solver::new(Arc::new(Chip::new(machine, None)?)))
}

/// Cycles per instruction alone.
fn cpi_alone(machine: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
    Ok(solve(&solver(machine)?, &[(0, phase)])[0].cpi)
}
