//! Tests of the training on synthetic programs with known parameters.

use super::{
    ErrorHistogram, ErrorSpread, FitError, LevelErrors, TrainingRow, TrainingSet, cross_validate,
    errors, fit,
};
use consort_core::model::{ComponentParameters, LevelParameters};
use proptest::prelude::*;

const COMPONENTS: [&str; 3] = ["base", "unit", "memory"];

fn parameters(alpha: f64, beta: f64, gamma: f64, delta: f64) -> ComponentParameters {
    ComponentParameters {
        alpha,
        beta,
        gamma,
        delta,
    }
}

fn truth(ways: u32) -> LevelParameters {
    let of_all = vec![
        parameters(0.01, 1.6, 0.0, 0.05),
        parameters(0.0, 1.1, 0.02, 0.3),
        parameters(0.03, 1.2, 0.07, 0.15),
    ];
    LevelParameters::new(ways, of_all).unwrap()
}

/// A program that has `base` and `unit` cycles in every hundred.
fn program(base: u32, unit: u32) -> (String, [f64; 3]) {
    let (base_share, unit_share) = (f64::from(base) / 100.0, f64::from(unit) / 100.0);
    let stack = [base_share, unit_share, 1.0 - base_share - unit_share];
    (format!("b{base}u{unit}"), stack)
}

fn programs() -> Vec<(String, [f64; 3])> {
    let cycles = [
        (10, 20),
        (25, 60),
        (40, 5),
        (55, 30),
        (70, 10),
        (20, 35),
        (90, 5),
        (35, 35),
    ];
    cycles.map(|(base, unit)| program(base, unit)).to_vec()
}

/// The rows of one co-run as the level makes them, all cycles times `noise`.
fn co_run(
    level: &LevelParameters,
    number: u64,
    core: &[&(String, [f64; 3])],
    noise: f64,
) -> Vec<TrainingRow> {
    let row = |place: usize| {
        let (name, own) = core[place];
        let co_runners = core.iter().enumerate().filter(|(i, _)| *i != place);
        let others: Vec<f64> = (0..own.len())
            .map(|c| co_runners.clone().map(|(_, (_, stack))| stack[c]).sum())
            .collect();
        let mut together = vec![0.0; own.len()];
        level.predict_stack(own, &others, &mut together);
        together.iter_mut().for_each(|cycles| *cycles *= noise);
        let slowdown: f64 = together.iter().sum();
        TrainingRow {
            co_run: number,
            program: name.clone(),
            co_runners: co_runners.map(|(_, (name, _))| name.clone()).collect(),
            own: own.to_vec(),
            others,
            measured: together.iter().map(|cycles| cycles / slowdown).collect(),
            together,
        }
    };
    (0..core.len()).map(row).collect()
}

/// All pairs of the programs in SMT2; noise alternates about 1.
fn pairs(programs: &[(String, [f64; 3])], noise: f64) -> TrainingSet {
    let mut set = TrainingSet {
        machine: "made-up".to_owned(),
        ways: 2,
        components: COMPONENTS.map(str::to_owned).to_vec(),
        slowdowns_only: false,
        rows: Vec::new(),
    };
    let mut number = 0;
    for (i, one) in programs.iter().enumerate() {
        for other in &programs[i..] {
            let sign = if number % 2 == 0 { 1.0 } else { -1.0 };
            let rows = co_run(&truth(2), number, &[one, other], 1.0 + sign * noise);
            set.rows.extend(rows);
            number += 1;
        }
    }
    set
}

fn close(level: &LevelParameters, expected: &LevelParameters, within: f64) -> bool {
    let both = level.parameters().iter().zip(expected.parameters());
    let mut values = both.flat_map(|(a, b)| a.named_values().into_iter().zip(b.named_values()));
    values.all(|((_, a), (_, b))| (a - b).abs() < within)
}

#[test]
fn fit_finds_the_parameters_of_the_rows() {
    let set = pairs(&programs(), 0.0);
    let fit = fit(&set).unwrap();
    assert!(close(&fit.level, &truth(2), 1e-9), "{:?}", fit.level);
    assert!(fit.r2.iter().all(|r2| r2.unwrap() > 1.0 - 1e-9));
    assert!(fit.absent.is_empty());
    assert_eq!((set.programs().len(), set.co_runs()), (8, 36));
}

