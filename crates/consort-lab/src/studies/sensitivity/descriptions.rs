//! The descriptions behind a conclusion, and their parameters, which can be varied.
//!
//! Every number in a machine's or a program's description is a parameter, found by walking the
//! description itself, so that a key that is added to the format is varied without a line here.
//! Excepted are the keys of [`NOT_VARIED`] and what is 0. An array of numbers (a miss curve) is one
//! parameter, and so is a key that every entry of an array of tables has (all phases, all SMT modes).

use super::StudyConclusion;
use crate::simulate::part_error;
use crate::studies::load::ProgramLoad;
use crate::study::StudyError;
use consort_sim::describe::Problems;
use consort_sim::machine::{self, MachineRef, MachineSpec};
use consort_sim::program::{self, ProgramSpec, presets};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a parameter in a description: keys from the outside in, arrays passed over.
type ParameterPath = Vec<String>;

/// Ends of paths that are not varied.
const NOT_VARIED: &[&str] = &[
    // What there is and how it nests.
    "layout",
    "smt.ways",
    "count",
    "controllers_per_node",
    "programmable",
    "threads.default",
    "threads.max",
    // Which, not how much.
    "memory_nodes",
    // Granules in powers of two.
    "line_bytes",
    "page_kib",
    // Relative to the other stages.
    "stage.thread_share",
    "stage.work",
    // Goes with `dispatch_width`.
    "smt.thread_dispatch_width",
];

/// The parameters of a description, in the order of their paths.
fn list_parameters(description: &Value) -> Vec<ParameterPath> {
    let mut found = BTreeSet::new();
    walk(description, &mut Vec::new(), &mut found);
    found.into_iter().collect()
}

fn walk(value: &Value, path: &mut ParameterPath, found: &mut BTreeSet<ParameterPath>) {
    if is_excepted(path) {
        return;
    }
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                path.push(key.clone());
                walk(value, path, found);
                path.pop();
            }
        }
        Value::Array(items)
            if items.iter().all(Value::is_number) && items.iter().any(is_varied) =>
        {
            found.insert(path.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, found)),
        Value::Number(_) if is_varied(value) => {
            found.insert(path.clone());
        }
        _ => {}
    }
}

/// True if [`list_parameters`] lists a path that it lists for some description.
fn has_parameter(value: &Value, path: &[String]) -> bool {
    match (value, path) {
        (Value::Object(table), [key, rest @ ..]) => table
            .get(key)
            .is_some_and(|value| has_parameter(value, rest)),
        (Value::Array(items), []) if items.iter().all(Value::is_number) => {
            items.iter().any(is_varied)
        }
        (Value::Array(items), _) => items.iter().any(|item| has_parameter(item, path)),
        (Value::Number(_), []) => is_varied(value),
        _ => false,
    }
}

/// True if a parameter can vary by a share of itself, which one that is 0 cannot.
fn is_varied(number: &Value) -> bool {
    number.as_f64().is_some_and(|value| value != 0.0)
}

