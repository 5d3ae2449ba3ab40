//! The long format: a row for each number, with case, policy, seed, program, measure, value and unit.

use crate::table::{Table, Values};
use crate::table_file::{TableError, read_csv};
use std::path::Path;

/// Columns of the long format: name, unit, and an empty list of the type of their values.
fn long_columns() -> [(&'static str, Option<&'static str>, Values); 7] {
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

/// Rows of a long table in the order in which they are added.
#[derive(Debug, Default)]
pub struct LongRows {
    text: [Vec<Option<String>>; 5],
    seed: Vec<Option<u64>>,
    value: Vec<Option<f64>>,
}

/// Owner of a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowOwner<'a> {
    /// The workload on its machine, or another name of what was measured.
    pub case: &'a str,
    /// The policy; `None` if the number depends on none.
    pub policy: Option<&'a str>,
    /// The seed; `None` if nothing is random.
    pub seed: Option<u64>,
    /// The program or thread; `None` for numbers of a whole run.
    pub program: Option<&'a str>,
}

impl<'a> RowOwner<'a> {
    /// The same owner, narrowed to a program or thread.
    #[must_use]
    pub const fn with_program(self, program: &'a str) -> Self {
        Self {
            program: Some(program),
            ..self
        }
    }
}

impl LongRows {
    /// Adds a number, by the key of its measure.
    pub fn push(&mut self, owner: RowOwner<'_>, key: &str, value: f64, unit: Option<&str>) {
        let texts = [
            Some(owner.case),
            owner.policy,
            owner.program,
            Some(key),
            unit,
        ];
        for (all, text) in self.text.iter_mut().zip(texts) {
            all.push(text.map(str::to_owned));
        }
        self.seed.push(owner.seed);
        self.value.push(Some(value));
    }

    /// Adds a number unless it is `None`.
    pub fn push_if_some(
        &mut self,
        owner: RowOwner<'_>,
        key: &str,
        value: Option<f64>,
        unit: Option<&str>,
    ) {
        if let Some(value) = value {
            self.push(owner, key, value, unit);
        }
    }

    /// The rows as a table.
    pub fn table(self) -> Table {
        let [case, policy, program, measure, unit] = self.text.map(Values::Text);
        let (seed, value) = (Values::Count(self.seed), Values::Number(self.value));
        let mut table = Table::default();
        let all = [case, policy, seed, program, measure, value, unit];
        for ((name, unit, _), values) in long_columns().into_iter().zip(all) {
            table = table.with_column(name, unit, values);
        }
        table
    }
}

/// Reads a CSV file in the long format.
///
/// # Errors
/// Those of [`read_csv`].
pub fn read_long_table(path: &Path) -> Result<Table, TableError> {
    read_csv(path, &long_columns())
}
