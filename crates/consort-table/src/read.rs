//! Reading a table's CSV back.

use crate::error::TableError;
use crate::table::{Table, Values};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::str::FromStr;

/// The columns of a table: name, unit, and an empty list of the type of their values.
pub type TableShape<'a> = [(&'a str, Option<&'a str>, Values)];

/// Reads a CSV file whose columns are known.
///
/// # Errors
/// A file that cannot be read, has other columns, or has a field that is not of its column's type.
pub fn read_csv(path: &Path, shape: &TableShape<'_>) -> Result<Table, TableError> {
    let failed = |cause: csv::Error| TableError::file(path, cause);
    let file = File::open(path).map_err(|cause| TableError::file(path, cause))?;
    let mut reader = csv::Reader::from_reader(BufReader::new(file));
    check_header(path, shape, reader.headers().map_err(failed)?)?;
    let mut columns: Vec<Values> = shape.iter().map(|(.., values)| values.clone()).collect();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(failed)? {
        for ((values, field), (name, ..)) in columns.iter_mut().zip(&record).zip(shape) {
            push_field(values, field).map_err(|expected| TableError::Field {
                path: path.to_owned(),
                line: record.position().map_or(0, csv::Position::line),
                column: (*name).to_owned(),
                found: field.escape_debug().to_string(),
                expected,
            })?;
        }
    }
    let named = shape.iter().zip(columns);
    let table = named.fold(Table::default(), |table, ((name, unit, _), values)| {
        table.with_column(name, *unit, values)
    });
    Ok(table)
}

fn check_header(
    path: &Path,
    shape: &TableShape<'_>,
    found: &csv::StringRecord,
) -> Result<(), TableError> {
    let expected: Vec<&str> = shape.iter().map(|(name, ..)| *name).collect();
    if found == expected {
        return Ok(());
    }
    Err(TableError::Columns {
        path: path.to_owned(),
        found: found.iter().collect::<Vec<_>>().join(", "),
        expected: expected.join(", "),
    })
}

fn push_field(values: &mut Values, field: &str) -> Result<(), &'static str> {
    match values {
        Values::Text(all) => all.push((!field.is_empty()).then(|| field.to_owned())),
        Values::Count(all) => all.push(parse_field(field).ok_or("a whole number")?),
        Values::Number(all) => all.push(parse_field(field).ok_or("a number")?),
    }
    Ok(())
}

/// None where the field is not of the type, and a missing value where it is empty.
fn parse_field<T: FromStr>(field: &str) -> Option<Option<T>> {
    if field.is_empty() {
        return Some(None);
    }
    field.parse().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> [(&'static str, Option<&'static str>, Values); 3] {
        [
            ("who", None, Values::Text(Vec::new())),
            ("n", None, Values::Count(Vec::new())),
            ("x", Some("s"), Values::Number(Vec::new())),
        ]
    }

    fn read(text: &str) -> Result<Table, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        let place = folder.path().display().to_string();
        read_csv(&path, &shape()).map_err(|error| error.to_string().replace(&place, ""))
    }

    #[test]
    fn what_was_written_is_read_bit_for_bit() {
        let table = Table::default()
            .with_text("who", [Some("a \"b\",\nc"), None])
            .with_counts("n", [7, 8])
            .with_numbers("x", Some("s"), [Some(1.0 / 3.0), None]);
        assert_eq!(read(&table.to_csv()), Ok(table));
    }

    #[test]
    fn wrong_files_are_refused_by_line_and_column() {
        let error = |text: &str| read(text).err();
        let field = "/t.csv:3: n: is 'many'; expected a whole number";
        assert_eq!(error("who,n,x\na,1,2\nb,many,2\n"), Some(field.to_owned()));
        let columns = "/t.csv: a part has the columns who, n; expected who, n, x";
        assert_eq!(error("who,n\n"), Some(columns.to_owned()));
        assert!(error("who,n,x\na,1\n").is_some());
    }
}
