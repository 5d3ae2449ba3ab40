//! The descriptions behind a conclusion, as values that can be varied.

use super::super::load::ProgramLoad;
use super::headlines::StudyConclusion;
use super::parameters::{self, ParameterPath};
use super::scale::scaled;
use crate::simulate::part_error;
use crate::study::StudyError;
use consort_sim::describe::Problems;
use consort_sim::machine::{self, MachineRef, MachineSpec};
use consort_sim::program::{self, ProgramSpec, presets};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Something that is varied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum VariedParameter {
    /// A number of the machine's description.
    Machine(ParameterPath),
    /// A number of the programs' descriptions, in all of them at once.
    Programs(ParameterPath),
    /// The time between two decisions of a policy.
    Quantum,
}

/// Descriptions of a machine and of its programs, with the quantum.
#[derive(Clone, Debug)]
pub(super) struct VariedDescriptions {
    machine: Value,
    /// Most PUs per core.
    pub smt: Option<u32>,
    programs: BTreeMap<String, Value>,
    /// Times the policies' own quantum.
    pub quantum: f64,
}

impl VariedParameter {
    /// Its name: `machine.llc.size_kib`, `programs.*.data_mpki`, `quantum`.
    pub fn name(&self) -> String {
        match self {
            Self::Machine(keys) => format!("machine.{}", keys.join(".")),
            Self::Programs(keys) => {
                // Without the phases, which are what a program consists of.
                let keys: Vec<&str> = { keys.iter() }
                    .map(String::as_str)
                    .filter(|key| *key != "phase")
                    .collect();
                format!("programs.*.{}", keys.join("."))
            }
            Self::Quantum => "quantum".to_owned(),
        }
    }
}

impl VariedDescriptions {
    /// The descriptions that come with Consort.
    ///
    /// # Errors
    /// Machines and programs that are not there.
    pub fn from_headline(headline: &StudyConclusion) -> Result<Self, StudyError> {
        let machine: MachineRef = headline
            .machine
            .parse()
            .map_err(part_error(&headline.key))?;
        let loaded = machine.load(&[]).map_err(part_error(&headline.key))?;
        let mut programs = BTreeMap::new();
        for ProgramLoad(_, name, _) in &headline.load {
            let program = presets::find(name).map_err(part_error(&headline.key))?;
            programs.insert(
                name.clone(),
                serde_json::to_value(&program).map_err(part_error(name))?,
            );
        }
        Ok(Self {
            machine: serde_json::to_value(&loaded.spec).map_err(part_error(&headline.machine))?,
            smt: loaded.smt,
            programs,
            quantum: 1.0,
        })
    }

    /// Every parameter: the machine's, the programs', the quantum.
    pub fn parameters(&self) -> Vec<VariedParameter> {
        let machine = parameters::list_parameters(&self.machine)
            .into_iter()
            .map(VariedParameter::Machine);
        let programs: BTreeSet<ParameterPath> = self
            .programs
            .values()
            .flat_map(parameters::list_parameters)
            .collect();
        let programs = programs.into_iter().map(VariedParameter::Programs);
        machine
            .chain(programs)
            .chain([VariedParameter::Quantum])
            .collect()
    }

    /// Varies a parameter by a factor, or as far towards it as the descriptions stay valid, and
    /// gives how far that was, on average over the descriptions that have it.
    pub fn vary(&mut self, parameter: &VariedParameter, factor: f64) -> f64 {
        match parameter {
            VariedParameter::Machine(keys) => scaled(&mut self.machine, keys, factor, |value| {
                read_machine(value).is_some()
            }),
            VariedParameter::Programs(keys) => {
                let having = self
                    .programs
                    .values_mut()
                    .filter(|p| parameters::list_parameters(p).contains(keys));
                let valid = |value: &Value| read_program(value).is_some();
                let reached: Vec<f64> = having.map(|p| scaled(p, keys, factor, valid)).collect();
                consort_core::stats::mean(&reached).unwrap_or(1.0)
            }
            VariedParameter::Quantum => {
                self.quantum *= factor;
                factor
            }
        }
    }

    /// The machine as it is now.
    ///
    /// # Errors
    /// None for what [`VariedDescriptions::vary`] leaves.
    pub fn machine(&self) -> Result<MachineSpec, StudyError> {
        read_machine(&self.machine).ok_or_else(|| invalid("machine"))
    }

    /// A program as it is now.
    ///
    /// # Errors
    /// None for the programs of the headline.
    pub fn program(&self, name: &str) -> Result<ProgramSpec, StudyError> {
        let value = self.programs.get(name);
        value.and_then(read_program).ok_or_else(|| invalid(name))
    }
}

fn invalid(what: &str) -> StudyError {
    StudyError::part(what, "the varied description is not valid")
}

fn read_machine(value: &Value) -> Option<MachineSpec> {
    read(value, machine::validate)
}

fn read_program(value: &Value) -> Option<ProgramSpec> {
    read(value, program::validate)
}

/// A description, where it is a valid one.
fn read<T: DeserializeOwned>(value: &Value, validate: fn(&T, &mut Problems)) -> Option<T> {
    let spec = T::deserialize(value).ok()?;
    let mut problems = Problems::default();
    validate(&spec, &mut problems);
    problems.list().is_empty().then_some(spec)
}

#[cfg(test)]
mod tests {
    use super::super::headlines::headlines;
    use super::*;

    fn keys(path: &str) -> ParameterPath {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn a_varied_machine_differs_in_that_alone() {
        let mut subject = VariedDescriptions::from_headline(&headlines().unwrap()[0]).unwrap();
        let before = subject.machine().unwrap();
        let latency = VariedParameter::Machine(keys("memory.latency_ns"));
        assert!(subject.parameters().contains(&latency));
        assert_eq!(subject.vary(&latency, 1.3), 1.3);
        let mut after = subject.machine().unwrap();
        assert_eq!(after.memory.latency_ns, before.memory.latency_ns * 1.3);
        after.memory.latency_ns = before.memory.latency_ns;
        assert_eq!(before, after);
    }

    #[test]
    fn programs_are_varied_together_and_stay_valid() {
        let mut subject = VariedDescriptions::from_headline(&headlines().unwrap()[0]).unwrap();
        let share = VariedParameter::Programs(keys("phase.prefetch.effectiveness"));
        assert_eq!(share.name(), "programs.*.prefetch.effectiveness");
        let reached = subject.vary(&share, 1.3);
        assert!(reached > 1.0 && reached < 1.3, "{reached}");
        let hmmer = subject.program("hmmer").unwrap();
        let before = presets::find("hmmer").unwrap().phases[0]
            .prefetch
            .effectiveness;
        let effectiveness = hmmer.phases[0].prefetch.effectiveness;
        assert!(effectiveness > before && (effectiveness - 1.0).abs() < 1e-4);
    }

    /// Rounding and bounds may keep a parameter in its place; most have to move, and none may
    /// make a description invalid.
    #[test]
    fn every_parameter_of_every_conclusion_can_be_varied() {
        for headline in &headlines().unwrap() {
            let subject = VariedDescriptions::from_headline(headline).unwrap();
            let mut moved = 0;
            let all = subject.parameters();
            for parameter in &all {
                for factor in [0.7, 1.3] {
                    let mut varied = subject.clone();
                    moved += usize::from(varied.vary(parameter, factor) != 1.0);
                    assert!(varied.machine().is_ok(), "{parameter:?}");
                }
            }
            assert!(
                moved > 3 * all.len() / 2,
                "{}: {moved} of {}",
                headline.key,
                all.len()
            );
        }
    }
}
