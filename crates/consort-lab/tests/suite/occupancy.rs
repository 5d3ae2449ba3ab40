//! The studies of execution-unit occupancy, W3 to W6, at the quick scale: the keys that reference
//! files name, the same bytes for any number of workers, and what must hold for any outcome.
//!
//! W4 and W6 are W3 and W5 for POWER7 in place of Bulldozer, the same experiments and tables, so two
//! runs of them are enough, and their workers are not varied again.

use crate::common::{headline, output, output_of_two_runs};
use consort_data::{Figure, ReportTable};
use consort_lab::StudyOutput;

/// Policies of pairs; kernels have the first two.
const POLICIES: [&str; 3] = ["linux", "workover", "aggregate"];
const LENGTHS: [&str; 4] = [
    "as-it-is",
    "shortened",
    "shortened-fp-halved",
    "shortened-fp-doubled",
];
const CAUSES: [&str; 12] = [
    "base", "units", "fetch", "branch", "l2", "llc", "memory", "queue", "tlb", "window",
    "dispatch", "lock",
];

const WORKERS: usize = 3;

/// The output as it is read back.
fn read(id: &str) -> StudyOutput {
    serde_json::from_str(&stored(id, WORKERS)).expect("it was written")
}

/// The output as it is stored.
fn stored(id: &str, workers: usize) -> String {
    serde_json::to_string(&output(id, workers)).expect("outputs are JSON")
}

fn check_workers(id: &str) {
    assert!(
        stored(id, 1) == stored(id, WORKERS),
        "{id} depends on the number of workers"
    );
}

fn check(id: &str, cases: &[&str], classes: &[&str]) {
    let output = read(id);
    assert_eq!(output.runs, 3);
    check_output(id, &output, cases, classes);
}

fn check_two_runs(id: &str, cases: &[&str], classes: &[&str]) {
    let output = output_of_two_runs(id, WORKERS);
    assert_eq!(output.runs, 2);
    check_output(id, &output, cases, classes);
}

fn check_output(id: &str, output: &StudyOutput, cases: &[&str], classes: &[&str]) {
    headline::check(id, output);
    let policies = &POLICIES[..1 + classes.len()];
    let rows = crossed(cases, policies);
    keys(output, &rows, classes);
    times_hold(output, &rows);
    baseline_is_one(output, cases, policies);
    cycles_add_up(output);
    spread_holds_the_mean(output, &rows);
    let figures: Vec<&str> = output.figures.iter().map(Figure::key).collect();
    assert_eq!(figures[..2], ["speedup", "speedup-equal-work"]);
    let spreads = figures.iter().filter(|key| key.starts_with("spread-"));
    assert_eq!(spreads.count(), cases.len());
}

/// Every one of these with every one of those.
fn crossed(these: &[impl AsRef<str>], those: &[&str]) -> Vec<String> {
    let of = |this: &str| {
        let with = |that: &&str| format!("{this}/{that}");
        those.iter().map(with).collect::<Vec<_>>()
    };
    these.iter().flat_map(|this| of(this.as_ref())).collect()
}

fn keys(output: &StudyOutput, rows: &[String], classes: &[&str]) {
    let tables: Vec<&str> = output.tables.iter().map(ReportTable::key).collect();
    // The source's method, as one process too if programs have their lengths; or the source's score.
    let known = [["once", "single"], ["once", "policies"], ["score", "once"]];
    assert!(
        known.iter().any(|known| tables[1..3] == *known),
        "{tables:?}"
    );
    let by_class = crossed(rows, classes);
    for (table, columns) in [
        (
            "once",
            vec!["makespan_s", "speedup_over_linux", "l2_misses"],
        ),
        (
            "policies",
            vec!["speedup_over_linux", "speedup_over_aggregate"],
        ),
        (
            "policies",
            vec!["makespan_speedup_over_linux", "stp", "antt"],
        ),
        (
            "spread",
            vec!["makespan_min_s", "makespan_max_s", "makespan_sd_s"],
        ),
        ("spread", vec!["stp_min", "stp_max", "stp_sd"]),
        ("units", vec!["fpu_mean_percent", "fpu_busiest_percent"]),
    ] {
        are_there(find(output, table), rows, &columns);
    }
    let columns = [
        "slowdown",
        "l2_mpki",
        "l2_change_percent",
        "fpu_busy_percent",
    ];
    are_there(find(output, "classes"), &by_class, &columns);
    are_there(find(output, "ends"), &by_class, &["end_s"]);
}

/// Each program once: all have finished when the last class has.
fn times_hold(output: &StudyOutput, rows: &[String]) {
    for row in rows {
        let once = |column| value(output, "once", row, column);
        let time = once("makespan_s");
        assert!(once("makespan_min_s") <= time && time <= once("makespan_max_s"));
        let ends = find(output, "ends").rows().iter();
        let own = ends.filter(|end| end.key.starts_with(&format!("{row}/")));
        let last = own.map(|end| value(output, "ends", &end.key, "end_s"));
        assert!(
            (last.fold(0.0, f64::max) / time - 1.0).abs() < 0.02,
            "{row}"
        );
    }
}

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    output
        .tables
        .iter()
        .find(|t| t.key() == key)
        .expect("there is the table")
}

