//! The studies of symbiotic scheduling, S1 to S8, at the quick scale: the keys that reference files
//! name, the same bytes for any number of workers, and what must hold for any outcome.

use crate::common::output;
use consort_data::{Figure, ReportTable};
use consort_lab::StudyOutput;

const POLICIES: [&str; 6] = [
    "random",
    "linux",
    "l1-bandwidth",
    "symbiotic",
    "oracle",
    "symbiotic-in-node",
];
const STACK: [&str; 5] = [
    "PM_GRP_CMPL",
    "PM_CMPLU_STALL_THRD",
    "PM_CMPLU_STALL",
    "PM_GCT_NOSLOT_CYC",
    "PM_NTCG_ALL_FIN",
];
/// Table and figure that are measured on the host's clock and so are not the same twice.
const HOST_CLOCK: &str = "host-clock";

/// Returns the output as it is stored, without the parts that the host's clock had a part in.
fn bytes(mut output: StudyOutput) -> String {
    output.tables.retain(|table| table.key() != HOST_CLOCK);
    output.figures.retain(|figure| figure.key() != HOST_CLOCK);
    serde_json::to_string(&output).expect("outputs are JSON")
}

/// Runs with one and with three workers, which share no result, and gives the output.
fn same_for_any_workers(id: &str) -> StudyOutput {
    let one = output(id, 1);
    let stored = bytes(one.clone());
    assert!(
        stored == bytes(output(id, 3)),
        "{id} depends on the number of workers"
    );
    one
}

fn find<'a>(output: &'a StudyOutput, key: &str) -> &'a ReportTable {
    let found = output.tables.iter().find(|table| table.key() == key);
    found.expect("there is the table")
}

fn value(output: &StudyOutput, table: &str, row: &str, column: &str) -> f64 {
    let cell = find(output, table).cell(row, column);
    let value = cell.and_then(consort_data::Cell::value);
    value.unwrap_or_else(|| unreachable!("{table}: {row}, {column} has a value"))
}

fn row_keys(output: &StudyOutput, table: &str) -> Vec<String> {
    let rows = find(output, table).rows().iter();
    rows.map(|row| row.key.clone()).collect()
}

fn column_keys(output: &StudyOutput, table: &str) -> Vec<String> {
    let columns = find(output, table).columns().iter();
    columns.map(|column| column.key.clone()).collect()
}

fn figure_keys(output: &StudyOutput) -> Vec<&str> {
    output.figures.iter().map(Figure::key).collect()
}

/// Rows `GROUP/POLICY`.
fn by_policy(groups: &[&str]) -> Vec<String> {
    let rows = groups
        .iter()
        .map(|group| POLICIES.map(|policy| format!("{group}/{policy}")));
    rows.flatten().collect()
}

#[test]
fn s1_has_fitted_and_published_parameters_apart() {
    let output = same_for_any_workers("S1");
    assert_eq!(row_keys(&output, "parameters"), STACK);
    let columns = ["alpha", "beta", "gamma", "delta", "r2"];
    assert_eq!(column_keys(&output, "parameters"), columns);
    assert_eq!(column_keys(&output, "published"), columns[..4]);
    let published = ["base", "fixed point", "floating point", "data cache miss"];
    assert_eq!(row_keys(&output, "published"), published);
    assert_eq!(value(&output, "published", "base", "beta"), 1.698);
    assert_eq!(figure_keys(&output), ["parameters", "causes", "published"]);
    assert_eq!(row_keys(&output, "counterparts"), published);
    for row in published {
        let r2 = value(&output, "counterparts", row, "r2");
        assert!((0.0..=1.0).contains(&r2), "{row}: {r2}");
    }
    for row in ["PM_GRP_CMPL", "PM_CMPLU_STALL", "PM_GCT_NOSLOT_CYC"] {
        let r2 = value(&output, "parameters", row, "r2");
        assert!((0.0..=1.0).contains(&r2), "{row}: {r2}");
    }
}

fn histogram_is_whole(output: &StudyOutput) {
    for column in ["trained_percent", "held_out_percent"] {
        let bins = row_keys(output, "histogram");
        let sum: f64 = bins
            .iter()
            .map(|bin| value(output, "histogram", bin, column))
            .sum();
        assert!((sum - 100.0).abs() < 1e-6, "{column}: {sum}");
    }
    for row in ["trained", "held-out"] {
        let of = |column| value(output, "errors", row, column);
        assert!(of("mean_abs_percent") <= of("p95_percent"), "{row}");
    }
    assert_eq!(figure_keys(output), ["histogram"]);
}

