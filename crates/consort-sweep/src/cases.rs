//! Cases of a sweep: a workload on a machine with values of the parameters.

use super::error::SweepError;
use super::points::ParameterPoint;
use super::spec::SweepSpec;
use consort_experiment::Experiment;
use consort_experiment::long;
use consort_lab::Descriptions;
use consort_sim::chip::Chip;
use consort_sim::workload::Workload;
use std::sync::Arc;
use std::time::Duration;

/// A workload on a machine.
pub(super) struct SweepCase {
    /// Its name in tables.
    pub(super) key: String,
    /// The machine as the description names it.
    pub(super) machine: String,
    /// Values of the parameters.
    pub(super) point: ParameterPoint,
    /// Experiment that the cases are of.
    pub(super) experiment: Experiment,
}

/// Cases, each made when it is asked for: a sweep may have more than are wanted in memory.
pub(super) struct SweepCases {
    machines: Vec<String>,
    points: Vec<ParameterPoint>,
    workloads: Vec<Workload>,
    alone_s: f64,
    quantum: Option<Duration>,
}

impl SweepCases {
    /// The cases of a description, with its workloads resolved.
    pub(super) fn new(spec: &SweepSpec) -> Result<Self, SweepError> {
        let workloads = spec
            .workloads
            .iter()
            .map(|text| Descriptions::resolve_workload(text));
        Ok(Self {
            machines: spec.machines.clone(),
            points: super::points::points(spec),
            workloads: workloads.collect::<Result<_, _>>()?,
            alone_s: spec.alone_s,
            quantum: spec.quantum_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
        })
    }

    /// Number of cases: every workload with every point on every machine.
    pub(super) fn len(&self) -> usize {
        self.machines.len() * self.points.len() * self.workloads.len()
    }

    /// The case of a number; workloads vary fastest, machines slowest.
    pub(super) fn get(&self, number: usize) -> Result<SweepCase, SweepError> {
        let workload = &self.workloads[number % self.workloads.len()];
        let number = number / self.workloads.len();
        let point = &self.points[number % self.points.len()];
        let machine = &self.machines[number / self.points.len()];
        let loaded = Descriptions::load_machine_with_changes(machine, point)?;
        let chip = Chip::new(&loaded.spec, loaded.smt)?;
        let changes = point.iter().map(|(key, value)| format!(" {key}={value}"));
        let label = machine.clone() + &changes.collect::<String>();
        Ok(SweepCase {
            key: long::case_name(&workload.text, &label),
            machine: machine.clone(),
            point: point.clone(),
            experiment: Experiment {
                chip: Arc::new(chip),
                workload: workload.clone(),
                alone_s: self.alone_s,
                quantum: self.quantum,
                free_migration: false,
            },
        })
    }
}
