//! Tables as files, complete or absent: CSV, and with the feature `columnar` Arrow and Parquet.

use crate::atomic_file::{AtomicFile, PUBLIC};
#[cfg(feature = "columnar")]
use crate::columnar::ColumnarWriter;
use crate::table::{Table, Values};
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// Endings of the formats of this build.
const ENDINGS: &str = match cfg!(feature = "columnar") {
    true => ".csv, .arrow or .parquet",
    false => ".csv",
};

/// Reason why a file of a table cannot be written or read. Its text is one line and names the file.
#[derive(Debug, Error)]
pub enum TableError {
    /// The name has no ending of a format.
    #[error("{}: the name does not say the format; expected one that ends in {}", .0.display(), ENDINGS)]
    Format(PathBuf),
    /// The format is not part of this build.
    #[error(
        "{}: this build of Consort writes no {format}; name a .csv file, or build with --features columnar",
        path.display()
    )]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// Format that it would have to be.
        format: &'static str,
    },
    /// A part has other columns than what was written before.
    #[error("{}: a part has the columns {found}; expected {expected}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// The part's columns.
        found: String,
        /// The columns of the first part.
        expected: String,
    },
    /// A field is not what its column holds.
    #[error("{}:{line}: {column}: is '{found}'; expected {expected}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// The field.
        found: String,
        /// Form that would be right.
        expected: &'static str,
    },
    /// The file cannot be written or read.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl TableError {
    /// A failure of the file system or of a format's library.
    pub(crate) fn file(
        path: &Path,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::File {
            path: path.to_owned(),
            cause: cause.into(),
        }
    }
}

/// A format of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated, with a header line.
    Csv,
    /// The Arrow IPC file format, also known as Feather V2.
    Arrow,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// The format that a file's name implies.
    ///
    /// # Errors
    /// A name with another ending; a format that is not part of this build.
    pub fn from_path(path: &Path) -> Result<Self, TableError> {
        let end = path.extension().and_then(|end| end.to_str());
        let missing = |format| TableError::NotBuilt {
            path: path.to_owned(),
            format,
        };
        match end {
            Some("csv") => Ok(Self::Csv),
            Some("arrow") if cfg!(feature = "columnar") => Ok(Self::Arrow),
            Some("arrow") => Err(missing("Arrow")),
            Some("parquet") if cfg!(feature = "columnar") => Ok(Self::Parquet),
            Some("parquet") => Err(missing("Parquet")),
            _ => Err(TableError::Format(path.to_owned())),
        }
    }
}

/// True if a name has the ending of a table in any format, built or not.
pub fn is_table_path(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    matches!(end, Some("csv" | "arrow" | "parquet"))
}

/// Writes a table as one file in the format of its name.
///
/// # Errors
/// Those of [`TableSink`].
pub fn write_table(path: &Path, table: &Table) -> Result<(), TableError> {
    let mut sink = TableSink::create(path)?;
    sink.write(table)?;
    sink.finish()
}

/// A file that receives tables of the same columns, one after the other. It appears under its name
/// when it is finished; if it is dropped or killed before, it leaves nothing.
pub struct TableSink {
    path: PathBuf,
    format: TableFormat,
    file: AtomicFile,
    names: Option<String>,
    open: OpenTableFile,
}

enum OpenTableFile {
    /// Nothing is written before the first table, because Arrow and Parquet begin with the columns.
    Nothing,
    Csv(BufWriter<File>),
    #[cfg(feature = "columnar")]
    Columnar(ColumnarWriter),
}

impl TableSink {
    /// Begins an unnamed file in the folder of `path`.
    ///
    /// # Errors
    /// A name without the ending of a format, a format that is not part of this build, a folder that cannot be
    /// written to.
    pub fn create(path: &Path) -> Result<Self, TableError> {
        let format = TableFormat::from_path(path)?;
        if path.is_dir() {
            return Err(TableError::file(path, "it is a folder"));
        }
        let file = AtomicFile::create(path, PUBLIC);
        let file = file.map_err(|cause| TableError::file(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            format,
            file,
            names: None,
            open: OpenTableFile::Nothing,
        })
    }

    /// Appends the rows of a table.
    ///
    /// # Errors
    /// Other columns than those before; errors of the file system.
    pub fn write(&mut self, table: &Table) -> Result<(), TableError> {
        let found = table.names();
        let first = self.names.is_none();
        match &self.names {
            Some(expected) if *expected != found => {
                return Err(TableError::Columns {
                    path: self.path.clone(),
                    found,
                    expected: expected.clone(),
                });
            }
            Some(_) => {}
            None => {
                self.names = Some(found);
                self.open = self.begin(table)?;
            }
        }
        let path = &self.path;
        match &mut self.open {
            OpenTableFile::Nothing => Ok(()),
            OpenTableFile::Csv(out) => table
                .write_csv(out, first)
                .map_err(|cause| TableError::file(path, cause)),
            #[cfg(feature = "columnar")]
            OpenTableFile::Columnar(writer) => writer
                .write(table)
                .map_err(|cause| TableError::file(path, cause)),
        }
    }

