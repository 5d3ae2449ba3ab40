//! One parameter of a description, made larger or smaller.
//!
//! Whole numbers (widths, ways, entries) are rounded and stay at least 1. Shares of a mix sum to
//! what they did before: the others make room. A core's `dispatch_width` takes what one thread may
//! use of it along. Where the factor leads out of what a description may say, the parameter goes
//! as far as it can: [`scaled`] says how far it came.

use super::parameters::ParameterPath;
use serde_json::{Map, Value, json};

/// Halvings with which the last valid factor is looked for: to within 10⁻⁶ of the way.
const HALVINGS: u32 = 20;

/// Scales a parameter by the factor nearest to the one asked for with which the description is
/// valid, and gives that factor. The description has to be valid before.
pub(super) fn scaled(
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
            change(table, key, factor);
        }
        (Value::Object(table), [key, inner @ ..]) => {
            let Some(child) = table.get_mut(key) else {
                return;
            };
            match (key.as_str(), inner, child) {
                ("mix", [share], Value::Object(mix)) => share_of(mix, share, factor),
                (_, _, child) => multiply(child, inner, factor),
            }
        }
        _ => {}
    }
}

fn change(table: &mut Map<String, Value>, key: &str, factor: f64) {
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

fn times(number: &Value, factor: f64) -> Value {
    match (number.as_u64(), number.as_f64()) {
        (Some(0), _) => number.clone(),
        (Some(whole), _) => json!((whole as f64 * factor).round().max(1.0) as u64),
        (None, Some(value)) => json!(value * factor),
        (None, None) => number.clone(),
    }
}

/// Scales one share of a mix; the others take what is left, in their proportions.
fn share_of(mix: &mut Map<String, Value>, share: &str, factor: f64) {
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
    use super::*;
    use proptest::prelude::*;

    fn keys(path: &str) -> ParameterPath {
        path.split('.').map(str::to_owned).collect()
    }

    fn check(before: Value, path: &str, factor: f64, expect: Value) {
        let mut value = before;
        let reached = scaled(&mut value, &keys(path), factor, |_| true);
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
    fn what_one_thread_dispatches_goes_with_the_core() {
        let core =
            json!({"dispatch_width": 4.0, "smt": [{"ways": 2, "thread_dispatch_width": 3.0}]});
        let expect =
            json!({"dispatch_width": 2.0, "smt": [{"ways": 2, "thread_dispatch_width": 1.5}]});
        check(core, "dispatch_width", 0.5, expect);
    }

    #[test]
    fn what_would_be_invalid_goes_as_far_as_it_can() {
        let small = |value: &Value| value["a"].as_f64().unwrap() <= 1.1;
        let mut value = json!({"a": 1.0});
        let reached = scaled(&mut value, &keys("a"), 1.3, small);
        assert!((reached - 1.1).abs() < 1e-5 && small(&value), "{reached}");
        let stuck = scaled(&mut json!({"a": 1.0}), &keys("a"), 1.3, |v| {
            v["a"] == json!(1.0)
        });
        assert!((stuck - 1.0).abs() < 1e-5, "{stuck}");
    }

    proptest! {
        #[test]
        fn a_mix_keeps_its_sum(
            shares in prop::collection::vec(0.01f64..1.0, 3), factor in 0.7f64..1.3,
        ) {
            let total: f64 = shares.iter().sum();
            let mut value = json!({"phase": [{"mix": {
                "fp": shares[0] / total, "int": shares[1] / total, "load": shares[2] / total,
            }}]});
            let fits = |v: &Value| {
                v["phase"][0]["mix"].as_object().unwrap().values().all(|s| s.as_f64().unwrap() >= 0.0)
            };
            let reached = scaled(&mut value, &keys("phase.mix.fp"), factor, fits);
            let mix = value["phase"][0]["mix"].as_object().unwrap();
            let sum: f64 = mix.values().map(|share| share.as_f64().unwrap()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            let fp = mix["fp"].as_f64().unwrap();
            prop_assert!((fp - reached * shares[0] / total).abs() < 1e-9);
        }

        #[test]
        fn a_factor_of_one_changes_nothing(value in 1u64..1000, number in 0.001f64..1000.0) {
            let before = json!({"a": value, "b": number});
            let mut after = before.clone();
            for key in ["a", "b"] {
                scaled(&mut after, &keys(key), 1.0, |_| true);
            }
            prop_assert_eq!(before, after);
        }
    }
}
