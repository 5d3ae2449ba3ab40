//! The studies of asymmetric chips that stand on SPLASH-2 and on drawn mixes (A6, A10 to A15), at
//! the quick scale: the keys that reference files name, the same bytes for any number of workers,
//! and what must hold for any outcome.

use crate::common::output;
use consort_data::{Cell, Figure, HEADLINE, ReportTable};
use consort_lab::StudyOutput;

/// Every third of the thirteen programs.
const PROGRAMS: [&str; 4] = ["barnes", "lu.cont", "ocean.ncont", "raytrace"];
const LAGGING: &str = "tcs:long-term=lagging";
const CRITICAL: &str = "tcs:long-term=critical";
const LAGGING_AT_END: &str = "tcs:immediate=false,long-term=lagging";
const AT_END: &str = "tcs:immediate=false";

/// Runs with one and with three workers, which share no result, and gives the output.
fn same_for_any_workers(id: &str) -> StudyOutput {
    let bytes = |output: &StudyOutput| serde_json::to_string(output).expect("outputs are JSON");
    let one = output(id, 1);
    assert!(
        bytes(&one) == bytes(&output(id, 3)),
        "{id} depends on the number of workers"
    );
    assert_eq!(one.tables[0].key(), HEADLINE);
    let values = one.tables[0].rows().iter();
    let values = values.filter_map(|row| row.cells.first()?.value());
    assert!(values.clone().count() > 0, "{id} has no headline");
    assert!({ values }.all(f64::is_finite), "{id}");
    one
}

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    let found = output.tables.iter().find(|table| table.key() == key);
    found.expect("there is the table")
}

fn value(output: &StudyOutput, table: &str, row: &str, column: &str) -> f64 {
    let value = find(output, table).cell(row, column).and_then(Cell::value);
    value.unwrap_or_else(|| unreachable!("{table}: {row}, {column} has a value"))
}

fn rows(output: &StudyOutput, table: &str) -> Vec<String> {
    let rows = find(output, table).rows().iter();
    rows.map(|row| row.key.clone()).collect()
}

fn figures(output: &StudyOutput) -> Vec<&str> {
    output.figures.iter().map(Figure::key).collect()
}

/// Rows `GROUP/POLICY`.
fn by_policy(groups: &[&str], policies: &[&str]) -> Vec<String> {
    let mut rows = Vec::new();
    for group in groups {
        rows.extend(policies.iter().map(|policy| format!("{group}/{policy}")));
    }
    rows
}

/// Every policy against the base: the base is as fast as itself, and time is whole.
fn is_sound(output: &StudyOutput, table: &str, base: &str) {
    for row in rows(output, table) {
        let of = |column| value(output, table, &row, column);
        if row.ends_with(&format!("/{base}")) {
            assert!((of("stp_over_base") - 1.0).abs() < 1e-12, "{row}");
        }
        let spent = of("waits_percent") + of("switch_percent");
        assert!((0.0..100.0).contains(&spent), "{row}: {spent}");
        assert!((0.0..=100.0).contains(&of("large_percent")), "{row}");
    }
}

const HARDWARE: [&str; 6] = [
    "linux-acmp",
    "linux",
    "hrrs:form=hardware",
    "fair-progress:form=hardware",
    "fair-progress:form=software",
    "kuths:form=hardware",
];

#[test]
fn a6_sets_round_robin_and_fair_progress_against_the_source_s_linux() {
    let output = same_for_any_workers("A6");
    let programs = [&PROGRAMS[..], &["all"]].concat();
    assert_eq!(
        rows(&output, "programs"),
        by_policy(&programs, &HARDWARE[..5])
    );
    assert_eq!(
        rows(&output, "threads"),
        by_policy(&["4", "8", "16"], &HARDWARE[..5])
    );
    assert_eq!(figures(&output), ["programs", "threads"]);
    is_sound(&output, "programs", "linux-acmp");
}

#[test]
fn a10_tells_where_threads_go_on_after_the_kernel() {
    let output = same_for_any_workers("A10");
    let programs = [&PROGRAMS[..], &["all"]].concat();
    assert_eq!(rows(&output, "single"), by_policy(&programs, &HARDWARE));
    assert_eq!(rows(&output, "pairs").len(), 4 * HARDWARE.len());
    let all = [&programs[..], &["pairs"]].concat();
    assert_eq!(rows(&output, "returns"), by_policy(&all, &HARDWARE));
    for row in rows(&output, "returns") {
        let of = |column| value(&output, "returns", &row, column);
        assert!(
            of("large_at_once_percent") <= of("large_soon_percent"),
            "{row}"
        );
        let time = of("user_percent") + of("kernel_percent") + of("off_percent");
        assert!((time - 100.0).abs() < 1e-6, "{row}: {time}");
        assert!(of("returns_per_ms") > 0.0, "{row}");
    }
    let keys = ["single", "energy", "pairs", "continue", "user"];
    assert_eq!(figures(&output), keys);
}