#[test]
fn wider_cores_are_fitted_alike() {
    let all = programs();
    let mut set = pairs(&[], 0.0);
    set.ways = 4;
    for number in 0..40usize {
        let core: Vec<_> = (0..4)
            .map(|i| &all[(number * (i + 1) + i * i) % 8])
            .collect();
        set.rows
            .extend(co_run(&truth(4), number as u64, &core, 1.0));
    }
    let level = fit(&set).unwrap().level;
    assert!(close(&level, &truth(4), 1e-9), "{level:?}");
    let errors = errors(&level, &set).unwrap();
    assert!(errors.inverse.size.p95_percent < 1e-4, "{errors:?}");
    assert_eq!((errors.ways, errors.inverted), (4, 40));
}

#[test]
fn errors_without_noise_are_none() {
    let set = pairs(&programs(), 0.0);
    for errors in [errors(&truth(2), &set), cross_validate(&set, 4)] {
        let errors = errors.unwrap();
        assert!(errors.forward.size.p95_percent < 1e-6, "{errors:?}");
        assert!(errors.inverse.size.p95_percent < 1e-4, "{errors:?}");
        assert!(errors.r2.iter().all(|r2| r2.unwrap() > 1.0 - 1e-9));
        assert_eq!(errors.guesses_kept, 0);
    }
}

#[test]
fn five_percent_noise_is_five_percent_error() {
    // Predictions without noise are off by 0.05 / 1.05 and 0.05 / 0.95.
    let errors: LevelErrors = errors(&truth(2), &pairs(&programs(), 0.05)).unwrap();
    let mean = errors.forward.size.mean_absolute_percent;
    assert!((mean - 5.0).abs() < 0.1, "{mean}");
    let counted: Vec<_> = errors
        .forward
        .histogram
        .bins()
        .filter(|b| b.2 > 0)
        .collect();
    assert_eq!(counted, [(-6.0, -4.0, 36), (4.0, 6.0, 36)]);
    assert!(errors.r2.iter().all(|r2| r2.unwrap() < 1.0));
    assert_eq!(errors.accuracy().forward, errors.forward.size);
}

#[test]
fn held_out_program_does_not_predict_itself() {
    // One program slows twice as much as the model of the others says.
    let mut set = pairs(&programs(), 0.0);
    for row in set.rows.iter_mut().filter(|row| row.program == "b70u10") {
        row.together.iter_mut().for_each(|cycles| *cycles *= 2.0);
    }
    let mut held_out = pairs(&programs(), 0.0);
    held_out
        .rows
        .retain(|row| row.programs().all(|name| name != "b70u10"));
    let blind = fit(&held_out).unwrap().level;
    assert!(close(&blind, &truth(2), 1e-9));
    let fitted = errors(&fit(&set).unwrap().level, &set).unwrap();
    let honest = cross_validate(&set, 8).unwrap();
    // A row is tested once for each of its two programs, one of its twins once.
    assert_eq!(
        (fitted.forward.count, honest.forward.count),
        (72, 2 * 56 + 16)
    );
    let halves = honest.forward.histogram.bins().next().unwrap();
    assert!(
        halves.2 >= 9,
        "the 9 rows of the program are half predicted: {honest:?}"
    );
}

#[test]
fn absent_component_has_no_parameters_and_is_named() {
    let mut set = pairs(&programs(), 0.0);
    set.components.push("transactions".to_owned());
    for row in &mut set.rows {
        for stack in [
            &mut row.own,
            &mut row.others,
            &mut row.together,
            &mut row.measured,
        ] {
            stack.push(0.0);
        }
    }
    let fit = fit(&set).unwrap();
    assert_eq!(fit.absent, ["transactions"]);
    assert!(fit.level.parameters()[3].is_absent());
    assert_eq!(fit.r2[3], None);
    let inverse = errors(&fit.level, &set).unwrap().inverse;
    assert!(inverse.size.p95_percent < 1e-4);
}

fn refused(set: &TrainingSet) -> String {
    fit(set).unwrap_err().to_string()
}

