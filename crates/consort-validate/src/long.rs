//! Long tables of what is checked about Consort itself.

use crate::check::ValidationCheck;
use consort_data::Table;
use consort_experiment::long::{LongRows, RowOwner};

/// Checks: the case is `GROUP:ID`; `agrees` is 1 or 0.
pub fn checks_to_long_table(checks: &[ValidationCheck], seed: u64) -> Table {
    let mut rows = LongRows::default();
    for check in checks {
        let case = format!("{}:{}", check.group, check.id);
        let of = RowOwner {
            case: &case,
            seed: Some(seed),
            ..RowOwner::default()
        };
        let unit = Some(check.unit.as_str()).filter(|unit| !unit.is_empty());
        rows.push(of, "ours", check.ours, unit);
        rows.push_if_some(of, "error", check.error, None);
        rows.push(of, "allowed", check.allowed, None);
        rows.push(of, "agrees", f64::from(u8::from(check.agrees)), None);
    }
    rows.table()
}
