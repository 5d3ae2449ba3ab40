//! Long tables of what is checked about Consort itself.

use crate::check::Check;
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
