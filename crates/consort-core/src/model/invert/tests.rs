//! Tests of the inverse model: it undoes the forward model, and says where not.

use crate::model::testing::{measured, power8, sane, stack};
use crate::model::{ComponentParameters, InverseSolution, LevelParameters, ModelError};
use crate::policy::PolicyRng;
use proptest::prelude::*;
use rand::SeedableRng;

/// Error that the inverse model may have on random stacks, in shares of ST cycles.
const PROMISED: f64 = 0.02;

fn invert(level: &LevelParameters, seen: &[Vec<f64>]) -> InverseSolution {
    let slices: Vec<&[f64]> = seen.iter().map(Vec::as_slice).collect();
    level.invert(&slices).unwrap()
}

/// The largest error of a share.
fn worst(inverse: &InverseSolution, own: &[Vec<f64>]) -> f64 {
    let of_one = |(i, stack): (usize, &Vec<f64>)| {
        let both = inverse.st_stack(i).iter().zip(stack);
        both.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    own.iter().enumerate().map(of_one).fold(0.0, f64::max)
}

/// Inverts what is seen of random stacks on `cores` cores, each with a level
/// of its own; gives the largest error.
fn largest_error(cores: u32, mut level: impl FnMut(&mut PolicyRng) -> LevelParameters) -> f64 {
    let mut rng = PolicyRng::seed_from_u64(6);
    let mut largest = 0.0;
    for _ in 0..cores {
        let level = level(&mut rng);
        let components = level.parameters().len();
        let own: Vec<Vec<f64>> = (0..level.ways())
            .map(|_| stack(&mut rng, components))
            .collect();
        let inverse = invert(&level, &measured(&level, &own));
        largest = f64::max(largest, worst(&inverse, &own));
        assert!(largest < PROMISED, "{level:?} {own:?} {inverse:?}");
    }
    largest
}

#[test]
fn inverse_undoes_published_parameters() {
    let level = power8();
    let largest = largest_error(50_000, |_| level.clone());
    // What reads as 0 below an own share of 0.019 / 1.698 cannot be told apart.
    assert!(largest < 0.019 / 1.698 + 1e-6, "{largest}");
}

#[test]
fn inverse_undoes_random_parameters() {
    let largest = largest_error(50_000, |rng| sane(rng, 2, 5));
    assert!(largest < 1e-6, "{largest}");
}

#[test]
fn inverse_undoes_four_and_eight_threads() {
    assert!(largest_error(3_000, |rng| sane(rng, 4, 5)) < 1e-6);
    assert!(largest_error(300, |rng| sane(rng, 8, 4)) < 1e-6);
}

fn level(parameters: &[[f64; 4]]) -> LevelParameters {
    let one = |&[alpha, beta, gamma, delta]: &[f64; 4]| ComponentParameters {
        alpha,
        beta,
        gamma,
        delta,
    };
    LevelParameters::new(2, parameters.iter().map(one).collect()).unwrap()
}

#[test]
fn a_case_worked_by_hand() {
    // Two components that grow by 1.5 and 3: stacks of 1/2 and 1/2 take 0.75 and
    // 1.5 together, which are shares of 1/3 and 2/3 and a slowdown of 2.25.
    let level = level(&[[0.0, 1.5, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0]]);
    let inverse = invert(&level, &[vec![1.0, 2.0], vec![1.0, 0.0]]);
    assert!(worst(&inverse, &[vec![0.5, 0.5], vec![1.0, 0.0]]) < 1e-12);
    assert!((inverse.slowdown(0).unwrap() - 2.25).abs() < 1e-12);
    assert!((inverse.slowdown(1).unwrap() - 1.5).abs() < 1e-12);
    // An error in the first component grows by 1 / 1.5, at a slowdown of 2.25.
    assert!((inverse.sensitivity() - 1.5).abs() < 1e-12);
    assert!(inverse.residual() < 1e-12 && inverse.unsolved_components().is_empty());
    assert_eq!((inverse.st_stack(2), inverse.slowdown(2)), (&[][..], None));
}

#[test]
fn idle_threads_are_no_co_runners() {
    let level = power8();
    let idle = vec![0.0; 4];
    let seen = vec![1.0, 2.0, 3.0, 4.0];
    let inverse = invert(&level, &[idle.clone(), seen]);
    assert_eq!(inverse.st_stack(0), idle);
    assert!(worst(&inverse, &[idle, vec![0.1, 0.2, 0.3, 0.4]]) < 1e-15);
    assert_eq!(inverse.slowdown(1), Some(1.0));
}

#[test]
fn components_without_roots_keep_the_guess() {
    // The second component takes at least half a cycle, and next to none is
    // seen; the slowdown that follows is too large for the first.
    let level = level(&[[0.0, 1.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0]]);
    let seen = vec![0.99, 0.01];
    let inverse = invert(&level, &[seen.clone(), seen.clone()]);
    assert_eq!(inverse.st_stack(0), seen);
    assert_eq!(inverse.unsolved_components(), [0, 1]);
    assert!(inverse.residual() > 0.1);
}

#[test]
fn singular_parameters_have_high_sensitivity() {
    // The threads' shares count alike: whose they are cannot be seen.
    let alike = level(&[[0.0, 1.0, 0.999, 0.0], [0.0, 1.2, 0.0, 0.0]]);
    let seen = measured(&alike, &[vec![0.3, 0.7], vec![0.6, 0.4]]);
    assert!(invert(&alike, &seen).sensitivity() > 100.0);
    // At a sum of shares of 1 the third coefficient cancels the first.
    let folded = level(&[[0.0, 1.0, 0.0, -1.0], [0.0, 1.5, 0.0, 0.0]]);
    let seen = measured(&folded, &[vec![0.5, 0.5], vec![0.499, 0.501]]);
    assert!(invert(&folded, &seen).sensitivity() > 100.0);
    let seen = measured(
        &power8(),
        &[vec![0.4, 0.2, 0.2, 0.2], vec![0.1, 0.1, 0.1, 0.7]],
    );
    assert!(invert(&power8(), &seen).sensitivity() < 2.0);
}

#[test]
fn absent_component_keeps_the_measurement() {
    let level = level(&[[0.0, 1.5, 0.0, 0.0], [0.0; 4]]);
    let never = invert(&level, &[vec![1.0, 0.0], vec![1.0, 0.0]]);
    assert!(never.unsolved_components().is_empty());
    let now = invert(&level, &[vec![0.9, 0.1], vec![1.0, 0.0]]);
    assert_eq!(now.unsolved_components(), [1]);
}

#[test]
fn wrong_counts_are_refused() {
    let level = power8();
    let stack: &[f64] = &[0.25; 4];
    let refused = |stacks: &[&[f64]]| level.invert(stacks).unwrap_err();
    let threads = |threads| ModelError::Threads { threads, ways: 2 };
    assert_eq!(refused(&[]), threads(0));
    assert_eq!(refused(&[stack; 3]), threads(3));
    let expected = ModelError::Components {
        found: 3,
        expected: 4,
    };
    assert_eq!(refused(&[stack, &stack[1..]]), expected);
    assert!(level.invert(&[stack]).is_ok());
}

fn any_parameters() -> impl Strategy<Value = ComponentParameters> {
    let one = || prop_oneof![-1e3f64..1e3, -2.0f64..2.0, Just(0.0)];
    (one(), one(), one(), one()).prop_map(|(alpha, beta, gamma, delta)| ComponentParameters {
        alpha,
        beta,
        gamma,
        delta,
    })
}

proptest! {
    #[test]
    fn any_input_gives_finite_stacks(
        ways in 2u32..=8,
        parameters in prop::collection::vec(any_parameters(), 3),
        amounts in prop::collection::vec(
            prop_oneof![any::<f64>(), 0.0f64..1.0, Just(0.0)], 24),
    ) {
        let level = LevelParameters::new(ways, parameters).unwrap();
        let stacks: Vec<&[f64]> = amounts.chunks_exact(3).take(ways as usize).collect();
        let inverse = level.invert(&stacks).unwrap();
        for (thread, seen) in stacks.iter().enumerate() {
            let own = inverse.st_stack(thread);
            prop_assert!(own.iter().all(|x| (0.0..=1.0).contains(x)), "{own:?}");
            let sum: f64 = own.iter().sum();
            let idle = seen.iter().all(|x| x.is_nan() || *x <= 0.0);
            let expect = if idle { 0.0 } else { 1.0 };
            prop_assert!((sum - expect).abs() < 1e-9, "{own:?} of {seen:?}");
            prop_assert!(inverse.slowdown(thread).unwrap().is_finite());
        }
        prop_assert!(inverse.residual().is_finite());
        prop_assert!(!inverse.sensitivity().is_nan());
    }

    #[test]
    fn the_order_of_the_threads_does_not_matter(seed in 0u64..10_000) {
        let mut rng = PolicyRng::seed_from_u64(seed);
        let level = sane(&mut rng, 2, 5);
        let own = [stack(&mut rng, 5), stack(&mut rng, 5)];
        let mut seen = measured(&level, &own);
        let one = invert(&level, &seen);
        seen.reverse();
        let other = invert(&level, &seen);
        prop_assert!(worst(&one, &[other.st_stack(1).to_vec(), other.st_stack(0).to_vec()]) < 1e-9);
    }
}