    #[cfg_attr(
        not(feature = "columnar"),
        expect(unused_variables, reason = "only some formats begin with the columns")
    )]
    fn begin(&self, table: &Table) -> Result<OpenTableFile, TableError> {
        let failed = |cause| TableError::file(&self.path, cause);
        let file = self.file.as_file().try_clone();
        let file = file.map_err(|cause| TableError::file(&self.path, cause))?;
        match self.format {
            TableFormat::Csv => Ok(OpenTableFile::Csv(BufWriter::new(file))),
            #[cfg(feature = "columnar")]
            TableFormat::Arrow => ColumnarWriter::begin_arrow(file, table)
                .map(OpenTableFile::Columnar)
                .map_err(failed),
            #[cfg(feature = "columnar")]
            TableFormat::Parquet => ColumnarWriter::begin_parquet(file, table)
                .map(OpenTableFile::Columnar)
                .map_err(failed),
            #[cfg(not(feature = "columnar"))]
            TableFormat::Arrow | TableFormat::Parquet => Err(failed("not part of this build")),
        }
    }

    /// Ends the file and gives it its name; one that was there is replaced.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(self) -> Result<(), TableError> {
        let path = self.path;
        let failed = |cause: std::io::Error| TableError::file(&path, cause);
        match self.open {
            OpenTableFile::Nothing => {}
            OpenTableFile::Csv(out) => drop(out.into_inner().map_err(|e| failed(e.into_error()))?),
            #[cfg(feature = "columnar")]
            OpenTableFile::Columnar(writer) => writer
                .finish()
                .map_err(|cause| TableError::file(&path, cause))?,
        }
        // On disk before it replaces an earlier file of that name.
        self.file.as_file().sync_all().map_err(failed)?;
        self.file.replace().map_err(failed)
    }
}

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
    let expected: Vec<&str> = shape.iter().map(|(name, ..)| *name).collect();
    let found = reader.headers().map_err(failed)?;
    if *found != expected {
        return Err(TableError::Columns {
            path: path.to_owned(),
            found: found.iter().collect::<Vec<_>>().join(", "),
            expected: expected.join(", "),
        });
    }
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

fn push_field(values: &mut Values, field: &str) -> Result<(), &'static str> {
    match values {
        Values::Text(all) => all.push((!field.is_empty()).then(|| field.to_owned())),
        Values::Count(all) => all.push(parse_field(field).ok_or("a whole number")?),
        Values::Number(all) => all.push(parse_field(field).ok_or("a number")?),
    }
    Ok(())
}

/// `None` if the field is not of the type, `Some(None)` if it is empty.
fn parse_field<T: FromStr>(field: &str) -> Option<Option<T>> {
    if field.is_empty() {
        return Some(None);
    }
    field.parse().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_selects_the_format() {
        let of = |name: &str| TableFormat::from_path(Path::new(name));
        assert_eq!(of("a.b/c.csv").ok(), Some(TableFormat::Csv));
        assert_eq!(of("x.arrow").is_ok(), cfg!(feature = "columnar"));
        assert_eq!(of("x.parquet").is_ok(), cfg!(feature = "columnar"));
        let error = of("x.xlsx").unwrap_err().to_string();
        let expected = "x.xlsx: the name does not say the format; expected one that ends in .csv";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(error.contains(".arrow"), cfg!(feature = "columnar"));
    }

    fn table(first: u64) -> Table {
        Table::default().with_counts("n", [first, first + 1])
    }

    #[test]
    fn parts_appear_as_one_finished_file() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("t.csv");
        let mut sink = TableSink::create(&path)?;
        sink.write(&table(1))?;
        sink.write(&table(3))?;
        assert!(!path.exists());
        sink.finish()?;
        assert_eq!(std::fs::read_to_string(&path)?, "n\n1\n2\n3\n4\n");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 1);
        Ok(())
    }

    #[test]
    fn refused_columns_leave_no_file() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let mut sink = TableSink::create(&folder.path().join("t.csv"))?;
        sink.write(&table(1))?;
        let other = Table::default().with_counts("m", [1]);
        let error = sink.write(&other).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.ends_with("a part has the columns m; expected n")));
        drop(sink);
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
        Ok(())
    }

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
    fn written_tables_are_read_bit_for_bit() {
        let table = Table::default()
            .with_text("who", [Some("a \"b\",\nc"), None])
            .with_counts("n", [7, 8])
            .with_numbers("x", Some("s"), [Some(1.0 / 3.0), None]);
        assert_eq!(read(&table.to_csv()), Ok(table));
    }

    #[test]
    fn wrong_fields_are_named_by_line_and_column() {
        let error = |text: &str| read(text).err();
        let field = "/t.csv:3: n: is 'many'; expected a whole number";
        assert_eq!(error("who,n,x\na,1,2\nb,many,2\n"), Some(field.to_owned()));
        let columns = "/t.csv: a part has the columns who, n; expected who, n, x";
        assert_eq!(error("who,n\n"), Some(columns.to_owned()));
        assert!(error("who,n,x\na,1\n").is_some());
    }
}
