//! Long tables of what benches measured.

use crate::row::BenchRow;
use consort_data::Table;
use consort_experiment::long::{LongRows, RowOwner};

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
