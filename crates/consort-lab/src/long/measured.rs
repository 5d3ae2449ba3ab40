//! Long tables of what is checked and measured about Consort itself.

use crate::bench;
use crate::validate::Check;
use consort_experiment::long::{Rows, Whose};
use consort_table::Table;

/// Checks: the case is `GROUP:ID`; `agrees` is 1 or 0.
pub fn of_checks(checks: &[Check], seed: u64) -> Table {
    let mut rows = Rows::default();
    for check in checks {
        let case = format!("{}:{}", check.group, check.id);
        let of = Whose {
            case: &case,
            seed: Some(seed),
            ..Whose::default()
        };
        let unit = Some(check.unit.as_str()).filter(|unit| !unit.is_empty());
        rows.push(of, "ours", check.ours, unit);
        rows.maybe(of, "error", check.error, None);
        rows.push(of, "allowed", check.allowed, None);
        rows.push(of, "agrees", f64::from(u8::from(check.agrees)), None);
    }
    rows.table()
}

/// Benches: the case is the bench's name; `low` and `high` are its quartiles.
pub fn of_benches(benches: &[bench::Row]) -> Table {
    let mut rows = Rows::default();
    for bench in benches {
        let of = Whose {
            case: &bench.name,
            ..Whose::default()
        };
        let unit = Some(bench.unit).filter(|unit| !unit.is_empty());
        rows.push(of, "median", bench.value, unit);
        rows.push(of, "low", bench.low, unit);
        rows.push(of, "high", bench.high, unit);
        rows.push(of, "rounds", bench.n as f64, None);
        rows.maybe(of, "target", bench.target, unit);
    }
    rows.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_have_their_unit_and_no_seed() {
        let bench = bench::Row {
            name: "solve".to_owned(),
            value: 1.5,
            unit: "us",
            n: 3,
            low: 1.0,
            high: 2.0,
            target: None,
        };
        let csv = of_benches(&[bench]).to_csv();
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
