//! Results as tables for files and data frames.
//!
//! The long format has a row for each number: case, policy, seed, program, measure, value, unit.
//! [`long_table`] gives it of runs, and whoever has other numbers puts them into [`LongRows`]; the wide
//! tables [`comparison_table`], [`runs_table`] and [`programs_table`] have a column for each measure, as people
//! compare them.

mod wide;

pub use wide::{comparison_table, programs_table, runs_table};

use crate::{ProgramResult, RunResult};
use consort_data::{Table, TableShape, Values};

/// Columns of the long format.
pub fn long_columns() -> [(&'static str, Option<&'static str>, Values); 7] {
    let text = |name| (name, None, Values::Text(Vec::new()));
    [
        text("case"),
        text("policy"),
        ("seed", None, Values::Count(Vec::new())),
        text("program"),
        text("measure"),
        ("value", None, Values::Number(Vec::new())),
        text("unit"),
    ]
}

/// A measure of `T`: its key, its unit, and how it is had.
pub(crate) struct MeasureColumn<T> {
    /// Key, with the unit in it where it has one.
    pub(crate) key: &'static str,
    /// Unit; none for plain ratios and counts.
    pub(crate) unit: Option<&'static str>,
    /// Its value.
    pub(crate) value: fn(&T) -> f64,
}

const fn measure<T>(
    key: &'static str,
    unit: Option<&'static str>,
    value: fn(&T) -> f64,
) -> MeasureColumn<T> {
    MeasureColumn { key, unit, value }
}

/// Measures of a run.
pub(crate) const OF_RUN: [MeasureColumn<RunResult>; 8] = [
    measure("stp", None, |r| r.stp),
    measure("antt", None, |r| r.antt),
    measure("unfairness", None, |r| r.unfairness),
    measure("makespan_s", Some("s"), |r| r.makespan_s),
    measure("energy_j", Some("J"), |r| r.energy_j),
    measure("ed", Some("J s"), |r| r.ed),
    measure("moves", None, |r| r.moves as f64),
    measure("migrations", None, |r| r.migrations as f64),
];

/// Measures of a program in a run.
pub(crate) const OF_PROGRAM: [MeasureColumn<ProgramResult>; 6] = [
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

/// Rows of a long table, as they come.
#[derive(Debug, Default)]
pub struct LongRows {
    text: [Vec<Option<String>>; 5],
    seed: Vec<Option<u64>>,
    value: Vec<Option<f64>>,
}

/// Owner of a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowOwner<'a> {
    /// The case.
    pub case: &'a str,
    /// The policy, where there is one.
    pub policy: Option<&'a str>,
    /// The seed, where there is one.
    pub seed: Option<u64>,
    /// The program or thread; none for numbers of a whole run.
    pub program: Option<&'a str>,
}

impl LongRows {
    /// Adds a number, by the key of its measure.
    pub fn push(&mut self, of: RowOwner<'_>, key: &str, value: f64, unit: Option<&str>) {
        let texts = [Some(of.case), of.policy, of.program, Some(key), unit];
        for (all, text) in self.text.iter_mut().zip(texts) {
            all.push(text.map(str::to_owned));
        }
        self.seed.push(of.seed);
        self.value.push(Some(value));
    }

    /// Adds a number where there is one.
    pub fn push_if_some(
        &mut self,
        of: RowOwner<'_>,
        key: &str,
        value: Option<f64>,
        unit: Option<&str>,
    ) {
        if let Some(value) = value {
            self.push(of, key, value, unit);
        }
    }

    /// The rows as a table.
    pub fn table(self) -> Table {
        let [case, policy, program, measure, unit] = self.text.map(Values::Text);
        let (seed, value) = (Values::Count(self.seed), Values::Number(self.value));
        let all = [case, policy, seed, program, measure, value, unit];
        let named = long_columns().into_iter().zip(all);
        named.fold(Table::default(), |table, ((name, unit, _), values)| {
            table.with_column(name, unit, values)
        })
    }
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

/// Reads a file in the long format back.
///
/// # Errors
/// As of [`consort_data::read_csv`].
pub fn read(path: &std::path::Path) -> Result<Table, consort_data::TableError> {
    let shape = long_columns();
    let shape: &TableShape<'_> = &shape;
    consort_data::read_csv(path, shape)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::workers;
    use crate::testing::{chip, pair};
    use crate::{ComparedRuns, Contender, Experiment, compare_runs};
    use crate::{ExperimentContext, Scale};

    pub(crate) fn compared() -> ComparedRuns {
        let experiment = Experiment {
            chip: chip("bulldozer-6282se"),
            workload: pair(["hmmer", "povray"]),
            alone_s: 0.2,
            quantum: None,
            free_migration: false,
        };
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
        assert_eq!(read(&path).unwrap(), table);
    }
}
