//! Training rows that were measured elsewhere: pairs of programs with their slowdowns, as CSV.

use super::{TrainArgs, TrainingData, check_folds};
use crate::commands::manage::detect_host;
use crate::failure::bad_input;
use crate::options::LIVE;
use anyhow::Result;
use consort_experiment::train::{TrainingRow, TrainingSet};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Columns that every file of rows has.
const ROW_COLUMNS: [&str; 3] = ["program", "corunner", "slowdown"];
/// Start of the names of columns with components of the program next to its co-runner.
const TOGETHER: &str = "together.";
/// Largest slowdown that is read; beyond it the file is wrong.
const MOST_SLOWDOWN: f64 = 1000.0;

pub(super) fn train_on_rows(args: &TrainArgs, path: &Path) -> Result<TrainingData> {
    let refused = [
        (!args.programs.is_empty(), "--programs"),
        (args.duration.is_some(), "--duration"),
        (!args.as_siblings.is_empty(), "--as-siblings"),
        (args.quick, "--quick"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        return Err(bad_input(format!(
            "{option} is for runs, and --rows takes rows that were measured; leave out one of them"
        )));
    }
    if let Some(ways) = args.ways.iter().find(|&&ways| ways != 2) {
        return Err(bad_input(format!(
            "--ways {ways}: rows are of pairs; use --ways 2"
        )));
    }
    let table = CsvTable::read(path)?;
    let components = args.components.as_deref().map(CsvTable::read).transpose()?;
    let (set, notes) = training_set(&table, components.as_ref())?;
    check_folds(set.programs().len(), args.folds)?;
    let machine = match args.machine.as_str() {
        LIVE => detect_host(None)?.offers().machine().to_owned(),
        named => named.to_owned(),
    };
    Ok(TrainingData {
        source: format!(
            "consort train, measured rows: {} rows in {}",
            set.rows.len(),
            path.display()
        ),
        notes,
        sets: vec![TrainingSet {
            machine: machine.clone(),
            ..set
        }],
        machine,
    })
}

/// A CSV file with a header line; lines that begin with `#` are comments.
struct CsvTable {
    path: String,
    columns: Vec<String>,
    rows: Vec<CsvLine>,
}

struct CsvLine {
    number: u64,
    cells: Vec<String>,
}

impl CsvTable {
    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| bad_input(format!("cannot read rows {}: {error}", path.display())))?;
        Self::parse(&path.display().to_string(), &text)
    }

    fn parse(path: &str, text: &str) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let broken = |error: csv::Error| bad_input(format!("{path}: {error}"));
        let header = reader.headers().map_err(broken)?;
        let columns: Vec<String> = header.iter().map(str::to_owned).collect();
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].contains(column) {
                return Err(bad_input(format!(
                    "{path}: two columns are named '{column}'; rename or remove one"
                )));
            }
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| match error.kind() {
                csv::ErrorKind::UnequalLengths { pos, len, .. } => bad_input(format!(
                    "{path}, line {}: {len} cells for {} columns; complete the row",
                    pos.as_ref().map_or(0, csv::Position::line),
                    columns.len()
                )),
                _ => broken(error),
            })?;
            rows.push(CsvLine {
                number: record.position().map_or(0, csv::Position::line),
                cells: record.iter().map(str::to_owned).collect(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            columns,
            rows,
        })
    }

    /// Place of a column that has to be there.
    fn column(&self, name: &str) -> Result<usize> {
        let place = self.columns.iter().position(|column| column == name);
        place.ok_or_else(|| {
            let found = self.columns.join(", ");
            bad_input(format!(
                "{}: there is no column '{name}' among {found}; the first line names the columns",
                self.path
            ))
        })
    }

    /// A finite number in a cell, from `least` to `most`.
    fn number(&self, line: &CsvLine, column: usize, least: f64, most: f64) -> Result<f64> {
        let cell = &line.cells[column];
        let number = cell.parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| {
            let expected =
                format!("'{cell}' is no number from {least} to {most}; correct the cell");
            self.error(line, column, expected)
        })
    }

    fn error(&self, line: &CsvLine, column: usize, what: impl Display) -> anyhow::Error {
        bad_input(format!(
            "{}, line {}, column {}: {what}",
            self.path, line.number, self.columns[column]
        ))
    }

    /// The shares of a stack in these columns of a line: they are divided by their sum.
    fn stack(&self, line: &CsvLine, columns: &[usize]) -> Result<Vec<f64>> {
        let cells = columns.iter().map(|&at| self.number(line, at, 0.0, 1e18));
        let cells: Vec<f64> = cells.collect::<Result<_>>()?;
        let sum: f64 = cells.iter().sum();
        match columns.first() {
            Some(&first) if sum <= 0.0 => Err(self.error(
                line,
                first,
                "all components are 0; give their shares of the time alone, or remove the row",
            )),
            _ => Ok(cells.iter().map(|cell| cell / sum).collect()),
        }
    }
}

