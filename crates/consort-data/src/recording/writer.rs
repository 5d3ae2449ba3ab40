//! Writing a recording while threads run.

use super::row::{COLUMNS, ColumnValue, IntervalRow, bytes, message, rows, split};
use super::{RecordingError, RecordingInfo};
use crate::atomic_file::AtomicFile;
use consort_core::ControlTurn;
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows after which a part is written, so that a recording with many threads does not fill memory.
const PART_ROWS: usize = 20_000;
/// Longest time of a part, ns. A killed recorder loses at most this much.
const PART_NS: i64 = 5_000_000_000;
/// Mode of recordings: readable for their owner alone, because they contain command lines.
const PRIVATE: u32 = 0o600;

/// Folder in which the parts of a recording lie while it is written.
pub fn parts_folder(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

/// A recording that is being written.
///
/// After a failed write nothing more is written, and the parts so far stay readable.
#[derive(Debug)]
pub struct RecordingWriter {
    path: PathBuf,
    parts: PathBuf,
    metadata: Vec<KeyValue>,
    written: usize,
    rows: Vec<IntervalRow>,
    begun_ns: i64,
    broken: bool,
    replaces: bool,
}

impl RecordingWriter {
    /// Begins a recording; `replaces` allows it to take the place of a file.
    ///
    /// # Errors
    /// A file or parts of another recording are in the way, or nothing can be written there.
    pub fn create(
        path: &Path,
        about: &RecordingInfo,
        replaces: bool,
    ) -> Result<Self, RecordingError> {
        let parts = parts_folder(path);
        if path.is_file() && !replaces {
            return Err(RecordingError::Exists {
                path: path.to_owned(),
            });
        }
        if path.exists() && !path.is_file() {
            let source = io::Error::other("it is no file");
            return Err(RecordingError::file("write", path, source));
        }
        match DirBuilder::new().mode(0o700).create(&parts) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(RecordingError::Left { path: parts });
            }
            Err(source) => return Err(RecordingError::file("write", path, source)),
        }
        let metadata = about.to_metadata().map_err(io::Error::other);
        Ok(Self {
            path: path.to_owned(),
            metadata: metadata.map_err(|e| RecordingError::file("describe", path, e))?,
            parts,
            written: 0,
            rows: Vec::new(),
            begun_ns: 0,
            broken: false,
            replaces,
        })
    }

    /// Adds the rows of one turn.
    ///
    /// # Errors
    /// If a part cannot be written; only the first failure is an error.
    pub fn add(&mut self, turn: &ControlTurn) -> Result<(), RecordingError> {
        if self.broken {
            return Ok(());
        }
        let rows = rows(turn).map_err(io::Error::other);
        let rows = rows.map_err(|e| RecordingError::file("describe", &self.path, e))?;
        let now_ns = rows.first().map_or(0, |row| row.time_ns);
        if self.rows.is_empty() {
            self.begun_ns = now_ns;
        }
        self.rows.extend(rows);
        if self.rows.len() >= PART_ROWS || now_ns - self.begun_ns >= PART_NS {
            return self.flush();
        }
        Ok(())
    }

    /// Joins the parts into the recording; `None` if no quantum was complete.
    ///
    /// # Errors
    /// If it cannot be written; the parts then stay.
    pub fn finish(mut self) -> Result<Option<PathBuf>, RecordingError> {
        if !self.broken && !self.rows.is_empty() {
            self.flush()?;
        }
        let joined = self.join()?;
        // Only now: until the recording has its name, the parts are all that there is.
        let removed = fs::remove_dir_all(&self.parts);
        removed.map_err(|e| RecordingError::file("clear up after", &self.parts, e))?;
        Ok(joined)
    }

    fn flush(&mut self) -> Result<(), RecordingError> {
        let place = self.parts.join(format!("{:06}.parquet", self.written));
        let written = self.write_part(&place);
        self.broken = written.is_err();
        self.rows.clear();
        self.written += usize::from(!self.broken);
        written
    }

    fn write_part(&self, place: &Path) -> Result<(), RecordingError> {
        let failed = |source| RecordingError::file("write", place, source);
        let file = AtomicFile::create(place, PRIVATE).map_err(failed)?;
        let written = write_rows(file.as_file(), &self.metadata, &self.rows);
        written.map_err(|source| RecordingError::parquet("write", place, source))?;
        // On disk before it has its name, so that a power failure leaves whole parts only.
        file.as_file().sync_data().map_err(failed)?;
        file.replace().map_err(failed)
    }

    /// Copies the row groups of all parts into one file, as they are.
    fn join(&self) -> Result<Option<PathBuf>, RecordingError> {
        if self.written == 0 {
            return Ok(None);
        }
        let failed = |source| RecordingError::file("write", &self.path, source);
        let file = AtomicFile::create(&self.path, PRIVATE).map_err(failed)?;
        let joined = self.join_into(file.as_file());
        joined.map_err(|source| RecordingError::parquet("write", &self.path, source))?;
        file.as_file().sync_data().map_err(failed)?;
        let named = match self.replaces {
            true => file.replace(),
            false => file.persist_new(),
        };
        match named {
            // Another process may have made the file since this recording began.
            Err(e) if !self.replaces && e.kind() == io::ErrorKind::AlreadyExists => {
                Err(RecordingError::Exists {
                    path: self.path.clone(),
                })
            }
            Err(e) => Err(failed(e)),
            Ok(()) => Ok(Some(self.path.clone())),
        }
    }

    fn join_into(&self, file: &File) -> ParquetResult<()> {
        let mut writer = writer(file, &self.metadata)?;
        for number in 0..self.written {
            let part = File::open(self.parts.join(format!("{number:06}.parquet")))?;
            let reader = SerializedFileReader::new(part.try_clone()?)?;
            for group in reader.metadata().row_groups() {
                let mut copy = writer.next_row_group()?;
                for column in group.columns() {
                    let closed = ColumnCloseResult {
                        bytes_written: column.compressed_size().unsigned_abs(),
                        rows_written: group.num_rows().unsigned_abs(),
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copy.append_column(&part, closed)?;
                }
                copy.close()?;
            }
        }
        writer.close()?;
        Ok(())
    }
}