#[test]
fn a11_keeps_threads_in_their_groups() {
    let output = same_for_any_workers("A11");
    let policies = ["linux-acmp", "linux", "none on linux-grouped", "kuths"];
    assert_eq!(rows(&output, "cores"), by_policy(&["8", "16"], &policies));
    assert_eq!(
        rows(&output, "programs").len(),
        2 * PROGRAMS.len() * policies.len()
    );
    assert_eq!(figures(&output), ["cores", "programs-8", "programs-16"]);
    is_sound(&output, "programs", "linux-acmp");
}

/// Asserts what holds for the mixes of either study.
fn mixes_are_sound(output: &StudyOutput, mixes: usize, size: usize) {
    let keys = rows(output, "mixes");
    assert_eq!((keys.len(), keys[mixes].as_str()), (mixes + 1, "all"));
    for key in &keys[..mixes] {
        assert_eq!(key.split('+').count(), size, "{key}");
    }
    assert_eq!(value(output, "policies", "pinned", "stp_over_pinned"), 1.0);
    for policy in rows(output, "policies") {
        // Nobody is faster than alone on the large core, but for one program there.
        let stp = value(output, "policies", &policy, "stp");
        assert!(stp > 1.0 && stp < size as f64, "{policy}: {stp}");
    }
    for program in rows(output, "programs") {
        let of = |column| value(output, "programs", &program, column);
        assert!(of("large_over_small") > 1.0, "{program}");
        assert!(of("slowdown_0") > 0.9, "{program}");
    }
}

#[test]
fn a12_sets_both_readings_of_tcs_and_hrrs_against_pinned() {
    let output = same_for_any_workers("A12");
    let fair = ["fair-progress:form=hardware", "fair-progress:form=software"];
    let tcs = [LAGGING, CRITICAL, LAGGING_AT_END, AT_END];
    let policies = [&["pinned", "hrrs", fair[0], fair[1]][..], &tcs].concat();
    assert_eq!(rows(&output, "policies"), policies);
    mixes_are_sound(&output, 6, 4);
    assert_eq!(figures(&output), ["sorted"]);
}

#[test]
fn a13_averages_the_rivals() {
    let output = same_for_any_workers("A13");
    let policies = [
        "pinned",
        "random every 4 ms",
        "mem-dominance",
        "mlp-ratio",
        "pie",
        "hrrs",
        LAGGING,
        CRITICAL,
        LAGGING_AT_END,
        AT_END,
    ];
    assert_eq!(rows(&output, "policies"), policies);
    mixes_are_sound(&output, 8, 2);
    assert_eq!(figures(&output), ["sorted", "averages"]);
}

#[test]
fn a14_says_which_reading_of_tcs_does_better() {
    let output = same_for_any_workers("A14");
    let tcs = [LAGGING, CRITICAL, LAGGING_AT_END, AT_END];
    let policies = [&["pinned", "kuths", "criticality"][..], &tcs].concat();
    let programs = [&PROGRAMS[..], &["all"]].concat();
    assert_eq!(rows(&output, "programs"), by_policy(&programs, &policies));
    for table in ["readings", "timings"] {
        assert_eq!(rows(&output, table), ["A12", "A13", "A14", "all"]);
    }
    let of = |row: &str, column: &str| value(&output, "readings", row, column);
    let studies = ["A12", "A13", "A14"].map(|study| of(study, "workloads"));
    assert_eq!(studies, [6.0, 8.0, 8.0]);
    assert_eq!(of("all", "workloads"), 22.0);
    for row in rows(&output, "readings") {
        let either = of(&row, "lagging_better") + of(&row, "critical_better");
        assert!(either <= of(&row, "workloads"), "{row}");
    }
    assert_eq!(figures(&output), ["programs"]);
    is_sound(&output, "programs", "pinned");
}

#[test]
fn a15_counters_and_integers_change_little() {
    let output = same_for_any_workers("A15");
    let headline = output.tables[0].rows();
    assert_eq!(headline.len(), 24);
    for row in headline {
        let change = row.cells.first().and_then(Cell::value);
        let change = change.unwrap_or_else(|| unreachable!("{} has a value", row.key));
        println!("{}: {change}", row.key);
        assert!(change.abs() < 1.0, "{}: {change} percent", row.key);
    }
}
