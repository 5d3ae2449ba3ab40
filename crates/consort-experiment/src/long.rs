//! Runs as tables for files and data frames: [`long_table`] in the long format, and
//! [`comparison_table`], [`runs_table`] and [`programs_table`] with a column for each measure.

use crate::{ContenderRow, MeanEstimate, PolicyComparison, ProgramResult, RunResult};
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};

struct MeasureColumn<T> {
    /// Key, which ends in the unit if there is one.
    key: &'static str,
    unit: Option<&'static str>,
    value: fn(&T) -> f64,
}

const fn measure<T>(
    key: &'static str,
    unit: Option<&'static str>,
    value: fn(&T) -> f64,
) -> MeasureColumn<T> {
    MeasureColumn { key, unit, value }
}

const OF_RUN: [MeasureColumn<RunResult>; 8] = [
    measure("stp", None, |r| r.stp),
    measure("antt", None, |r| r.antt),
    measure("unfairness", None, |r| r.unfairness),
    measure("makespan_s", Some("s"), |r| r.makespan_s),
    measure("energy_j", Some("J"), |r| r.energy_j),
    measure("ed", Some("J s"), |r| r.ed),
    measure("moves", None, |r| r.moves as f64),
    measure("migrations", None, |r| r.migrations as f64),
];

const OF_PROGRAM: [MeasureColumn<ProgramResult>; 6] = [
    measure("alone_s", Some("s"), |p| p.alone_s),
    measure("together_s", Some("s"), |p| p.together_s),
    measure("slowdown", None, |p| p.slowdown),
    measure("instructions", None, |p| p.instructions),
    measure("ipc", None, |p| p.ipc),
    measure("energy_j", Some("J"), |p| p.energy_j),
];

/// A case's name in the long format.
pub fn case_name(workload: &str, machine: &str) -> String {
    format!("{workload} on {machine}")
}

/// The long table of runs of one case.
pub fn long_table<'a>(case: &str, runs: impl IntoIterator<Item = &'a RunResult>) -> Table {
    let mut rows = LongRows::default();
    for run in runs {
        let whole = RowOwner {
            case,
            policy: Some(&run.policy),
            seed: Some(run.seed),
            program: None,
        };
        for m in &OF_RUN {
            rows.push(whole, m.key, (m.value)(run), m.unit);
        }
        for program in &run.programs {
            let of = RowOwner {
                program: Some(&program.name),
                ..whole
            };
            for m in &OF_PROGRAM {
                rows.push(of, m.key, (m.value)(program), m.unit);
            }
        }
    }
    rows.table()
}

/// Key, unit and value of a measure of a comparison.
type RowMeasure = (
    &'static str,
    Option<&'static str>,
    fn(&ContenderRow) -> MeanEstimate,
);

const OF_ROW: [RowMeasure; 9] = [
    ("stp", None, |r| r.stp),
    ("speedup", None, |r| r.speedup),
    ("antt", None, |r| r.antt),
    ("unfairness", None, |r| r.unfairness),
    ("makespan_s", Some("s"), |r| r.makespan_s),
    ("turnaround_s", Some("s"), |r| r.turnaround_s),
    ("energy_j", Some("J"), |r| r.energy_j),
    ("ed", Some("J s"), |r| r.ed),
    ("moves", None, |r| r.moves),
];

/// A comparison: a row for each policy, means and half widths of 95 percent intervals.
pub fn comparison_table(comparison: &PolicyComparison) -> Table {
    let rows = &comparison.results;
    let policies = rows.iter().map(|row| Some(row.policy.clone()));
    let table = Table::default().with_text("policy", policies);
    OF_ROW.iter().fold(table, |table, (key, unit, measure)| {
        let means = rows.iter().map(|row| Some(measure(row).mean));
        let halves = rows.iter().map(|row| measure(row).ci95);
        table
            .with_numbers(key, *unit, means)
            .with_numbers(&format!("{key}_ci95"), *unit, halves)
    })
}

