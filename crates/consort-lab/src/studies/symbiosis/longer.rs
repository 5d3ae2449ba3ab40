//! Workloads with as much work as in the paper (experiment `long`), beside the shorter work of the
//! other experiments (`short`).

use crate::frame::{CellQuery, Frame, IntervalBasis, number_or_missing};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_data::{Cell, ReportColumn, ReportTable};

/// The policy that ratios are to.
const BASE: &str = "random";

/// Table `time-alone`: rows `CORES/NUMBER/POLICY`; columns `stp_over_random` with the shorter
/// time alone, `stp_over_random_long` with the paper's, `difference_percent`.
pub(in crate::studies) fn table(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let both = frames.get("short").zip(frames.get("long"));
    let (short, long) = both.ok_or_else(|| StudyError::part(&*spec.key, "needs short and long"))?;
    let [of_short, of_long] = [short, long].map(|frame| seconds(frame));
    let columns = vec![
        ReportColumn::plain(
            "stp_over_random",
            &format!("STP over random, {of_short} s alone"),
        ),
        ReportColumn::plain(
            "stp_over_random_long",
            &format!("The same, {of_long} s alone"),
        ),
        ReportColumn::with_unit("difference_percent", "The first over the second", "%"),
    ];
    let mut table = ReportTable::new(&spec.key, &spec.title, columns)?;
    for (n, case) in short.cases.iter().enumerate() {
        for policy in short.policies.iter().filter(|policy| *policy != BASE) {
            let [short, long] = [short, long].map(|frame| over(frame, n, policy));
            let difference = difference_percent(&short, &long);
            let key = format!("{}/{policy}", case.key);
            table.push(&key, vec![short, long, difference])?;
        }
    }
    Ok(table)
}

/// Time of a program's work alone, s.
fn seconds(frame: &Frame) -> f64 {
    let first = frame.run_values(0, 0, "alone_s").first();
    first.copied().unwrap_or(f64::NAN)
}

fn over(frame: &Frame, case: usize, policy: &str) -> Cell {
    let what = CellQuery {
        measure: "stp",
        policy,
        over: Some(BASE),
        ..CellQuery::default()
    };
    let groups = frame.group_by_label("case", IntervalBasis::Cases, |_| true);
    frame.cell(&what, &groups[case])
}

fn difference_percent(short: &Cell, long: &Cell) -> Cell {
    let both = short.value().zip(long.value());
    let percent = both.map(|(short, long)| 100.0 * (short / long - 1.0));
    number_or_missing(percent, "no runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_of_the_ratios() {
        let percent = difference_percent(&Cell::from(1.02), &Cell::from(1.0));
        assert!((percent.value().unwrap() - 2.0).abs() < 1e-9);
        let missing = Cell::missing("no");
        assert_eq!(difference_percent(&missing, &Cell::from(1.0)).value(), None);
    }
}
