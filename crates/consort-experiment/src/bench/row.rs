//! Results of benches, and long tables of them.

use consort_core::stats::quantile;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use serde::Serialize;

/// One measured or derived figure: the median of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRow {
    /// Name of the bench and the case.
    pub name: String,
    /// Median.
    pub value: f64,
    /// Unit of all values.
    pub unit: &'static str,
    /// Repetitions.
    pub n: usize,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
    /// Aim, where there is such a figure; nothing fails when it is missed.
    pub target: Option<f64>,
}

impl BenchRow {
    /// Sums repetitions up; NaN where there is none.
    pub(crate) fn new(
        name: String,
        unit: &'static str,
        target: Option<f64>,
        values: &[f64],
    ) -> Self {
        let at = |q| quantile(values, q).unwrap_or(f64::NAN);
        Self {
            name,
            value: at(0.5),
            unit,
            n: values.len(),
            low: at(0.25),
            high: at(0.75),
            target,
        }
    }

    /// Half the distance between the quartiles, relative to the median.
    pub fn spread(&self) -> f64 {
        if self.high == self.low {
            return 0.0;
        }
        (self.high - self.low) / (2.0 * self.value.abs())
    }
}

/// Benches: the case is the bench's name; `low` and `high` are its quartiles.
pub fn bench_table(benches: &[BenchRow]) -> Table {
    let mut rows = LongRows::default();
    for bench in benches {
        let of = RowOwner {
            case: &bench.name,
            ..RowOwner::default()
        };
        let unit = Some(bench.unit).filter(|unit| !unit.is_empty());
        rows.push(of, "median", bench.value, unit);
        rows.push(of, "low", bench.low, unit);
        rows.push(of, "high", bench.high, unit);
        rows.push(of, "rounds", bench.n as f64, None);
        rows.push_if_some(of, "target", bench.target, unit);
    }
    rows.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_median_with_its_quartiles() {
        let row = BenchRow::new("a".into(), "ns", None, &[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((row.value, row.low, row.high, row.n), (3.0, 2.0, 4.0, 5));
        assert!((row.spread() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn constant_value_has_no_spread() {
        let row = BenchRow::new("a".into(), "share", None, &[0.0, 0.0]);
        assert_eq!((row.value, row.spread()), (0.0, 0.0));
    }

    #[test]
    fn benches_have_their_unit_and_no_seed() {
        let bench = BenchRow {
            name: "solve".to_owned(),
            value: 1.5,
            unit: "us",
            n: 3,
            low: 1.0,
            high: 2.0,
            target: None,
        };
        let csv = bench_table(&[bench]).to_csv();
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        let expected = [
            "solve,,,,median,1.5,us",
            "solve,,,,low,1,us",
            "solve,,,,high,2,us",
            "solve,,,,rounds,3,",
        ];
        assert_eq!(lines, expected);
    }
}