fn is_excepted(path: &[String]) -> bool {
    let ends_path = |rule: &&str| {
        let rule: Vec<&str> = rule.split('.').collect();
        let mut ends = path.iter().rev().zip(rule.iter().rev());
        path.len() >= rule.len() && ends.all(|(a, b)| a == b)
    };
    NOT_VARIED.iter().any(ends_path)
}

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
    /// Most CPUs per core.
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
    pub fn from_conclusion(conclusion: &StudyConclusion) -> Result<Self, StudyError> {
        let machine: MachineRef = conclusion
            .machine
            .parse()
            .map_err(part_error(&conclusion.key))?;
        let loaded = machine.load(&[]).map_err(part_error(&conclusion.key))?;
        let mut programs = BTreeMap::new();
        for ProgramLoad(_, name, _) in &conclusion.load {
            let program = presets::find(name).map_err(part_error(&conclusion.key))?;
            programs.insert(
                name.clone(),
                serde_json::to_value(&program).map_err(part_error(name))?,
            );
        }
        Ok(Self {
            machine: serde_json::to_value(&loaded.spec).map_err(part_error(&conclusion.machine))?,
            smt: loaded.smt,
            programs,
            quantum: 1.0,
        })
    }

    /// Every parameter: the machine's, the programs', the quantum.
    pub fn parameters(&self) -> Vec<VariedParameter> {
        let machine = list_parameters(&self.machine).into_iter();
        let mut all: Vec<VariedParameter> = machine.map(VariedParameter::Machine).collect();
        // Programs are varied together, so what several of them have is one parameter.
        let programs = self.programs.values().flat_map(list_parameters);
        let programs: BTreeSet<ParameterPath> = programs.collect();
        all.extend(programs.into_iter().map(VariedParameter::Programs));
        all.push(VariedParameter::Quantum);
        all
    }

    /// Varies a parameter by a factor, or as far towards it as the descriptions stay valid, and
    /// gives how far that was, on average over the descriptions that have it.
    pub fn vary(&mut self, parameter: &VariedParameter, factor: f64) -> f64 {
        match parameter {
            VariedParameter::Machine(keys) => {
                let valid = |value: &Value| read_machine(value).is_some();
                scale(&mut self.machine, keys, factor, valid)
            }
            VariedParameter::Programs(keys) => {
                let programs = self.programs.values_mut();
                let having = programs.filter(|p| has_parameter(p, keys));
                let valid = |value: &Value| read_program(value).is_some();
                let reached: Vec<f64> = having.map(|p| scale(p, keys, factor, valid)).collect();
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
    /// None for the programs of the conclusion.
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

/// A description, if it is valid.
fn read<T: DeserializeOwned>(value: &Value, validate: fn(&T, &mut Problems)) -> Option<T> {
    let spec = T::deserialize(value).ok()?;
    let mut problems = Problems::default();
    validate(&spec, &mut problems);
    problems.list().is_empty().then_some(spec)
}

/// Halvings with which the last valid factor is looked for: to within 10⁻⁶ of the way.
const HALVINGS: u32 = 20;

/// Scales a parameter by the factor nearest to the requested one with which the description is
/// valid, and returns that factor. The description has to be valid before.
///
/// Whole numbers (widths, ways, entries) are rounded and stay at least 1. Shares of a mix sum to
/// what they did before: the others make room. A core's `dispatch_width` changes what one thread may
/// use of it in proportion.
fn scale(
    description: &mut Value,
    keys: &ParameterPath,
    factor: f64,
    is_valid: impl Fn(&Value) -> bool,
) -> f64 {
    let with = |factor: f64| {
        let mut changed = description.clone();
        multiply(&mut changed, keys, factor);
        is_valid(&changed).then_some(changed)
    };
    if let Some(changed) = with(factor) {
        *description = changed;
        return factor;
    }
    // Bisection: 1 is valid, the requested factor is not.
    let mut reached = (1.0, None);
    let mut beyond = factor;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(reached.0, beyond);
        match with(middle) {
            Some(changed) => reached = (middle, Some(changed)),
            None => beyond = middle,
        }
    }
    if let Some(changed) = reached.1 {
        *description = changed;
    }
    reached.0
}

/// Multiplies a parameter, and what goes with it, in every table that has it.
fn multiply(value: &mut Value, keys: &[String], factor: f64) {
    match (value, keys) {
        (Value::Array(items), _) => items
            .iter_mut()
            .for_each(|item| multiply(item, keys, factor)),
        (Value::Object(table), [key]) => {
            if key == "dispatch_width"
                && let Some(modes) = table.get_mut("smt")
            {
                multiply(modes, &["thread_dispatch_width".to_owned()], factor);
            }
            match table.get_mut(key) {
                Some(Value::Array(items)) => {
                    items
                        .iter_mut()
                        .for_each(|item| *item = times(item, factor));
                }
                Some(value) => *value = times(value, factor),
                None => {}
            }
        }
        (Value::Object(table), [key, inner @ ..]) => {
            let Some(child) = table.get_mut(key) else {
                return;
            };
            match (key.as_str(), inner, child) {
                ("mix", [share], Value::Object(mix)) => multiply_share(mix, share, factor),
                (_, _, child) => multiply(child, inner, factor),
            }
        }
        _ => {}
    }
}

fn times(number: &Value, factor: f64) -> Value {
    match (number.as_u64(), number.as_f64()) {
        (Some(0), _) => number.clone(),
        // A whole number in JSON stays one, because widths and ways are read as counts.
        (Some(whole), _) => json!((whole as f64 * factor).round().max(1.0) as u64),
        (None, Some(value)) => json!(value * factor),
        (None, None) => number.clone(),
    }
}

/// Scales one share of a mix; the others take what is left, in their proportions.
fn multiply_share(mix: &mut Map<String, Value>, share: &str, factor: f64) {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let total: f64 = mix.values().map(number).sum();
    let before = mix.get(share).map_or(0.0, number);
    let others = (total - before * factor) / (total - before);
    for (key, value) in mix.iter_mut() {
        let factor = if key == share { factor } else { others };
        *value = json!(number(value) * factor);
    }
}

#[cfg(test)]
mod tests {
    use super::super::conclusions;
    use super::*;
    use proptest::prelude::*;

    fn names(description: &Value) -> Vec<String> {
        list_parameters(description)
            .iter()
            .map(|keys| keys.join("."))
            .collect()
    }

    #[test]
    fn sizes_and_latencies_are_parameters_topology_is_not() {
        let spec = machine::presets::find("power8").unwrap();
        let names = names(&serde_json::to_value(&spec).unwrap());
        let has = |name: &str| names.iter().any(|known| known == name);
        for name in [
            "llc.size_kib",
            "llc.ways",
            "memory.latency_ns",
            "memory.bandwidth_gb_s",
            "os.slice_ms",
            "pmu.read_noise",
            "numa.link_bandwidth_gb_s",
        ] {
            assert!(has(name), "{name} in {names:?}");
        }
        let fp = names
            .iter()
            .filter(|n| n.ends_with("units.fp.interval_cycles"));
        assert_eq!(fp.count(), 1);
        let topology =
            |n: &String| n.starts_with("layout") || n.contains("smt.") || n.ends_with("count");
        assert!(!names.iter().any(topology), "{names:?}");
    }

    #[test]
    fn curve_over_all_phases_is_one_parameter() {
        let spec = presets::find("gcc").unwrap();
        assert!(spec.phases.len() > 1);
        let names = names(&serde_json::to_value(&spec).unwrap());
        let curves = names.iter().filter(|name| *name == "phase.data_mpki");
        assert_eq!(curves.count(), 1);
    }

    #[test]
    fn integer_program_has_no_floating_point_parameter() {
        let names = |name: &str| {
            let spec = presets::find(name).unwrap();
            names(&serde_json::to_value(&spec).unwrap())
        };
        let has_fp = |name: &str| names(name).iter().any(|name| name == "phase.mix.fp");
        assert!(!has_fp("hmmer") && has_fp("povray"));
    }

    #[test]
    fn zero_is_not_a_parameter() {
        let value = serde_json::json!({
            "a": 0.0, "b": [0, 0.0], "c": [{"d": 0}, {"d": 2}], "count": 3, "e": [], "f": "x",
        });
        assert_eq!(names(&value), ["c.d"]);
    }

    fn keys(path: &str) -> ParameterPath {
        path.split('.').map(str::to_owned).collect()
    }

    fn check(before: Value, path: &str, factor: f64, expect: Value) {
        let mut value = before;
        let reached = scale(&mut value, &keys(path), factor, |_| true);
        assert_eq!((reached, value), (factor, expect));
    }

    #[test]
    fn numbers_are_multiplied_and_whole_ones_rounded() {
        check(
            json!({"a": {"b": 2.0}, "c": 1}),
            "a.b",
            1.5,
            json!({"a": {"b": 3.0}, "c": 1}),
        );
        check(json!({"a": 128}), "a", 0.7, json!({"a": 90}));
        check(json!({"a": 1}), "a", 0.3, json!({"a": 1}));
        check(json!({"a": [4.0, 2.0]}), "a", 0.5, json!({"a": [2.0, 1.0]}));
        let phases = json!({"phase": [{"x": 1.0}, {"x": 3.0}]});
        check(
            phases,
            "phase.x",
            2.0,
            json!({"phase": [{"x": 2.0}, {"x": 6.0}]}),
        );
    }

    #[test]
    fn thread_dispatch_width_follows_the_core() {
        let core =
            json!({"dispatch_width": 4.0, "smt": [{"ways": 2, "thread_dispatch_width": 3.0}]});
        let expect =
            json!({"dispatch_width": 2.0, "smt": [{"ways": 2, "thread_dispatch_width": 1.5}]});
        check(core, "dispatch_width", 0.5, expect);
    }

    #[test]
    fn invalid_factor_stops_at_the_last_valid() {
        let small = |value: &Value| value["a"].as_f64().unwrap() <= 1.1;
        let mut value = json!({"a": 1.0});
        let reached = scale(&mut value, &keys("a"), 1.3, small);
        assert!((reached - 1.1).abs() < 1e-5 && small(&value), "{reached}");
        let stuck = scale(&mut json!({"a": 1.0}), &keys("a"), 1.3, |v| {
            v["a"] == json!(1.0)
        });
        assert!((stuck - 1.0).abs() < 1e-5, "{stuck}");
    }

    proptest! {
        #[test]
        fn mix_keeps_its_sum(
            shares in prop::collection::vec(0.01f64..1.0, 3), factor in 0.7f64..1.3,
        ) {
            let total: f64 = shares.iter().sum();
            let mut value = json!({"phase": [{"mix": {
                "fp": shares[0] / total, "int": shares[1] / total, "load": shares[2] / total,
            }}]});
            let fits = |v: &Value| {
                v["phase"][0]["mix"].as_object().unwrap().values().all(|s| s.as_f64().unwrap() >= 0.0)
            };
            let reached = scale(&mut value, &keys("phase.mix.fp"), factor, fits);
            let mix = value["phase"][0]["mix"].as_object().unwrap();
            let sum: f64 = mix.values().map(|share| share.as_f64().unwrap()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            let fp = mix["fp"].as_f64().unwrap();
            prop_assert!((fp - reached * shares[0] / total).abs() < 1e-9);
        }

        #[test]
        fn factor_of_one_changes_nothing(value in 1u64..1000, number in 0.001f64..1000.0) {
            let before = json!({"a": value, "b": number});
            let mut after = before.clone();
            for key in ["a", "b"] {
                scale(&mut after, &keys(key), 1.0, |_| true);
            }
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn varied_machine_differs_in_one_parameter() {
        let mut subject = VariedDescriptions::from_conclusion(&conclusions().unwrap()[0]).unwrap();
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
        let mut subject = VariedDescriptions::from_conclusion(&conclusions().unwrap()[0]).unwrap();
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
        for conclusion in &conclusions().unwrap() {
            let subject = VariedDescriptions::from_conclusion(conclusion).unwrap();
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
                conclusion.key,
                all.len()
            );
        }
    }
}
