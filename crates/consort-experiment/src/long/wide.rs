//! Tables with a column for each measure.

use super::{MeasureColumn, OF_PROGRAM, OF_RUN};
use crate::{ContenderRow, MeanEstimate, PolicyComparison, ProgramResult, RunResult};
use consort_data::Table;

/// Measures of a row of a comparison: key, unit, value.
type RowMeasure = (
    &'static str,
    Option<&'static str>,
    fn(&ContenderRow) -> MeanEstimate,
);

const OF_ROW: [RowMeasure; 8] = [
    ("stp", None, |r| r.stp),
    ("speedup", None, |r| r.speedup),
    ("antt", None, |r| r.antt),
    ("unfairness", None, |r| r.unfairness),
    ("makespan_s", Some("s"), |r| r.makespan_s),
    ("energy_j", Some("J"), |r| r.energy_j),
    ("ed", Some("J s"), |r| r.ed),
    ("moves", None, |r| r.moves),
];

/// A comparison: a row for each policy, means with half widths of 95 percent intervals beside.
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
    use super::super::tests::compared;
    use super::*;
    use consort_data::Values;

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
