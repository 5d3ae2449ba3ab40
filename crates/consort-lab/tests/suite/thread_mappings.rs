//! The studies of thread mappings, M1 to M15, at the quick scale: the keys that reference files
//! name, the same bytes for any number of workers, and what must hold for any outcome.

use crate::common::{headline, output};
use consort_data::{Cell, Figure, ReportTable};
use consort_lab::StudyOutput;

const PROGRAMS: [&str; 9] = [
    "canneal",
    "facesim",
    "fluidanimate",
    "streamcluster",
    "x264",
    "blackscholes",
    "bodytrack",
    "swaptions",
    "vips",
];
const PAIRS: [&str; 7] = [
    "canneal+fluidanimate",
    "facesim+streamcluster",
    "streamcluster+x264",
    "streamcluster+blackscholes",
    "streamcluster+bodytrack",
    "streamcluster+swaptions",
    "bodytrack+vips",
];
const MAPPINGS: [&str; 4] = ["os", "iso", "int", "spr"];

/// Runs with one and with three workers, which share no result, and gives the output.
fn same_for_any_workers(id: &str) -> StudyOutput {
    let one = output(id, 1);
    assert_eq!(one, output(id, 3), "{id} depends on the number of workers");
    assert!(!one.notes.is_empty() && one.runs == 1, "{id}");
    headline::check(id, &one);
    one
}

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    let found = output.tables.iter().find(|table| table.key() == key);
    found.expect("there is the table")
}

fn value(output: &StudyOutput, table: &str, row: &str, column: &str) -> f64 {
    let cell = find(output, table).cell(row, column);
    let value = cell.and_then(Cell::value);
    value.unwrap_or_else(|| unreachable!("{table}: {row}, {column} has a value"))
}

fn text(output: &StudyOutput, table: &str, row: &str, column: &str) -> String {
    let cell = find(output, table).cell(row, column);
    cell.map(Cell::text).expect("there is the cell")
}

fn row_keys(output: &StudyOutput, table: &str) -> Vec<String> {
    let rows = find(output, table).rows().iter();
    rows.map(|row| row.key.clone()).collect()
}

fn figure_keys(output: &StudyOutput) -> Vec<&str> {
    output.figures.iter().map(Figure::key).collect()
}

/// Rows `PROGRAM/MAPPING`.
fn under(programs: &[&str], mappings: &[&str]) -> Vec<String> {
    let rows = programs
        .iter()
        .flat_map(|program| mappings.iter().map(move |m| format!("{program}/{m}")));
    rows.collect()
}

#[test]
fn m1_and_m4_have_every_program_alone_and_under_every_mapping() {
    let with_alone = ["alone", "os", "iso", "int", "spr"];
    for (id, column) in [("M1", "l1d_mpki"), ("M4", "utilisation_percent")] {
        let output = same_for_any_workers(id);
        assert_eq!(row_keys(&output, "programs"), under(&PROGRAMS, &with_alone));
        assert_eq!(row_keys(&output, "variation"), PROGRAMS);
        assert_eq!(figure_keys(&output), ["programs"]);
        for row in under(&PROGRAMS, &MAPPINGS) {
            let of = |column| value(&output, "programs", &row, column);
            assert!(of("least") <= of(column) + 1e-9 && of(column) <= of("most") + 1e-9);
        }
        assert_eq!(
            value(&output, "programs", "streamcluster/os", "co_runners"),
            5.0
        );
    }
}

#[test]
fn pairs_have_a_row_for_each_program_and_mapping_and_parts_sum_to_the_change() {
    let studies: [(&str, [&str; 2], &[&str]); 5] = [
        ("M2", ["streamcluster", "x264"], &["os", "int", "spr"]),
        ("M3", ["streamcluster", "swaptions"], &MAPPINGS),
        ("M5", ["facesim", "streamcluster"], &MAPPINGS),
        (
            "M10",
            ["streamcluster", "blackscholes"],
            &["os", "iso", "int"],
        ),
        ("M12", ["streamcluster", "bodytrack"], &MAPPINGS),
    ];
    for (id, pair, mappings) in studies {
        let output = same_for_any_workers(id);
        assert_eq!(row_keys(&output, "pair"), under(&pair, mappings));
        let base = format!("{}/os", pair[0]);
        assert_eq!(value(&output, "pair", &base, "speed_over_os"), 1.0);
        if id != "M3" {
            pair.into_iter()
                .for_each(|program| parts_sum(&output, program));
        }
    }
}

