//! Known forms of sharing, with their numbers, on one generic core.

use super::NAME;
use crate::alone::solve;
use crate::check::{Check, Published, Tolerance, Topic};
use crate::data::{Data, broken};
use crate::error::ValidateError;
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::machine::{CoreSpec, MachineSpec, Pipeline, RobSharing, SmtMode};
use consort_sim::program::PhaseSpec;
use serde::Deserialize;
use std::sync::Arc;

const FILE: &str = "forms.csv";

#[derive(Deserialize)]
struct Line {
    id: String,
    low: f64,
    high: Option<f64>,
    unit: String,
    what: String,
    source: String,
}

/// The behaviours that forms are made of.
#[derive(Deserialize)]
struct Phases {
    compute: PhaseSpec,
    chaser: PhaseSpec,
    random_loads: PhaseSpec,
    streamer: PhaseSpec,
    fits: PhaseSpec,
}

/// The machine and the behaviours.
struct Bench {
    machine: MachineSpec,
    phases: Phases,
}

pub(super) fn checks(data: &Data) -> Result<Vec<Check>, ValidateError> {
    let bench = Bench {
        machine: data.machine("forms-machine.toml")?,
        phases: data.toml("forms-phases.toml")?,
    };
    let lines: Vec<Line> = data.rows(FILE)?;
    lines.iter().map(|line| check(&bench, line)).collect()
}

fn check(bench: &Bench, line: &Line) -> Result<Check, ValidateError> {
    let topic = Topic {
        group: NAME,
        source: &line.source,
        unit: &line.unit,
        tolerance: Tolerance::relative(0.0),
    };
    let low = line.low;
    let published = match line.high {
        Some(high) => Published::Range { low, high },
        None => Published::AtLeast(low),
    };
    let ours = bench.form(&line.id)?;
    Ok(topic.check(
        format!("form/{}", line.id),
        line.what.as_str(),
        published,
        ours,
    ))
}

impl Bench {
    /// The number of a form.
    fn form(&self, id: &str) -> Result<f64, ValidateError> {
        let p = &self.phases;
        let private = || self.with(|core| core.rob_sharing = RobSharing::Private);
        match id {
            "dispatch-slow" => Ok(1.0 / self.pair(&private(), &self.slow(), &self.fast())?[0]),
            "dispatch-fast" => Ok(1.0 / self.pair(&private(), &self.slow(), &self.fast())?[1]),
            "dispatch-left-over" => Ok(1.0 / self.pair(&private(), &self.fast(), &self.rare())?[0]),
            "window-shared" => self.slowdown(&self.machine, &p.compute, &p.chaser),
            "window-halves" => {
                let halves = self.with(|core| core.rob_sharing = RobSharing::Partitioned);
                self.slowdown(&halves, &p.compute, &p.chaser)
            }
            "two-chasers" => self.slowdown(&self.machine, &p.chaser, &p.chaser),
            "big-little-chase" => self.gain(&self.in_order(), &p.chaser),
            "big-little-loads" => self.gain(&self.in_order(), &p.random_loads),
            "width" => self.gain(&self.narrow(), &p.compute),
            "llc-cliff" => self.cliff(),
            "miss-cost-serial" => self.miss_cost(1.0),
            "miss-cost-mcf" => self.miss_cost(170.0 / 75.0),
            "miss-cost-lbm" => self.miss_cost(170.0 / 14.0),
            _ => Err(broken(FILE, format!("unknown form '{id}'"))),
        }
    }

    fn with(&self, change: impl Fn(&mut CoreSpec)) -> MachineSpec {
        let mut machine = self.machine.clone();
        machine.core_types.values_mut().for_each(change);
        machine
    }

    /// The same with in-order cores.
    fn in_order(&self) -> MachineSpec {
        self.with(|core| {
            core.pipeline = Pipeline::InOrder;
            core.rob_entries = None;
            core.smt = vec![SmtMode {
                ways: 1,
                thread_dispatch_width: core.dispatch_width,
            }];
            core.outstanding_misses = 4;
        })
    }

    /// The same with half the width.
    fn narrow(&self) -> MachineSpec {
        self.with(|core| {
            core.dispatch_width *= 0.5;
            for mode in &mut core.smt {
                mode.thread_dispatch_width *= 0.5;
            }
        })
    }

    /// Compute with another law of parallelism.
    fn parallel(&self, a: f64, b: f64) -> PhaseSpec {
        let mut phase = self.phases.compute.clone();
        phase.ilp.a = a;
        phase.ilp.b = b;
        phase
    }

    /// 3.67 instructions per cycle alone: 0.4866·√128 over a mean latency of 1.5.
    fn slow(&self) -> PhaseSpec {
        self.parallel(0.4866, 0.5)
    }

    /// More parallel than the core is wide.
    fn fast(&self) -> PhaseSpec {
        self.parallel(2.0, 0.5)
    }

    /// 0.128 instructions per cycle at a mean latency of 1.5.
    fn rare(&self) -> PhaseSpec {
        self.parallel(0.128 * 1.5, 0.0)
    }

    /// Cycles per instruction of two on one core.
    fn pair(
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
        Ok(self.pair(m, a, b)?[0] / alone(m, a)?)
    }

    /// Speedup of a phase on the machine against another.
    fn gain(&self, other: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
        Ok(alone(other, phase)? / alone(&self.machine, phase)?)
    }

    /// Slowdown of who just fits the LLC beside a streamer on another core.
    fn cliff(&self) -> Result<f64, ValidateError> {
        let p = &self.phases;
        let rates = solve(&solver(&self.machine)?, &[(0, &p.fits), (2, &p.streamer)]);
        Ok(rates[0].cpi / alone(&self.machine, &p.fits)?)
    }

    /// Cycles of one more miss at an overlap.
    fn miss_cost(&self, overlap: f64) -> Result<f64, ValidateError> {
        let cpi = |mpki: f64| {
            let mut phase = self.phases.compute.clone();
            phase.data_mpki.fill(mpki);
            phase.mlp.value = overlap;
            alone(&self.machine, &phase)
        };
        Ok(1000.0 * (cpi(2.0)? - cpi(1.0)?))
    }
}

fn solver(machine: &MachineSpec) -> Result<Solver, ValidateError> {
    Ok(Solver::new(Arc::new(Chip::new(machine, None)?)))
}

/// Cycles per instruction alone.
fn alone(machine: &MachineSpec, phase: &PhaseSpec) -> Result<f64, ValidateError> {
    Ok(solve(&solver(machine)?, &[(0, phase)])[0].cpi)
}