/// Runs: a row for each policy and seed.
pub fn runs_table(runs: &[RunResult]) -> Table {
    let table = Table::default()
        .with_text("policy", runs.iter().map(|run| Some(run.policy.clone())))
        .with_counts("seed", runs.iter().map(|run| run.seed));
    let all: Vec<&RunResult> = runs.iter().collect();
    add_measures(table, &OF_RUN, &all)
}

/// Programs of runs: a row for each policy, seed and program.
pub fn programs_table(runs: &[RunResult]) -> Table {
    let all = || {
        runs.iter()
            .flat_map(|run| run.programs.iter().map(move |p| (run, p)))
    };
    let table = Table::default()
        .with_text("policy", all().map(|(run, _)| Some(run.policy.clone())))
        .with_counts("seed", all().map(|(run, _)| run.seed))
        .with_text(
            "program",
            all().map(|(_, program)| Some(program.name.clone())),
        );
    let programs: Vec<&ProgramResult> = all().map(|(_, program)| program).collect();
    add_measures(table, &OF_PROGRAM, &programs)
}

fn add_measures<T>(table: Table, measures: &[MeasureColumn<T>], rows: &[&T]) -> Table {
    measures.iter().fold(table, |table, measure| {
        let values = rows.iter().map(|row| Some((measure.value)(row)));
        table.with_numbers(measure.key, measure.unit, values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use crate::testing::{chip, pair};
    use crate::{ComparedRuns, Contender, Experiment, compare_runs};
    use crate::{ExperimentContext, Scale};
    use consort_data::Values;
    use consort_data::long::read_long_table;

    fn compared() -> ComparedRuns {
        let experiment = Experiment::new(&chip("bulldozer-6282se"), pair(["hmmer", "povray"]), 0.2);
        let contenders = ["linux", "workover"].map(|p| Contender::new(p, "linux").unwrap());
        let context = ExperimentContext::new(3, Scale::Quick, workers(1), &|_| ());
        compare_runs(&experiment, &contenders, 0, 2, &context).unwrap()
    }

    #[test]
    fn every_number_of_every_run_has_a_row() {
        let compared = compared();
        let table = long_table("c", &compared.runs);
        assert_eq!(table.row_count(), 4 * (OF_RUN.len() + 2 * OF_PROGRAM.len()));
        let csv = table.to_csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "case,policy,seed,program,measure,value,unit");
        let first = &compared.runs[0];
        assert_eq!(lines[1], format!("c,linux,3,,stp,{},", first.stp));
        let slowdown = first.programs[1].slowdown;
        let line = format!("c,linux,3,{},slowdown,{slowdown},", first.programs[1].name);
        assert!(lines.contains(&line.as_str()));
        assert!(
            lines.contains(
                &format!("c,workover,4,,energy_j,{},J", compared.runs[3].energy_j).as_str()
            )
        );
    }

    #[test]
    fn a_file_is_read_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let table = long_table("c, d", &compared().runs);
        consort_data::write_table(&path, &table).unwrap();
        assert_eq!(read_long_table(&path).unwrap(), table);
    }

    #[test]
    fn wide_tables_have_the_numbers_of_the_results() {
        let compared = compared();
        let table = comparison_table(&compared.comparison);
        let row = &compared.comparison.results[1];
        let of = |name: &str| table.column(name).map(|c| c.values.clone());
        let stp = |r: &ContenderRow| Some(r.stp.mean);
        let all = compared.comparison.results.iter().map(stp).collect();
        assert_eq!(of("stp"), Some(Values::Number(all)));
        let Some(Values::Number(halves)) = of("speedup_ci95") else {
            panic!("speedups have intervals")
        };
        assert_eq!(halves[1], row.speedup.ci95);
        assert_eq!(
            (
                runs_table(&compared.runs).row_count(),
                programs_table(&compared.runs).row_count()
            ),
            (4, 8)
        );
    }
}