fn parts_sum(output: &StudyOutput, program: &str) {
    let of = |column| value(output, "attribution", program, column);
    let parts = [
        "l1d",
        "l1i",
        "l2",
        "memory-path",
        "branch-predictor",
        "tlb",
        "other",
    ];
    let sum: f64 = parts.into_iter().map(of).sum();
    assert!((sum - of("cycles")).abs() < 1e-6, "{program}: {sum}");
}

#[test]
fn m6_judges_what_is_counted_and_nothing_else() {
    let output = same_for_any_workers("M6");
    let keys = row_keys(&output, "key-resources");
    assert_eq!(keys.len(), 9);
    for key in keys {
        let judged = text(&output, "key-resources", &key, "matters");
        let counted = key != "disambiguation";
        assert_eq!(["yes", "no"].contains(&judged.as_str()), counted, "{key}");
    }
    assert!(
        output
            .notes
            .iter()
            .any(|note| note.contains("invalidations"))
    );
}

#[test]
fn m7_bounds_every_program_and_m11_correlates_it() {
    let output = same_for_any_workers("M7");
    assert_eq!(row_keys(&output, "ranges"), PROGRAMS);
    assert_eq!(row_keys(&output, "alone"), PROGRAMS);
    assert_eq!(
        figure_keys(&output),
        ["prefetched", "transactions", "latency"]
    );
    for program in PROGRAMS {
        let of = |column| value(&output, "ranges", program, column);
        assert!(
            of("transactions-min") <= of("transactions-max"),
            "{program}"
        );
    }
    let output = same_for_any_workers("M11");
    assert_eq!(row_keys(&output, "correlation"), PROGRAMS);
    for row in find(&output, "correlation").rows() {
        let known = row.cells[0]
            .value()
            .is_none_or(|r| (-1.0..=1.0).contains(&r));
        assert!(known, "{}", row.key);
    }
}

#[test]
fn m8_divides_the_transactions_and_m9_the_time() {
    let output = same_for_any_workers("M8");
    let rows = ["alone", "os", "iso", "int", "spr"];
    assert_eq!(
        row_keys(&output, "transactions"),
        under(&["canneal", "fluidanimate"], &rows)
    );
    for row in row_keys(&output, "transactions") {
        let of = |column| value(&output, "transactions", &row, column);
        let sum: f64 = ["reads", "prefetched", "fetches", "writebacks"]
            .into_iter()
            .map(of)
            .sum();
        assert!((sum - of("transactions")).abs() < 1e-9, "{row}");
    }
    let output = same_for_any_workers("M9");
    assert_eq!(row_keys(&output, "times").len(), 4 * 2 * 4);
    assert_eq!(output.figures.len(), 4);
    for row in find(&output, "times").rows() {
        let shares = row.cells[..6].iter().filter_map(Cell::value);
        assert!((shares.sum::<f64>() - 100.0).abs() < 1e-6, "{}", row.key);
    }
}

#[test]
fn m13_names_a_resource_for_every_pair_that_was_run() {
    let output = same_for_any_workers("M13");
    assert_eq!(row_keys(&output, "importance"), PROGRAMS);
    assert_eq!(row_keys(&output, "shares").len(), 2 * PAIRS.len());
    let cells = find(&output, "counts")
        .rows()
        .iter()
        .filter_map(|row| row.cells[0].value());
    // A cell may name several.
    assert!(cells.sum::<f64>() >= 2.0 * PAIRS.len() as f64);
    for row in row_keys(&output, "shares") {
        assert!(
            value(&output, "shares", &row, "slower_percent") >= 0.0,
            "{row}"
        );
    }
}

#[test]
fn m14_chooses_for_every_pair_and_on_one_seed_nothing_beats_the_best() {
    let output = same_for_any_workers("M14");
    assert_eq!(row_keys(&output, "summary"), ["all", "intensive"]);
    assert_eq!(row_keys(&output, "pairs"), PAIRS);
    assert_eq!(figure_keys(&output), ["gains", "choosers"]);
    for pair in PAIRS {
        let of = |column| value(&output, "pairs", pair, column);
        for other in ["iso", "int", "spr", "memory_gain", "all_gain"] {
            assert!(of(other) <= of("best_gain") + 1e-9, "{pair}: {other}");
        }
        assert!(of("best_gain") >= 0.0, "{pair}");
    }
}

#[test]
fn m15_sets_the_policy_against_the_best_static_mapping() {
    let output = same_for_any_workers("M15");
    assert_eq!(row_keys(&output, "pairs"), PAIRS);
    for pair in PAIRS {
        for column in ["holistic", "best", "over_best"] {
            assert!(value(&output, "pairs", pair, column).is_finite(), "{pair}");
        }
    }
    assert_eq!(figure_keys(&output), ["holistic"]);
}
