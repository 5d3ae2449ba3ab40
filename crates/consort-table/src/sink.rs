//! Tables as files: whole, or not there.

#[cfg(feature = "arrow")]
use crate::columnar;
use crate::error::TableError;
use crate::kind::Kind;
use crate::table::Table;
use consort_output::{PUBLIC, WholeFile};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Writes a table as one file in the format of its name.
///
/// # Errors
/// As of [`Sink`].
pub fn write(path: &Path, table: &Table) -> Result<(), TableError> {
    let mut sink = Sink::create(path)?;
    sink.write(table)?;
    sink.finish()
}

/// A file that tables of one shape are written to, one after the other. It appears under its name
/// when it is finished; dropped or killed before, it leaves nothing.
pub struct Sink {
    path: PathBuf,
    kind: Kind,
    file: WholeFile,
    names: Option<String>,
    open: Open,
}

/// File as far as it has been begun.
enum Open {
    /// Nothing yet: formats other than CSV begin with the columns.
    Nothing,
    /// CSV, line by line.
    Csv(BufWriter<File>),
    /// Another format.
    #[cfg(feature = "arrow")]
    Columnar(columnar::Writer),
}

impl Sink {
    /// Begins a file beside its place.
    ///
    /// # Errors
    /// A name that tells no format, a format that is not part of this build, a folder that cannot be
    /// written to.
    pub fn create(path: &Path) -> Result<Self, TableError> {
        let kind = Kind::of(path)?;
        if path.is_dir() {
            return Err(TableError::file(path, "it is a folder"));
        }
        let file = WholeFile::create(path, PUBLIC);
        let file = file.map_err(|cause| TableError::file(path, cause))?;
        Ok(Self {
            path: path.to_owned(),
            kind,
            file,
            names: None,
            open: Open::Nothing,
        })
    }

    /// Appends the rows of a table.
    ///
    /// # Errors
    /// Other columns than those before; what the file system answers.
    pub fn write(&mut self, table: &Table) -> Result<(), TableError> {
        let first = self.check(table)?;
        if first {
            self.open = self.begin(table)?;
        }
        let path = &self.path;
        match &mut self.open {
            Open::Nothing => Ok(()),
            Open::Csv(out) => table
                .write_csv(out, first)
                .map_err(|cause| TableError::file(path, cause)),
            #[cfg(feature = "arrow")]
            Open::Columnar(writer) => writer
                .write(table)
                .map_err(|cause| TableError::file(path, cause)),
        }
    }

    /// Returns true for the first part; refuses other columns afterwards.
    fn check(&mut self, table: &Table) -> Result<bool, TableError> {
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
    fn begin(&self, table: &Table) -> Result<Open, TableError> {
        let failed = |cause| TableError::file(&self.path, cause);
        let file = self.file.as_file().try_clone();
        let file = file.map_err(|cause| TableError::file(&self.path, cause))?;
        match self.kind {
            Kind::Csv => Ok(Open::Csv(BufWriter::new(file))),
            #[cfg(feature = "arrow")]
            kind => columnar::Writer::begin(kind, file, table)
                .map(Open::Columnar)
                .map_err(failed),
            #[cfg(not(feature = "arrow"))]
            Kind::Arrow | Kind::Parquet => Err(failed("not part of this build")),
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
            Open::Nothing => {}
            Open::Csv(out) => drop(out.into_inner().map_err(|e| failed(e.into_error()))?),
            #[cfg(feature = "arrow")]
            Open::Columnar(writer) => writer
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
        Table::default().count("n", [first, first + 1])
    }

    #[test]
    fn parts_become_one_file_when_it_is_finished() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("t.csv");
        let mut sink = Sink::create(&path)?;
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
        let mut sink = Sink::create(&folder.path().join("t.csv"))?;
        sink.write(&table(1))?;
        let other = Table::default().count("m", [1]);
        let error = sink.write(&other).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.ends_with("a part has the columns m; expected n")));
        drop(sink);
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 0);
        Ok(())
    }
}
