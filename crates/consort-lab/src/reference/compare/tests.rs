//! A study whose tables have what can be matched and what cannot.

use super::*;
use crate::reference::parse;
use crate::testing::report;
use consort_core::stats::ConfidenceInterval;

/// Table `speed` has rows `a+b` and `c`; table `misses` has `c`, too.
fn study() -> StudyReport {
    let mut report = report("W3");
    let unit = |key: &str| ReportColumn::with_unit(key, key, "s");
    let mut speed = ReportTable::new("speed", "", vec![unit("time"), unit("rest")]).unwrap();
    let interval = ConfidenceInterval::from_values(&[1.0, 2.0, 3.0]).unwrap();
    speed
        .push("a+b", vec![interval.into(), "text".into()])
        .unwrap();
    speed
        .push("c", vec![0.5.into(), Cell::missing("not run")])
        .unwrap();
    let mut misses = ReportTable::new("misses", "", vec![unit("time")]).unwrap();
    misses.push("c", vec![7.0.into()]).unwrap();
    report.output.tables = vec![speed, misses];
    report
}

fn comparison(line: &str) -> ReferenceComparison {
    let text = format!("study,row,column,value\n{line}\n");
    compare(&parse("f.csv", &text).unwrap(), &[&study()])
}

fn matched(line: &str) -> ComparedFigure {
    comparison(line).compared.remove(0)
}

fn check_unmatched(line: &str, expect: &str) {
    let comparison = comparison(line);
    assert_eq!(comparison.compared, []);
    assert_eq!(comparison.unmatched[0].line, 2);
    assert_eq!(comparison.unmatched[0].reason, expect);
}

#[test]
fn ours_stands_beside_theirs_with_the_difference() {
    let one = matched("w3,A+B,Time,4");
    assert_eq!((one.study.as_str(), one.row.as_str()), ("W3", "a+b"));
    assert_eq!((one.table.as_str(), one.column.as_str()), ("speed", "time"));
    assert_eq!(one.unit.as_deref(), Some("s"));
    assert_eq!((one.ours.value(), one.theirs), (Some(2.0), 4.0));
    assert_eq!((one.difference, one.relative), (-2.0, Some(-0.5)));
    // The interval is 2 ± 2.48.
    assert_eq!(one.within_ci95, Some(true));
    assert_eq!(matched("W3,a+b,time,5").within_ci95, Some(false));
    assert_eq!(matched("W3,a+b,time,0").relative, None);
}

#[test]
fn a_row_of_two_tables_is_told_apart_by_the_table() {
    let reason = "tables 'speed' and 'misses' both have it; write 'speed:c'";
    check_unmatched("W3,c,time,1", reason);
    assert_eq!(matched("W3,misses:c,time,7").difference, 0.0);
    assert_eq!(matched("W3,speed:c,time,1").within_ci95, None);
}

#[test]
fn what_matches_nothing_says_why() {
    check_unmatched(
        "W4,a+b,time,1",
        "study 'W4' was not run; did you mean 'W3'?",
    );
    check_unmatched("W3,a+d,time,1", "no row 'a+d'; did you mean 'a+b'?");
    check_unmatched("W3,a+b,times,1", "no column 'times'; did you mean 'time'?");
    check_unmatched("W3,a+b,rest,1", "ours is the text 'text'");
    check_unmatched("W3,speed:c,rest,1", "ours is missing: not run");
}

#[test]
fn the_table_holds_every_line() {
    let table = comparison("W3,a+b,time,4\nW3,a+b,times,1").table().unwrap();
    assert_eq!(table.rows().len(), 2);
    let percent = table.cell("1", "relative_percent").unwrap();
    assert_eq!(percent.value(), Some(-50.0));
    let gap = table.cell("2", "ours").unwrap();
    assert_eq!(
        gap,
        &Cell::missing("line 3: no column 'times'; did you mean 'time'?")
    );
}