/// Mean stacks alone, by program.
type StacksAlone = BTreeMap<String, Vec<f64>>;

/// The rows of a table, with the components of another one if they are not in the same, and what the
/// reader must know.
fn training_set(
    rows: &CsvTable,
    components: Option<&CsvTable>,
) -> Result<(TrainingSet, Vec<String>)> {
    let [program, corunner, slowdown] = {
        let places: Result<Vec<usize>> = ROW_COLUMNS.iter().map(|c| rows.column(c)).collect();
        let places = places?;
        [places[0], places[1], places[2]]
    };
    let own = component_columns(rows, &ROW_COLUMNS);
    let (alone_of, alone_columns) = match components {
        None if own.is_empty() => {
            return Err(bad_input(format!(
                "{}: there are no components of programs alone; add a column for each, or give \
                 them in another file with --components",
                rows.path
            )));
        }
        None => (rows, own),
        Some(_) if !own.is_empty() => {
            return Err(bad_input(format!(
                "{}: column '{}' is a component, and --components has others; remove it, or leave \
                 out --components",
                rows.path, rows.columns[own[0]]
            )));
        }
        Some(table) => (table, component_columns(table, &["program"])),
    };
    let names: Vec<String> = { alone_columns.iter() }
        .map(|&at| alone_of.columns[at].clone())
        .collect();
    let alone = stacks_alone(alone_of, &alone_columns)?;
    let together = together_columns(rows, &names)?;
    let mut set = TrainingSet {
        ways: 2,
        components: names,
        slowdowns_only: together.is_none(),
        ..TrainingSet::default()
    };
    for line in &rows.rows {
        let known = |column: usize| {
            alone.get(&line.cells[column]).cloned().ok_or_else(|| {
                let name = &line.cells[column];
                let what = match components {
                    None => format!(
                        "'{name}' has no components: it is the program of no row; add one, or give \
                         all components with --components"
                    ),
                    Some(table) => format!(
                        "'{name}' has no components; add a line for it to {}",
                        table.path
                    ),
                };
                rows.error(line, column, what)
            })
        };
        let (stack, others) = (known(program)?, known(corunner)?);
        let slowdown = rows.number(line, slowdown, f64::MIN_POSITIVE, MOST_SLOWDOWN)?;
        let measured = match &together {
            Some(columns) => rows.stack(line, columns)?,
            None => stack.clone(),
        };
        set.rows.push(TrainingRow {
            co_run: set.rows.len() as u64,
            program: line.cells[program].clone(),
            co_runners: vec![line.cells[corunner].clone()],
            own: stack,
            others,
            together: measured.iter().map(|share| share * slowdown).collect(),
            measured,
        });
    }
    number_co_runs(&mut set);
    let notes = match set.slowdowns_only {
        false => Vec::new(),
        true => vec![format!(
            "the rows have no components together (columns {TOGETHER}NAME): the slowdown is \
             trained, its split among components is not determined and the inverse model is not \
             tested"
        )],
    };
    Ok((set, notes))
}

