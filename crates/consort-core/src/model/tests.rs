//! Tests of the forward model and of the machines and stacks that a model fits.

use super::testing::{power8, sane, stack};
use super::{
    ComponentParameters, InterferenceModel, LevelParameters, MAX_WAYS, ModelError, embedded_model,
    embedded_model_names,
};
use crate::policy::PolicyRng;
use crate::stack::CycleStack;
use proptest::prelude::*;
use rand::SeedableRng;

#[test]
fn the_forward_model_worked_by_hand() {
    let mut together = [0.0; 4];
    let (own, others) = ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]);
    power8().predict_stack(&own, &others, &mut together);
    let expected = [
        -0.019 + 1.698 * 0.4,
        0.009 + 1.089 * 0.3 - 0.859 * 0.3 * 0.2,
        0.008 + 1.219 * 0.2 + 0.308 * 0.2 * 0.3,
        0.031 + 1.173 * 0.1 + 0.072 * 0.4 + 0.615 * 0.1 * 0.4,
    ];
    let both = together.iter().zip(expected);
    assert!(both.clone().all(|(a, b)| (a - b).abs() < 1e-15));
    let sum: f64 = expected.iter().sum();
    assert!((power8().slowdown(&own, &others) - sum).abs() < 1e-15);
}

#[test]
fn no_slowdown_is_below_one() {
    // Two threads of nothing but fixed-point cycles would take 0.27 of the time.
    let fixed = [0.0, 1.0, 0.0, 0.0];
    assert_eq!(power8().slowdown(&fixed, &fixed), 1.0);
}

#[test]
fn impossible_levels_are_refused() {
    let one = vec![ComponentParameters::default()];
    for ways in [0, 1, MAX_WAYS + 1] {
        assert_eq!(
            LevelParameters::new(ways, one.clone()),
            Err(ModelError::Ways { ways })
        );
    }
    assert_eq!(
        LevelParameters::new(2, Vec::new()),
        Err(ModelError::NoComponents)
    );
    let beta = f64::NAN;
    let bad = vec![one[0], ComponentParameters { beta, ..one[0] }];
    let text = LevelParameters::new(2, bad).unwrap_err().to_string();
    assert_eq!(
        text,
        "beta of component number 1 is NaN; it must lie between -1000 and 1000"
    );
}

fn paper() -> InterferenceModel {
    InterferenceModel::parse(embedded_model("power8-paper").unwrap(), "power8-paper").unwrap()
}

#[test]
fn every_embedded_model_is_one() {
    for name in embedded_model_names() {
        let model = InterferenceModel::parse(embedded_model(name).unwrap(), name).unwrap();
        assert_eq!(model.name, name);
        assert!(!model.provenance.source.is_empty());
    }
    assert_eq!(embedded_model("power9-paper"), None);
    assert_eq!(paper().level(2).map(LevelParameters::ways), Some(2));
    assert_eq!(paper().level(4), None);
}

#[test]
fn model_for_another_machine_or_stack_is_refused() {
    let model = paper();
    let stack = ["data cache miss", "base", "fixed point", "floating point"];
    assert_eq!(model.check_fit("power8", &stack), Ok(()));
    assert_eq!(
        model.check_fit("power7", &stack).unwrap_err().to_string(),
        "model 'power8-paper' was trained on machine 'power8' and does not hold for machine \
         'power7'; train one with 'consort train'"
    );
    assert_eq!(
        model
            .check_fit("power8", &["base", "memory"])
            .unwrap_err()
            .to_string(),
        "model 'power8-paper' needs the cycle stack [base, fixed point, floating point, \
         data cache miss], and the machine offers [base, memory]"
    );
    let more = [
        "base",
        "fixed point",
        "floating point",
        "data cache miss",
        "branch",
    ];
    assert!(model.check_fit("power8", &more).is_err());
}

#[test]
fn part_that_the_model_lacks_counts_as_its_whole() {
    let amounts = [
        ("data cache miss", 4.0),
        ("base", 3.0),
        ("fixed point", 1.5),
        ("fixed point/divide", 0.5),
        ("floating point", 1.0),
    ];
    let names = amounts.map(|(name, _)| name);
    assert_eq!(paper().check_fit("power8", &names), Ok(()));
    let shares = paper().shares(&CycleStack::from_amounts(amounts));
    assert_eq!(shares, Ok(vec![0.3, 0.2, 0.1, 0.4]));
    let mut with_part = paper();
    with_part.components[1] = "fixed point/divide".to_owned();
    assert!(
        with_part.check_fit("power8", &names).is_err(),
        "fixed point has no home"
    );
}

#[test]
fn shares_come_in_the_order_of_the_model() {
    let amounts = [
        ("data cache miss", 4.0),
        ("base", 3.0),
        ("fixed point", 2.0),
        ("floating point", 1.0),
    ];
    let shares = paper().shares(&CycleStack::from_amounts(amounts));
    assert_eq!(shares, Ok(vec![0.3, 0.2, 0.1, 0.4]));
    let less = CycleStack::from_amounts(amounts.into_iter().take(3));
    assert!(matches!(
        paper().shares(&less),
        Err(ModelError::Stack { .. })
    ));
}

proptest! {
    #[test]
    fn all_pairs_equal_single_predictions(seed in 0u64..10_000, threads in 0usize..9) {
        let mut rng = PolicyRng::seed_from_u64(seed);
        let level = sane(&mut rng, 2, 5);
        let stacks: Vec<Vec<f64>> = (0..threads).map(|_| stack(&mut rng, 5)).collect();
        let pairs = level.pairs(&stacks.concat()).unwrap();
        prop_assert_eq!(pairs.threads(), threads);
        for (i, own) in stacks.iter().enumerate() {
            for (j, other) in stacks.iter().enumerate() {
                let difference = pairs.get(i, j).unwrap() - level.slowdown(own, other);
                prop_assert!(difference.abs() < 1e-12);
            }
        }
        prop_assert_eq!(pairs.get(threads, 0), None);
    }

    #[test]
    fn any_shares_give_finite_predictions(
        own in prop::collection::vec(any::<f64>(), 4), others in prop::collection::vec(any::<f64>(), 4),
    ) {
        let slowdown = power8().slowdown(&own, &others);
        prop_assert!(slowdown.is_finite() && slowdown >= 1.0);
        let pairs = power8().pairs(&[own, others].concat()).unwrap();
        let beside_first = (0..pairs.threads()).filter_map(|other| pairs.get(0, other));
        prop_assert!(beside_first.into_iter().all(f64::is_finite));
    }
}

#[test]
fn pairs_need_two_ways_and_whole_stacks() {
    let mut rng = PolicyRng::seed_from_u64(1);
    let four = sane(&mut rng, 4, 5);
    assert!(matches!(four.pairs(&[]), Err(ModelError::Threads { .. })));
    let odd = power8().pairs(&[0.25; 6]).unwrap_err().to_string();
    assert_eq!(odd, "a stack of 2 components where the model has 4");
}