#[test]
fn underdetermined_component_is_refused() {
    let same: Vec<_> = [10, 20, 30, 40, 50].map(|base| program(base, 25)).to_vec();
    assert_eq!(
        refused(&pairs(&same, 0.0)),
        "component 'unit' cannot be fitted at 2 threads per core: the share of the thread alone \
         is the same in all rows; add training programs that differ in it"
    );
    let mut one_side = pairs(&programs(), 0.0);
    one_side.rows.iter_mut().for_each(|row| row.others[2] = 0.3);
    assert!(refused(&one_side).contains("'memory' cannot be fitted"));
    assert!(refused(&one_side).contains("the share of the co-runners is the same"));
    let mut twins = pairs(&programs(), 0.0);
    twins.rows.retain(|row| row.co_runners[0] == row.program);
    twins
        .rows
        .iter_mut()
        .for_each(|row| row.others[0] = 1.0 - row.own[0]);
    let dependent = refused(&twins);
    assert!(
        dependent.contains("their product depend on each other"),
        "{dependent}"
    );
}

#[test]
fn too_few_programs_rows_and_folds_are_refused() {
    let few = pairs(&programs()[..3], 0.0);
    assert_eq!(
        refused(&few),
        "training on 3 programs (machine 'made-up', 2 threads per core); at least 4 are needed"
    );
    let mut short = pairs(&programs(), 0.0);
    short.rows.drain(2..);
    short.rows[0].co_runners = vec!["x".to_owned(), "y".to_owned(), "z".to_owned()];
    assert!(refused(&short).contains("2 rows for 4 coefficients"));
    let set = pairs(&programs(), 0.0);
    for folds in [0, 1, 9] {
        let (expect, found) = (
            FitError::Folds { folds, programs: 8 },
            cross_validate(&set, folds),
        );
        assert_eq!(found, Err(expect));
    }
    let five = pairs(&programs()[..5], 0.0);
    assert!(matches!(
        cross_validate(&five, 2),
        Err(FitError::TooFewPrograms { .. })
    ));
}

#[test]
fn unusable_row_is_named() {
    let mut set = pairs(&programs(), 0.0);
    set.rows[3].own.pop();
    let expect = "row 3 (b25u60): own has 2 components where the set has 3";
    assert_eq!(refused(&set), expect);
    let mut set = pairs(&programs(), 0.0);
    set.rows[0].together[1] = f64::NAN;
    let expect = "row 0 (b10u20): together holds a value that is not finite";
    assert_eq!(errors(&truth(2), &set).unwrap_err().to_string(), expect);
    let mut set = pairs(&programs(), 0.0);
    set.rows[0].together.fill(0.0);
    assert!(refused(&set).contains("must sum to the slowdown"));
}

#[test]
fn bins_include_their_lower_edge() {
    let histogram =
        ErrorHistogram::from_percents(&[-30.1, -30.0, -0.1, 0.0, 1.9, 2.0, 29.9, 30.0, 1e9]);
    let counted: Vec<_> = histogram.bins().filter(|bin| bin.2 > 0).collect();
    let expected = [
        (f64::NEG_INFINITY, -30.0, 1),
        (-30.0, -28.0, 1),
        (-2.0, 0.0, 1),
        (0.0, 2.0, 2),
        (2.0, 4.0, 1),
        (28.0, 30.0, 1),
        (30.0, f64::INFINITY, 2),
    ];
    assert_eq!(counted, expected);
    assert_eq!(
        ErrorSpread::from_percents(&[]).size.mean_absolute_percent,
        0.0
    );
}

proptest! {
    #[test]
    fn every_error_is_counted_once(percents in prop::collection::vec(-100.0f64..100.0, 0..50)) {
        let spread = ErrorSpread::from_percents(&percents);
        let counted: u64 = spread.histogram.bins().map(|bin| bin.2).sum();
        prop_assert_eq!(counted as usize, spread.count);
        prop_assert!(spread.size.p95_percent <= 100.0);
        let inside = |p: &f64| spread.histogram.bins().any(|(low, high, n)| n > 0 && (low..high).contains(p));
        prop_assert!(percents.iter().all(inside));
    }
}
