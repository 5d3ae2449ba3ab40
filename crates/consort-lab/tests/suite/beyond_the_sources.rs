//! X3 and X5 at the quick scale: the keys that reference files name, and what must hold for any
//! outcome.

use crate::common::output;
use consort_data::{Cell, Figure, ReportTable};
use consort_lab::StudyOutput;

/// The conclusions that are put to the test at the quick scale.
const HEADLINES: [&str; 6] = [
    "workover-throughput",
    "workover-fairness",
    "symbiotic-throughput",
    "hrrs-speed",
    "kuths-speed",
    "interleaved-throughput",
];

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    let found = output.tables.iter().find(|table| table.key() == key);
    found.expect("there is the table")
}

fn value(table: &ReportTable, row: &str, column: &str) -> f64 {
    let value = table.cell(row, column).and_then(Cell::value);
    value.unwrap_or_else(|| unreachable!("{}: {row}, {column} has a value", table.key()))
}

fn rows(table: &ReportTable) -> Vec<&str> {
    table.rows().iter().map(|row| row.key.as_str()).collect()
}

fn figures(output: &StudyOutput) -> Vec<&str> {
    output.figures.iter().map(Figure::key).collect()
}

#[test]
fn every_conclusion_has_its_parameters_and_their_swings() {
    let output = output("X3", 2);
    assert_eq!(rows(find(&output, "headlines")), HEADLINES);
    assert_eq!(figures(&output), HEADLINES);
    assert_eq!(output.notes.len(), HEADLINES.len());
    for key in HEADLINES {
        let (all, table) = (find(&output, "headlines"), find(&output, key));
        assert_eq!(value(all, key, "parameters"), table.rows().len() as f64);
        for name in [
            "machine.memory.latency_ns",
            "programs.*.data_mpki",
            "quantum",
        ] {
            assert!(rows(table).contains(&name), "{key}: {name}");
        }
        let swings = rows(table)
            .into_iter()
            .map(|row| value(table, row, "swing"));
        assert!(swings.is_sorted_by(|a, b| a >= b), "{key}");
        // Energy is in none of the measures, so its parameters are the proof that nothing but
        // what is varied makes a difference.
        let energy = rows(table).into_iter().filter(|row| row.ends_with("_nj"));
        assert!(
            energy
                .map(|row| value(table, row, "swing"))
                .all(|swing| swing == 0.0)
        );
        let [low, share, high] = ["joint_low_percent", "joint_percent", "joint_high_percent"]
            .map(|column| value(all, key, column));
        assert!(0.0 <= low && low <= share && share <= high && high <= 100.0);
    }
}

#[test]
fn nothing_is_below_the_worst_placement_by_accident() {
    let output = output("X5", 2);
    let throughput = find(&output, "throughput");
    for ground in ["bulldozer", "power8", "core2", "acmp"] {
        let gap =
            |policy: &str, column: &str| value(throughput, &format!("{ground}/{policy}"), column);
        // No placement is better than the best one, and none worse than the worst.
        assert!(gap("any placement", "gap_least_percent") >= 0.0, "{ground}");
        let worst = gap("worst placement", "gap_mean_percent");
        assert!(
            worst >= gap("any placement", "gap_mean_percent"),
            "{ground}"
        );
        assert!(figures(&output).contains(&format!("throughput-{ground}").as_str()));
    }
    let pairing = find(&output, "pairing");
    for threads in ["4", "6", "8"] {
        let gap = |way: &str| value(pairing, &format!("{threads}/{way}"), "gap_worst_percent");
        // Matching is exact by its own model.
        assert!(gap("own model").abs() < 1e-9, "{threads}");
        assert!(gap("truth") >= -1e-9, "{threads}");
    }
    let fours = find(&output, "fours");
    assert!(value(fours, "12 in fours/search", "gap_least_percent") >= -1e-9);
    // Sharing by time includes all placements.
    let shared = find(&output, "shared");
    assert!(value(shared, "acmp/best placement", "gap_least_percent") > -5.0);
    let mappings = find(&output, "mappings");
    for policy in ["mapping:map=iso", "any mapping", "worst mapping"] {
        let gap = value(
            mappings,
            &format!("core2-pairs/{policy}"),
            "gap_least_percent",
        );
        assert!(gap >= 0.0, "{policy}");
    }
    assert!(rows(mappings).contains(&"core2-pairs/holistic"));
    // Every slot is simulated, so no round is better than the best.
    let coschedules = find(&output, "coschedules");
    for row in rows(coschedules) {
        let least = value(coschedules, row, "gap_least_percent");
        assert!(least >= -1e-9, "{row}");
    }
    for key in [
        "mappings",
        "coschedules-energy-delay",
        "coschedules-throughput",
    ] {
        assert!(figures(&output).contains(&key), "{key}");
    }
}
