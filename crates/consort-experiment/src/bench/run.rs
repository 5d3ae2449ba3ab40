//! Running benches: round by round, every case once in each.

use super::Bench;
use super::case::{BenchCase, Effort, FigureSource};
use super::error::BenchError;
use super::row::BenchRow;

/// A bench's cases with what they have given so far.
struct BenchSeries {
    cases: Vec<BenchCase>,
    /// By case, then by round.
    values: Vec<Vec<f64>>,
}

/// Runs benches and sums each case up; `progress` receives the rounds done and their total.
///
/// # Errors
/// Machines, programs or policies that cannot be had; runs that fail.
pub fn run(
    benches: &[Box<dyn Bench>],
    effort: Effort,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<BenchRow>, BenchError> {
    run_rounds(benches, effort, effort.rounds(), progress)
}

/// The same with this number of rounds.
///
/// # Errors
/// As for [`run`].
pub fn run_rounds(
    benches: &[Box<dyn Bench>],
    effort: Effort,
    rounds: usize,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<BenchRow>, BenchError> {
    let series = benches
        .iter()
        .map(|bench| BenchSeries::new(bench.as_ref(), effort));
    let mut series = series.collect::<Result<Vec<_>, _>>()?;
    for s in &mut series {
        s.run_round()?;
    }
    series.iter_mut().for_each(BenchSeries::forget);
    for round in 0..rounds {
        progress(round, rounds);
        for s in &mut series {
            s.run_round()?;
        }
    }
    progress(rounds, rounds);
    Ok(series.into_iter().flat_map(BenchSeries::rows).collect())
}

impl BenchSeries {
    fn new(bench: &dyn Bench, effort: Effort) -> Result<Self, BenchError> {
        let cases = bench.cases(effort)?;
        Ok(Self {
            values: vec![Vec::new(); cases.len()],
            cases,
        })
    }

    fn run_round(&mut self) -> Result<(), BenchError> {
        let mut before = Vec::with_capacity(self.cases.len());
        for (case, values) in self.cases.iter_mut().zip(&mut self.values) {
            let value = match &mut case.figure {
                FigureSource::Measured(measure) => measure()?,
                FigureSource::Derived(derive) => derive(&before),
            };
            before.push(value);
            values.push(value);
        }
        Ok(())
    }

    /// Forgets the warm-up.
    fn forget(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
    }

    fn rows(self) -> impl Iterator<Item = BenchRow> {
        let pairs = self.cases.into_iter().zip(self.values);
        pairs.map(|(case, values)| BenchRow::new(case.name, case.unit, case.target, &values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Two cases that note when they are measured, and their sum.
    struct Noted(char, Rc<RefCell<String>>);

    impl Bench for Noted {
        fn name(&self) -> String {
            self.0.to_string()
        }

        fn summary(&self) -> String {
            String::new()
        }

        fn cases(&self, _: Effort) -> Result<Vec<BenchCase>, BenchError> {
            let log = Rc::clone(&self.1);
            let (mut count, letter) = (0.0, self.0);
            let measure = move || {
                count += 1.0;
                log.borrow_mut().push(letter);
                Ok(count)
            };
            let twice = |before: &[f64]| 2.0 * before[0];
            Ok(vec![
                BenchCase::from_measure(self.name(), "1", Box::new(measure)).with_target(7.0),
                BenchCase::from_derivation(format!("{}-twice", self.0), "1", Box::new(twice)),
            ])
        }
    }

    #[test]
    fn cases_alternate_the_warm_up_does_not_count_and_derived_follow() {
        let log = Rc::default();
        let benches: Vec<Box<dyn Bench>> = vec![
            Box::new(Noted('a', Rc::clone(&log))),
            Box::new(Noted('b', Rc::clone(&log))),
        ];
        let rows = run(&benches, Effort::Quick, &|_, _| {}).unwrap();
        assert_eq!(log.borrow().as_str(), "abababab");
        let seen: Vec<(&str, f64, usize)> = rows
            .iter()
            .map(|r| (r.name.as_str(), r.value, r.n))
            .collect();
        // The warm-up gave 1; the rounds 2, 3, 4.
        let expected = [
            ("a", 3.0, 3),
            ("a-twice", 6.0, 3),
            ("b", 3.0, 3),
            ("b-twice", 6.0, 3),
        ];
        assert_eq!(seen, expected);
        assert_eq!((rows[0].target, rows[1].target), (Some(7.0), None));
    }
}