/// Groups are of up to eight instructions alone and of up to four beside a co-runner, so a thread
/// completes twice as many of them, whatever else happens.
#[test]
fn s1_has_twice_as_many_groups_beside_a_co_runner() {
    let output = output("S1", 2);
    let beta = value(&output, "counterparts", "base", "beta");
    assert!((beta - 2.0).abs() < 0.2, "{beta}");
}

#[test]
fn the_headline_of_every_study_comes_first_and_has_a_value() {
    for id in ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"] {
        let output = output(id, 2);
        let headline = &output.tables[0];
        assert_eq!(headline.key(), "headline", "{id}");
        let rows = headline.rows().iter();
        let values = rows.filter_map(|row| headline.cell(&row.key, "value")?.value());
        assert!(values.into_iter().any(f64::is_finite), "{id}");
    }
}

#[test]
fn s2_bins_every_forward_error() {
    let output = same_for_any_workers("S2");
    histogram_is_whole(&output);
    let bins = row_keys(&output, "histogram");
    assert_eq!((bins.len(), bins[0].as_str()), (32, "below -30"));
    assert_eq!(row_keys(&output, "programs").len(), 8);
}

#[test]
fn s3_bins_every_inverse_error() {
    let output = same_for_any_workers("S3");
    histogram_is_whole(&output);
    let bins = row_keys(&output, "histogram");
    assert_eq!((bins.len(), bins[0].as_str()), (16, "0..2"));
    assert_eq!(row_keys(&output, "components"), STACK);
    let alone: f64 = STACK
        .iter()
        .map(|row| value(&output, "components", row, "alone_percent"))
        .sum();
    assert!((alone - 100.0).abs() < 1e-6, "{alone}");
}

#[test]
fn s4_sets_every_policy_against_random() {
    let output = same_for_any_workers("S4");
    assert_eq!(output.runs, 3);
    assert_eq!(row_keys(&output, "cores"), by_policy(&["4", "5", "all"]));
    let mixes = ["4/01", "4/02", "5/01", "5/02"];
    assert_eq!(row_keys(&output, "workloads"), by_policy(&mixes));
    assert_eq!(row_keys(&output, "programs"), mixes);
    let mut even = row_keys(&output, "evenly-placed");
    even.retain(|row| !row.ends_with("/oracle-in-node"));
    assert_eq!(even, by_policy(&["4", "5", "all"]));
    let longer = [
        "4/01/linux",
        "4/01/symbiotic",
        "5/01/linux",
        "5/01/symbiotic",
    ];
    assert_eq!(row_keys(&output, "time-alone"), longer);
    assert_eq!(
        figure_keys(&output),
        ["cores", "workloads-4", "workloads-5"]
    );
    let over_random = |row: &str| value(&output, "cores", row, "stp_over_random");
    assert!((over_random("all/random") - 1.0).abs() < 1e-12);
    // Twice as many programs as cores, and no core does more than twice the work of one thread.
    for row in row_keys(&output, "workloads") {
        let stp = value(&output, "workloads", &row, "stp");
        let cores: f64 = if row.starts_with('4') { 4.0 } else { 5.0 };
        assert!(stp > cores * 0.8 && stp < 2.0 * cores, "{row}: {stp}");
    }
}

/// Causes of cycles, switches and moves among them, are all of the cycles.
#[test]
fn s4_cycles_add_up() {
    let output = output("S4", 2);
    let columns = column_keys(&output, "causes");
    for row in row_keys(&output, "causes") {
        let of = |column: &str| value(&output, "causes", &row, column);
        let causes = columns.iter().filter(|column| column.starts_with("cpi_"));
        let sum: f64 = causes.map(|column| of(column)).sum();
        assert!((sum / of("cpi") - 1.0).abs() < 1e-9, "{row}");
        assert!(of("cpi_moves") >= -1e-9, "{row}");
    }
}