fn schema() -> ParquetResult<TypePtr> {
    Ok(Arc::new(parse_message_type(&message())?))
}

fn writer<W: Write + Send>(
    out: W,
    metadata: &[KeyValue],
) -> ParquetResult<SerializedFileWriter<W>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata.to_vec()))
        .build();
    SerializedFileWriter::new(out, schema()?, Arc::new(properties))
}

fn write_rows(file: &File, metadata: &[KeyValue], rows: &[IntervalRow]) -> ParquetResult<()> {
    let mut writer = writer(file, metadata)?;
    let mut group = writer.next_row_group()?;
    for column in COLUMNS {
        if let Some(mut to) = group.next_column()? {
            write_column(&mut to, &column.of, rows)?;
            to.close()?;
        }
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn write_column(
    to: &mut SerializedColumnWriter<'_>,
    of: &ColumnValue,
    rows: &[IntervalRow],
) -> ParquetResult<()> {
    match of {
        ColumnValue::Whole(of) => {
            let (values, levels) = split(rows.iter().map(of));
            to.typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)?;
        }
        ColumnValue::Real(of) => {
            let (values, levels) = split(rows.iter().map(of));
            to.typed::<DoubleType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        ColumnValue::Flag(of) => {
            let (values, levels) = split(rows.iter().map(of));
            to.typed::<BoolType>()
                .write_batch(&values, Some(&levels), None)?;
        }
        ColumnValue::Text(of) => {
            let (values, levels) = split(rows.iter().map(|row| of(row).map(bytes)));
            to.typed::<ByteArrayType>()
                .write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}