/// The pairs of training sets as [`training_set`] reads them.
pub(super) fn rows_to_csv(sets: &[TrainingSet]) -> Result<String> {
    let is_pair = |set: &&TrainingSet| set.ways == 2;
    let Some(set) = sets.iter().find(is_pair) else {
        return Err(bad_input(
            "--save-rows: rows are of pairs, and there are none; use --ways 2",
        ));
    };
    let together = set
        .components
        .iter()
        .map(|name| format!("{TOGETHER}{name}"));
    let columns = ROW_COLUMNS.map(str::to_owned).into_iter();
    let columns = columns
        .chain(set.components.iter().cloned())
        .chain(together);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns)?;
    for row in &set.rows {
        let numbers = { row.own.iter().copied() }.chain(row.measured.iter().copied());
        let numbers = std::iter::once(row.slowdown()).chain(numbers);
        let names = [row.program.clone(), row.co_runners.concat()].into_iter();
        writer.write_record(names.chain(numbers.map(|number| number.to_string())))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Gives the two rows of a pair, one by each member, the same number: the inverse model takes the
/// stacks of a core together. Rows without a counterpart keep their own.
fn number_co_runs(set: &mut TrainingSet) {
    let mut waiting: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for row in &mut set.rows {
        let (program, other) = (row.program.clone(), row.co_runners[0].clone());
        let counterpart = waiting.get_mut(&(other.clone(), program.clone()));
        match counterpart.and_then(Vec::pop) {
            Some(number) => row.co_run = number,
            None => waiting
                .entry((program, other))
                .or_default()
                .push(row.co_run),
        }
    }
}

/// Columns with components of programs alone: all but these and those of stacks together.
fn component_columns(table: &CsvTable, others: &[&str]) -> Vec<usize> {
    let named = table.columns.iter().enumerate();
    let is_component =
        |name: &str| !others.contains(&name) && !name.starts_with(TOGETHER) && !name.is_empty();
    { named }
        .filter(|(_, name)| is_component(name))
        .map(|(at, _)| at)
        .collect()
}

/// Columns of the stacks together in the order of the components; `None` if there are none.
fn together_columns(rows: &CsvTable, components: &[String]) -> Result<Option<Vec<usize>>> {
    let has_any = rows.columns.iter().any(|name| name.starts_with(TOGETHER));
    let all = components.iter();
    let all = all.map(|component| rows.column(&format!("{TOGETHER}{component}")));
    has_any.then(|| all.collect()).transpose()
}

/// The stack of each program alone: the mean of its lines.
fn stacks_alone(table: &CsvTable, columns: &[usize]) -> Result<StacksAlone> {
    let program = table.column("program")?;
    let mut stacks: BTreeMap<String, (Vec<f64>, f64)> = BTreeMap::new();
    for line in &table.rows {
        let stack = table.stack(line, columns)?;
        let (sum, count) = { stacks.entry(line.cells[program].clone()) }
            .or_insert_with(|| (vec![0.0; columns.len()], 0.0));
        sum.iter_mut()
            .zip(stack)
            .for_each(|(sum, share)| *sum += share);
        *count += 1.0;
    }
    let means = stacks
        .into_iter()
        .map(|(program, (sum, count))| (program, sum.into_iter().map(|sum| sum / count).collect()));
    Ok(means.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rows: &str, components: Option<&str>) -> Result<TrainingSet> {
        let rows = CsvTable::parse("rows.csv", rows)?;
        let components = components.map(|text| CsvTable::parse("components.csv", text));
        Ok(training_set(&rows, components.transpose()?.as_ref())?.0)
    }

    fn refusal(rows: &str, components: Option<&str>) -> String {
        set(rows, components).unwrap_err().to_string()
    }

    #[test]
    fn components_come_from_either_file() {
        let one = "# measured\nprogram,corunner,slowdown,base,memory\n\
                   a,b,1.5,3,1\nb,a,1.25,0.5,0.5\n";
        let rows = "program,corunner,slowdown\na,b,1.5\nb,a,1.25\n";
        let components = "program,base,memory\na,0.75,0.25\nb,20,20\n";
        let one = set(one, None).unwrap();
        assert_eq!(one, set(rows, Some(components)).unwrap());
        assert_eq!(one.components, ["base", "memory"]);
        assert!(one.slowdowns_only);
        assert_eq!(
            (&one.rows[0].own[..], &one.rows[0].others[..]),
            (&[0.75, 0.25][..], &[0.5, 0.5][..])
        );
        assert_eq!(one.rows[0].slowdown(), 1.5);
        assert_eq!(one.rows[0].co_run, one.rows[1].co_run);
    }

    #[test]
    fn written_rows_are_read_as_they_were() {
        let rows = "program,corunner,slowdown,base,memory,together.base,together.memory\n\
                    a,b,2.0,0.5,0.5,0.25,0.75\n\"b,c\",a,1.25,1,0,0.5,0.5\n\
                    b,a,1.5,1,0,0.5,0.5\na,\"b,c\",1.5,0.5,0.5,0.5,0.5\n";
        let first = set(rows, None).unwrap();
        let text = rows_to_csv(std::slice::from_ref(&first)).unwrap();
        assert_eq!(set(&text, None).unwrap(), first);
        assert!(
            rows_to_csv(&[])
                .unwrap_err()
                .to_string()
                .contains("--ways 2")
        );
    }

    #[test]
    fn stacks_together_are_taken_if_there() {
        let rows = "program,corunner,slowdown,base,memory,together.memory,together.base\n\
                    a,b,2,1,1,3,1\nb,a,1,1,0,0,1\n";
        let set = set(rows, None).unwrap();
        assert!(!set.slowdowns_only);
        assert_eq!(set.rows[0].together, [0.5, 1.5]);
        assert_eq!(set.rows[0].measured, [0.25, 0.75]);
    }

    #[test]
    fn faults_have_file_line_column_and_remedy() {
        let head = "program,corunner,slowdown,base\n";
        for (rows, parts) in [
            (
                "program,corunner\na,b\n",
                &["rows.csv", "no column 'slowdown'", "first line"][..],
            ),
            (
                "program,corunner,slowdown\na,b,1\n",
                &["no components", "--components"],
            ),
            (
                &format!("{head}a,a,1.1,1\na,a,fast,1\n"),
                &["rows.csv, line 3, column slowdown", "'fast'"],
            ),
            (
                &format!("{head}a,a,-1,1\n"),
                &["line 2, column slowdown", "'-1' is no number"],
            ),
            (
                &format!("{head}a,a,1.5,0\n"),
                &["line 2, column base", "all components are 0"],
            ),
            (
                &format!("{head}a,b,1.5,1\n"),
                &["line 2, column corunner", "'b' has no components"],
            ),
            (&format!("{head}a,a,1.5\n"), &["rows.csv", "line 2"]),
            (
                "program,program,slowdown\n",
                &["two columns are named 'program'"],
            ),
        ] {
            let text = refusal(rows, None);
            for part in parts {
                assert!(text.contains(part), "'{part}' is missing in: {text}");
            }
            assert!(!text.contains('\n'), "{text}");
        }
        let rows = "program,corunner,slowdown\na,b,1.5\n";
        let text = refusal(rows, Some("program,base\na,1\n"));
        assert!(
            text.contains("add a line for it to components.csv"),
            "{text}"
        );
        let text = refusal(&format!("{head}a,a,1,1\n"), Some("program,base\na,1\n"));
        assert!(text.contains("column 'base' is a component"), "{text}");
    }
}