fn are_there(table: &ReportTable, rows: &[String], columns: &[&str]) {
    let ours: Vec<&str> = table.rows().iter().map(|row| row.key.as_str()).collect();
    assert_eq!(ours, rows, "{}", table.key());
    for column in columns {
        assert!(
            table.cell(&rows[0], column).is_some(),
            "{} {column}",
            table.key()
        );
    }
}

fn value(output: &StudyOutput, table: &str, row: &str, column: &str) -> f64 {
    let cell = find(output, table)
        .cell(row, column)
        .expect("there is the cell");
    cell.value().expect("the cell has a value")
}

fn baseline_is_one(output: &StudyOutput, cases: &[&str], policies: &[&str]) {
    for case in cases {
        let of = |policy, column| value(output, "policies", &format!("{case}/{policy}"), column);
        assert!((of("linux", "speedup_over_linux") - 1.0).abs() < 1e-12);
        if !policies.contains(&"aggregate") {
            continue;
        }
        assert!((of("aggregate", "speedup_over_aggregate") - 1.0).abs() < 1e-12);
        let inverse = of("linux", "speedup_over_aggregate") * of("aggregate", "speedup_over_linux");
        assert!((inverse - 1.0).abs() < 1e-9, "{case}");
    }
}

/// Causes make up the cycles, but for those of switches and moves.
fn cycles_add_up(output: &StudyOutput) {
    for row in find(output, "classes").rows() {
        let of = |column: &str| value(output, "classes", &row.key, column);
        let causes: f64 = CAUSES.iter().map(|cause| of(&format!("cpi_{cause}"))).sum();
        let missing = of("cpi") - causes;
        assert!(
            (-1e-9..0.02 * causes).contains(&missing),
            "{}: {missing}",
            row.key
        );
    }
}

fn spread_holds_the_mean(output: &StudyOutput, rows: &[String]) {
    for row in rows {
        let mean = value(output, "policies", row, "makespan_s");
        let spread = |column| value(output, "spread", row, column);
        assert!(spread("makespan_min_s") <= mean && mean <= spread("makespan_max_s"));
        let busiest = value(output, "units", row, "fpu_busiest_percent");
        let idlest = value(output, "units", row, "fpu_idlest_percent");
        let all = value(output, "units", row, "fpu_mean_percent");
        assert!(idlest <= all && all <= busiest && busiest <= 100.0, "{row}");
    }
}

#[test]
fn w3_has_its_keys_and_does_not_depend_on_workers() {
    check_workers("W3");
    check("W3", &["hmmer+povray", "mcf+sphinx3"], &["int", "fp"]);
}

#[test]
fn w4_has_its_keys() {
    let cases = [
        "smt2/h264ref+povray",
        "smt2/gobmk+bwaves",
        "smt4/h264ref+povray",
        "smt4/gobmk+bwaves",
    ];
    check_two_runs("W4", &cases, &["int", "fp"]);
}

#[test]
fn w5_has_its_keys_and_does_not_depend_on_workers() {
    check_workers("W5");
    check("W5", &["suite", "fft+sparse-matmult"], &["all"]);
}

#[test]
fn w6_has_its_keys() {
    let cases = [
        "smt2/suite",
        "smt2/lu+monte-carlo",
        "smt4/suite",
        "smt4/lu+monte-carlo",
    ];
    check_two_runs("W6", &cases, &["all"]);
}

/// With like beside like the floating-point programs' FPUs are the busiest, beside others the
/// use is spread: that is what the policies are for, whatever comes of it.
#[test]
fn the_policies_place_as_they_promise() {
    let output = read("W3");
    for case in ["hmmer+povray", "mcf+sphinx3"] {
        let gap = |policy: &str| {
            let of = |column| value(&output, "units", &format!("{case}/{policy}"), column);
            of("fpu_busiest_percent") - of("fpu_idlest_percent")
        };
        assert!(gap("workover") < gap("linux"), "{case}");
        assert!(gap("linux") < gap("aggregate"), "{case}");
    }
}

/// The time until both classes are done does not fall with the length of one, which decides how
/// long they are together; the length of the class that is done first changes nothing for the last.
#[test]
fn a_longer_class_takes_longer() {
    let output = read("W3");
    let rows = crossed(
        &crossed(&["hmmer+povray", "mcf+sphinx3"], &POLICIES),
        &LENGTHS,
    );
    let mut there: Vec<&str> = { find(&output, "lengths").rows().iter() }
        .map(|row| row.key.as_str())
        .collect();
    there.sort_unstable();
    let mut expected: Vec<&str> = rows.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(there, expected);
    for lengths in rows.chunks(4) {
        let [whole, half, double] =
            [1, 2, 3].map(|i| value(&output, "lengths", &lengths[i], "makespan_s"));
        // Where the other class is last, who is gone earlier changes a little who moves where.
        let times = [half, whole, double];
        assert!(
            half <= 1.005 * whole && whole <= 1.005 * double,
            "{lengths:?} {times:?}"
        );
    }
}

/// The published figures are the gains in time until all have finished.
#[test]
fn the_headline_of_w1_and_w2_has_a_value() {
    for id in ["W1", "W2"] {
        headline::check(id, &output(id, 2));
    }
}
