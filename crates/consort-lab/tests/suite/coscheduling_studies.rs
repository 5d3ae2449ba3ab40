//! The studies of co-scheduling, H1 to H6, at the quick scale: the keys that reference files name,
//! the same bytes for any number of workers, and what must hold for any outcome.

use crate::common::{headline, output};
use consort_data::{Cell, ReportTable};
use consort_lab::StudyOutput;

const POLICIES: [&str; 7] = [
    "fair-mis",
    "fair-com",
    "greedy",
    "pdpa",
    "oracle-coschedule",
    "oracle-coschedule:members=all",
    "oracle-coschedule:members=all,objective=throughput",
];

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    let found = output.tables.iter().find(|table| table.key() == key);
    found.expect("there is the table")
}

fn value(table: &ReportTable, row: &str, column: &str) -> f64 {
    let value = table.cell(row, column).and_then(Cell::value);
    value.unwrap_or_else(|| unreachable!("{row}, {column} has a value"))
}

fn rows(table: &ReportTable) -> Vec<&str> {
    table.rows().iter().map(|row| row.key.as_str()).collect()
}

#[test]
fn h1_gives_the_same_for_any_number_of_workers_and_names_every_program() {
    let one = output("H1", 1);
    let json = |output: &StudyOutput| serde_json::to_string(output).expect("outputs are JSON");
    assert!(json(&one) == json(&output("H1", 3)));
    let programs = find(&one, "programs");
    assert_eq!(programs.rows().len(), 12);
    for row in rows(programs) {
        let share = |column| value(programs, row, column);
        assert!((0.0..=1.0).contains(&share("miss_rate")));
        assert!((0.0..=1.0).contains(&(share("bus_occupancy") + share("bus_queue"))));
        assert!((1.0..8.05).contains(&share("speedup")));
    }
    let agreement = [
        "miss-rates",
        "bus-ranks",
        "best-threads",
        "best-by-cores",
        "best-charged",
        "near-linear",
    ];
    assert_eq!(rows(find(&one, "agreement")), agreement);
}

#[test]
fn the_first_table_of_every_study_is_the_headline() {
    for id in ["H1", "H2", "H3", "H4", "H5", "H6"] {
        headline::check(id, &output(id, 2));
    }
}

#[test]
fn h2_to_h6_tell_of_the_same_rounds() {
    let [h2, h3, h4, h5, h6] = ["H2", "H3", "H4", "H5", "H6"].map(|id| output(id, 2));
    let (policies, speedup) = (find(&h2, "policies"), find(&h4, "speedup"));
    let reduction = find(&h6, "reduction");
    assert_eq!(rows(policies), rows(speedup));
    assert_eq!(rows(policies), rows(reduction));
    assert_eq!(rows(find(&h4, "runs")), POLICIES);
    assert_eq!(find(&h5, "power").rows().len(), 12);
    for (table, column) in [(speedup, "suite"), (policies, "overall")] {
        assert!((value(table, "gang", column) - 1.0).abs() < 1e-12);
    }
    for policy in POLICIES {
        // What is not given up: the reduction is what the round was found to be worth.
        if value(policies, policy, "reverted") == 0.0 {
            let overall = value(policies, policy, "overall");
            assert!((1.0 - overall - value(reduction, policy, "ed_suite")).abs() < 1e-9);
        }
        let best = value(policies, "oracle-coschedule:members=all", "overall");
        assert!(
            best <= 1.05 * value(policies, policy, "overall"),
            "{policy}"
        );
    }
    // Only who shares has a row.
    let sharing = |policy| value(policies, policy, "sharing") as usize;
    let of = |policy: &str| {
        let prefix = format!("{policy}/");
        let keys = rows(find(&h3, "threads")).into_iter();
        keys.filter(|key| key.starts_with(&prefix)).count()
    };
    assert!(POLICIES.iter().all(|policy| of(policy) >= sharing(policy)));
    assert_eq!(of("oracle-coschedule"), sharing("oracle-coschedule"));
}
