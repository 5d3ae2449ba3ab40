//! The studies of round robin on asymmetric chips, A1 to A5 and A7 to A9, at the quick scale: keys,
//! the same bytes for any number of workers, and what must hold for any outcome.

use crate::common::output;
use consort_data::{Cell, Figure, HEADLINE, ReportTable};
use consort_lab::StudyOutput;

/// Runs with one and with three workers, which share no result, and gives the output.
fn same_for_any_workers(id: &str) -> StudyOutput {
    let one = output(id, 1);
    let stored = |output: &StudyOutput| serde_json::to_string(output).expect("outputs are JSON");
    let three = output(id, 3);
    assert!(
        stored(&one) == stored(&three),
        "{id} depends on the workers"
    );
    assert_eq!(one.tables[0].key(), HEADLINE);
    let values = one.tables[0].rows().iter();
    let values = values.filter_map(|row| row.cells.first()?.value());
    assert!(values.clone().count() > 0, "{id} has no headline");
    assert!({ values }.all(f64::is_finite), "{id}");
    one
}

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    output
        .tables
        .iter()
        .find(|table| table.key() == key)
        .expect("there is the table")
}

fn value(output: &StudyOutput, table: &str, row: &str, column: &str) -> f64 {
    let cell = find(output, table).cell(row, column);
    let value = cell.and_then(Cell::value);
    value.unwrap_or_else(|| unreachable!("{table}: {row}, {column} has a value"))
}

fn rows(output: &StudyOutput, table: &str) -> Vec<String> {
    let rows = find(output, table).rows().iter();
    rows.map(|row| row.key.clone()).collect()
}

fn columns(output: &StudyOutput, table: &str) -> Vec<String> {
    let columns = find(output, table).columns().iter();
    columns.map(|column| column.key.clone()).collect()
}

fn figures(output: &StudyOutput) -> Vec<&str> {
    output.figures.iter().map(Figure::key).collect()
}

#[test]
fn a1_sorts_programs_by_what_a_large_core_gives_them() {
    let output = same_for_any_workers("A1");
    assert_eq!(figures(&output), ["ratio", "large-stack", "small-stack"]);
    let names = rows(&output, "programs");
    let ratios: Vec<f64> = { names.iter().filter(|name| *name != "all") }
        .map(|name| value(&output, "programs", name, "ratio"))
        .collect();
    assert_eq!(ratios.len(), 8);
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{ratios:?}");
    // Causes are all of the cycles.
    for row in rows(&output, "stacks") {
        let all = columns(&output, "stacks");
        let causes = all.iter().filter(|key| key.starts_with("cpi_"));
        let sum: f64 = causes.map(|key| value(&output, "stacks", &row, key)).sum();
        let whole = value(&output, "stacks", &row, "cpi");
        assert!((sum / whole - 1.0).abs() < 1e-2, "{row}: {sum} of {whole}");
    }
}

#[test]
fn a2_costs_more_between_private_caches() {
    let output = same_for_any_workers("A2");
    assert_eq!(figures(&output), ["programs", "large-cores", "working-set"]);
    for table in ["programs", "large-cores"] {
        for row in rows(&output, table) {
            let of = |column| value(&output, table, &row, column);
            // By as much as progress lost on unlike cores can be off.
            let more = of("private_cycles") - of("shared_cycles");
            assert!(more > -100.0, "{table}: {row}: {more}");
            assert!((0.0..101.0).contains(&of("private_percent")), "{row}");
        }
    }
    // The data is fetched again whole while it fits into the L1D, the L2 or a private L3. What does
    // not fit is worth the less the more of it there is: a curve, whose neighbours are near.
    let costs = |sharing: &str| -> Vec<f64> {
        let sets = rows(&output, "working-set").into_iter();
        sets.map(|kib| value(&output, "working-set", &kib, sharing))
            .collect()
    };
    let (shared, private) = (costs("shared_cycles"), costs("private_cycles"));
    for cycles in [&shared, &private] {
        let near = |pair: &[f64]| pair[0].max(pair[1]) < 15.0 * pair[0].min(pair[1]);
        assert!(cycles.windows(2).all(near), "{cycles:?}");
    }
    let most = |cycles: &[f64]| cycles.iter().copied().fold(0.0, f64::max);
    // 256 KiB, the size of the L2, and 4 MiB, that of an L3 region.
    assert_eq!((most(&shared), most(&private)), (shared[5], private[9]));
}

#[test]
fn a3_closed_form_is_what_hrrs_does() {
    let output = same_for_any_workers("A3");
    assert_eq!(rows(&output, "ratio").len(), 12);
    for row in rows(&output, "ratio") {
        let over = value(&output, "ratio", &row, "ideal_over_hrrs");
        assert!((over - 1.0).abs() < 0.01, "{row}: {over}");
    }
}

#[test]
fn a4_round_robin_gives_every_instance_its_share_of_the_large_core() {
    let output = same_for_any_workers("A4");
    assert_eq!(figures(&output), ["speed", "threads"]);
    for threads in ["4", "8", "16"] {
        let of = |policy: &str, column: &str| {
            value(&output, "threads", &format!("{threads}/{policy}"), column)
        };
        assert_eq!(of("linux-acmp", "speed_over_base"), 1.0);
        assert!(of("hrrs-1ms", "unfairness") < of("linux-acmp", "unfairness"));
    }
    // Threads are all but equal, and moves cost little.
    let of = |column| value(&output, "closed-form", "all", column);
    let (closed, simulated) = (of("closed_form"), of("simulated"));
    assert!(
        (simulated / closed - 1.0).abs() < 0.25,
        "{simulated} {closed}"
    );
}

#[test]
fn a5_parts_of_the_difference_make_the_whole() {
    let output = same_for_any_workers("A5");
    for row in rows(&output, "programs") {
        let of = |column| value(&output, "programs", &row, column);
        let product = of("free_over_ideal") * of("time_over_free");
        assert!(
            (product / of("time_over_ideal") - 1.0).abs() < 1e-9,
            "{row}"
        );
    }
}

#[test]
fn a7_shares_are_shares() {
    let output = same_for_any_workers("A7");
    for table in ["programs", "parallel-programs"] {
        for row in rows(&output, table) {
            let of = |column| value(&output, table, &row, column);
            assert!((10.0..90.0).contains(&of("llc_percent")), "{row}");
            assert!((10.0..90.0).contains(&of("instructions_percent")), "{row}");
            assert!((0.1..10.0).contains(&of("accesses_over_base")), "{row}");
        }
    }
}

#[test]
fn a8_moves_more_often_in_hardware() {
    let output = same_for_any_workers("A8");
    for row in rows(&output, "single") {
        let of = |column| value(&output, "single", &row, column);
        assert!(of("moves_1ms_hz") > of("moves_4ms_hz"), "{row}");
    }
}

#[test]
fn a9_sets_energy_against_the_source_s_linux() {
    let output = same_for_any_workers("A9");
    assert_eq!(figures(&output), ["single", "parallel"]);
    for table in ["single", "parallel"] {
        assert_eq!(
            value(&output, table, "all/linux-acmp", "pdp_over_base"),
            1.0
        );
        let watts = value(&output, table, "all/hrrs-1ms", "power_w");
        assert!((2.0..100.0).contains(&watts), "{watts}");
    }
}
