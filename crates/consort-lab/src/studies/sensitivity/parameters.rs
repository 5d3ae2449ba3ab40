//! Parameters: the numbers of a description that are varied, by rule.
//!
//! Every number in a machine's or a program's description is one, found by walking the
//! description itself, so that a key that is added to the format is varied without a line here.
//! Excepted are the keys of [`NOT_VARIED`]: counts of things and how they nest (the topology of
//! the question, not a property of its parts), numbers of nodes, granules that hardware has in
//! powers of two, shares relative to others of their kind, and widths that go with another key.
//! What is 0 has no 30 percent and is left out too.
//!
//! An array of numbers (a miss curve) is one parameter, and so is a key that every entry of an
//! array of tables has (all phases, all SMT modes).

use serde_json::Value;
use std::collections::BTreeSet;

/// The path of a parameter in a description: keys from the outside in, arrays passed over.
pub(super) type ParameterPath = Vec<String>;

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
pub(super) fn list_parameters(description: &Value) -> Vec<ParameterPath> {
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
            if items.iter().all(Value::is_number) && items.iter().any(is_something) =>
        {
            found.insert(path.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, found)),
        Value::Number(_) if is_something(value) => {
            found.insert(path.clone());
        }
        _ => {}
    }
}

fn is_something(number: &Value) -> bool {
    number.as_f64().is_some_and(|value| value != 0.0)
}

fn is_excepted(path: &[String]) -> bool {
    let ends = |rule: &str| {
        let rule: Vec<&str> = rule.split('.').collect();
        path.iter()
            .rev()
            .zip(rule.iter().rev())
            .all(|(a, b)| a == b)
            && path.len() >= rule.len()
    };
    NOT_VARIED.iter().any(|rule| ends(rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::machine::presets as machines;
    use consort_sim::program::presets as programs;

    fn names(description: &Value) -> Vec<String> {
        list_parameters(description)
            .iter()
            .map(|keys| keys.join("."))
            .collect()
    }

    #[test]
    fn sizes_latencies_and_bandwidths_are_found_and_the_topology_is_not() {
        let spec = machines::find("power8").unwrap();
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
    fn a_curve_is_one_parameter_and_so_are_all_phases() {
        let spec = programs::find("gcc").unwrap();
        assert!(spec.phases.len() > 1);
        let names = names(&serde_json::to_value(&spec).unwrap());
        let curves = names.iter().filter(|name| *name == "phase.data_mpki");
        assert_eq!(curves.count(), 1);
    }

    #[test]
    fn an_integer_program_has_no_floating_point_to_vary() {
        let names = |name: &str| {
            let spec = programs::find(name).unwrap();
            names(&serde_json::to_value(&spec).unwrap())
        };
        let has_fp = |name: &str| names(name).iter().any(|name| name == "phase.mix.fp");
        assert!(!has_fp("hmmer") && has_fp("povray"));
    }

    #[test]
    fn what_is_nothing_is_not_varied() {
        let value = serde_json::json!({
            "a": 0.0, "b": [0, 0.0], "c": [{"d": 0}, {"d": 2}], "count": 3, "e": [], "f": "x",
        });
        assert_eq!(names(&value), ["c.d"]);
    }
}
