//! Tables as files: whole, or not there.

#[cfg(feature = "arrow")]
use crate::columnar;
use crate::error::TableError;
use crate::table::Table;
use crate::table_format::TableFormat;
use consort_output::{AtomicFile, PUBLIC};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Writes a table as one file in the format of its name.
///
/// # Errors
/// As of [`TableSink`].
pub fn write(path: &Path, table: &Table) -> Result<(), TableError> {
    let mut sink = TableSink::create(path)?;
    sink.write(table)?;
    sink.finish()
}

/// A file that tables of one shape are written to, one after the other. It appears under its name
/// when it is finished; dropped or killed before, it leaves nothing.
pub struct TableSink {
    path: PathBuf,
    kind: TableFormat,
    file: AtomicFile,
    names: Option<String>,
    open: OpenTableFile,
}

/// File as far as it has been begun.
enum OpenTableFile {
    /// Nothing yet: formats other than CSV begin with the columns.
    Nothing,
    /// CSV, line by line.
    Csv(BufWriter<File>),
    /// Another format.
    #[cfg(feature = "arrow")]
    Columnar(columnar::ColumnarWriter),
}

impl TableSink {
    /// Begins a file beside its place.
    ///
    /// # Errors
    /// A name that tells no format, a format that is not part of this build, a folder that cannot be
    /// written to.
    pub fn create(path: &Path) -> Result<Self, TableError> {
        let kind = TableFormat::from_path(path)?;
        if path.is_dir() {
            return Err(TableError::file(path, "it is a folder"));
        }
        let file = AtomicFile::create(path, PUBLIC);
        let file = file.map_err(|cause| TableError::file(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            kind,
            file,
            names: None,
            open: OpenTableFile::Nothing,
        })
    }

    /// Appends the rows of a table.
    ///
    /// # Errors
    /// Other columns than those before; what the file system answers.
    pub fn write(&mut self, table: &Table) -> Result<(), TableError> {
        let first = self.check_columns(table)?;
        if first {
            self.open = self.begin(table)?;
        }
        let path = &self.path;
        match &mut self.open {
            OpenTableFile::Nothing => Ok(()),
            OpenTableFile::Csv(out) => table
                .write_csv(out, first)
                .map_err(|cause| TableError::file(path, cause)),
            #[cfg(feature = "arrow")]
            OpenTableFile::Columnar(writer) => writer
                .write(table)
                .map_err(|cause| TableError::file(path, cause)),
        }
    }

    /// Returns true for the first part; refuses other columns afterwards.
    fn check_columns(&mut self, table: &Table) -> Result<bool, TableError> {
        let found = table.names();
        match &self.names {
            Some(expected) if *expected != found => Err(TableError::Columns {
                path: self.path.clone(),
                found,
                expected: expected.clone(),
            }),
            Some(_) => Ok(false),
            None => {
                self.names = Some(found);
                Ok(true)
            }
        }
    }

    #[cfg_attr(
        not(feature = "arrow"),
        expect(unused_variables, reason = "only some formats begin with the columns")
    )]
    fn begin(&self, table: &Table) -> Result<OpenTableFile, TableError> {
        let failed = |cause| TableError::file(&self.path, cause);
        let file = self.file.as_file().try_clone();
        let file = file.map_err(|cause| TableError::file(&self.path, cause))?;
        match self.kind {
            TableFormat::Csv => Ok(OpenTableFile::Csv(BufWriter::new(file))),
            #[cfg(feature = "arrow")]
            kind => columnar::ColumnarWriter::begin(kind, file, table)
                .map(OpenTableFile::Columnar)
                .map_err(failed),
            #[cfg(not(feature = "arrow"))]
            TableFormat::Arrow | TableFormat::Parquet => Err(failed("not part of this build")),
        }
    }

    /// Ends the file and gives it its name; one that was there is replaced.
    ///
    /// # Errors
    /// What the file system answers.
    pub fn finish(self) -> Result<(), TableError> {
        let path = self.path;
        let failed = |cause: std::io::Error| TableError::file(&path, cause);
        match self.open {
            OpenTableFile::Nothing => {}
            OpenTableFile::Csv(out) => drop(out.into_inner().map_err(|e| failed(e.into_error()))?),
            #[cfg(feature = "arrow")]
            OpenTableFile::Columnar(writer) => writer
                .finish()
                .map_err(|cause| TableError::file(&path, cause))?,
        }
        self.file.as_file().sync_all().map_err(failed)?;
        self.file.replace().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(first: u64) -> Table {
        Table::default().with_counts("n", [first, first + 1])
    }

    #[test]
    fn parts_become_one_file_when_it_is_finished() -> Result<(), Box<dyn std::error::Error>> {
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
    fn other_columns_are_refused_and_nothing_is_left() -> Result<(), Box<dyn std::error::Error>> {
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
}