#[test]
fn s5_stands_on_the_runs_of_s4() {
    let output = same_for_any_workers("S5");
    assert_eq!(row_keys(&output, "cores"), by_policy(&["4", "5", "all"]));
    assert_eq!(column_keys(&output, "programs"), POLICIES);
    assert_eq!(row_keys(&output, "programs").len(), 21);
    for row in row_keys(&output, "cores") {
        assert!(value(&output, "cores", &row, "unfairness") >= 1.0, "{row}");
    }
}

#[test]
fn s6_charges_decisions_and_never_gains_by_it() {
    let output = same_for_any_workers("S6");
    // The oracle's time is the simulation's own.
    let mut policies = by_policy(&["4", "5", "all"]);
    policies.retain(|row| !row.ends_with("/oracle"));
    assert_eq!(row_keys(&output, "limits"), policies);
    assert_eq!(row_keys(&output, HOST_CLOCK), policies);
    for row in row_keys(&output, "limits") {
        let of = |column| value(&output, "limits", &row, column);
        let (free, charged) = (of("stp_over_linux"), of("stp_over_linux_at_1000_us"));
        let expect = if row.ends_with("/linux") { 1.0 } else { 0.99 };
        assert!((charged / free - expect).abs() < 1e-9, "{row}");
        let measured = value(&output, HOST_CLOCK, &row, "stp_over_linux_included");
        assert!(measured <= free + 1e-12, "{row}");
    }
}

#[test]
fn s7_shows_who_was_beside_whom() {
    let output = same_for_any_workers("S7");
    assert_eq!(row_keys(&output, "summary"), ["stable", "changing"]);
    let share = |row: &str| value(&output, "workloads", row, "oracle_top_share_percent");
    let rows = row_keys(&output, "workloads");
    let chosen = |name: &str| {
        let is = |row: &&String| {
            let cell = find(&output, "workloads").cell(row, "chosen_as");
            cell.is_some_and(|cell| cell.text() == name)
        };
        share(rows.iter().find(is).expect("one is chosen"))
    };
    let [stable, changing] = ["stable", "changing"].map(chosen);
    assert!(
        rows.iter()
            .all(|row| (changing..=stable).contains(&share(row)))
    );
    for key in ["stable", "changing"] {
        assert_eq!(row_keys(&output, key).len(), 10);
        for row in row_keys(&output, key) {
            let columns = column_keys(&output, key);
            let sum: f64 = columns
                .iter()
                .map(|column| value(&output, key, &row, column))
                .sum();
            assert!((sum - 100.0).abs() < 1e-6, "{key} {row}: {sum}");
        }
    }
    assert_eq!(figure_keys(&output), ["stable", "changing"]);
}

#[test]
fn s8_sets_learning_on_two_machines_against_the_others() {
    let output = same_for_any_workers("S8");
    assert_eq!(figure_keys(&output), ["policies", "learnt"]);
    let rows = row_keys(&output, "policies");
    assert_eq!(rows.len(), 2 * 2 * 8);
    for machine in ["all-nodes", "one-node"] {
        let of = |policy: &str, column: &str| {
            value(
                &output,
                "policies",
                &format!("{machine}/all/{policy}"),
                column,
            )
        };
        assert!(rows.contains(&format!("{machine}/4/core-asymmetry")));
        assert!(rows.contains(&format!("{machine}/4/first-half")));
        assert!(rows.contains(&format!("{machine}/4/first-half-inside")));
        assert_eq!(of("linux", "stp_over_linux"), 1.0);
        assert_eq!(of("linux", "alone_percent"), 0.0);
        assert!(of("core-asymmetry", "alone_percent") > of("symbiotic", "alone_percent"));
    }
    // Where threads stay is where their memory is, if there is any.
    let away = |row: &str| value(&output, "policies", row, "away_percent");
    assert_eq!(away("all-nodes/all/linux"), 0.0);
    assert!((away("one-node/all/linux") - 50.0).abs() < 5.0);
    let disadvantages = row_keys(&output, "learnt");
    assert_eq!(disadvantages.len(), 2 * 4);
    let sum = |machine: &str| -> f64 {
        let own = disadvantages.iter().filter(|row| row.starts_with(machine));
        own.map(|row| value(&output, "learnt", row, "disadvantage"))
            .sum()
    };
    assert!(sum("all-nodes").abs() < 1e-9 && sum("one-node").abs() < 1e-9);
}
