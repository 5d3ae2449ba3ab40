//! Reading a recording, quantum by quantum.

use super::row::QuantumFacts;
use super::{RecordingError, RecordingInfo};
use consort_core::{Observation, Placement, Plan, PuSet, ThreadObservation};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use std::cell::Cell;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Bytes that a row group may take uncompressed; ours take a few megabytes.
const MOST_GROUP_BYTES: i64 = 1 << 30;
const MOST_THREADS: usize = 1 << 20;

/// A recording: a file, or the parts of one that was not finished.
pub struct Recording {
    about: RecordingInfo,
    files: Vec<PathBuf>,
}

/// Account of one turn: what was seen and done.
#[derive(Clone, Debug)]
pub struct RecordedQuantum {
    /// Observation of the turn.
    pub observation: Observation,
    /// The plan that was made of it, without what it said of single threads.
    pub plan: Plan,
}

impl Recording {
    /// Opens a recording, or the folder that one which was killed has left.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let files = files(path)?;
        let Some(first) = files.first() else {
            return Err(RecordingError::foreign(path, "there are no parts in it"));
        };
        let reader = reader(first)?;
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        Ok(Self {
            about: RecordingInfo::from_metadata(first, metadata)?,
            files,
        })
    }

    /// Facts that hold for all of it.
    pub fn info(&self) -> &RecordingInfo {
        &self.about
    }

    /// Its quanta, in their order.
    pub fn quanta(&self) -> Quanta {
        Quanta {
            files: self.files.clone().into_iter(),
            rows: None,
            next: None,
            over: false,
        }
    }
}

fn files(path: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let failed = |source| RecordingError::file("read", path, source);
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(failed)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "parquet"));
    paths.sort();
    Ok(paths)
}

fn reader(path: &Path) -> Result<SerializedFileReader<File>, RecordingError> {
    let failed = |source| RecordingError::file("read", path, source);
    // A pipe or device has no end to begin at, and might never answer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(RecordingError::foreign(path, "it is no ordinary file"));
    }
    let file = File::open(path).map_err(failed)?;
    let reader = SerializedFileReader::new(file);
    let reader = reader.map_err(|source| RecordingError::parquet("read", path, source))?;
    // Damaged metadata may claim any size, for which the reader would allocate memory.
    let groups = reader.metadata().row_groups().iter();
    if groups
        .clone()
        .any(|group| group.total_byte_size() > MOST_GROUP_BYTES)
    {
        return Err(RecordingError::foreign(
            path,
            "a row group is larger than 1 GiB",
        ));
    }
    Ok(reader)
}

/// Result of the reader of Parquet. It asserts what damaged pages break: that is no end of Consort,
/// and nothing is read from it behind.
fn read_undamaged<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T, RecordingError> {
    catch_panic(read).ok_or_else(|| RecordingError::foreign(path, "its pages are damaged"))
}

/// The quanta of a recording.
pub struct Quanta {
    files: std::vec::IntoIter<PathBuf>,
    rows: Option<(PathBuf, RowIter<'static>)>,
    /// The first row of the next quantum.
    next: Option<RowCells>,
    over: bool,
}

#[derive(Default)]
struct RowCells {
    plan: i64,
    placed: Option<String>,
    exited: bool,
    observation: Option<String>,
    quantum: Option<String>,
}

impl RowCells {
    fn from_row(row: &Row) -> Self {
        let mut cells = Self::default();
        for (name, field) in row.get_column_iter() {
            match (name.as_str(), field) {
                ("plan", Field::Long(plan)) => cells.plan = *plan,
                ("exited", Field::Bool(exited)) => cells.exited = *exited,
                ("placed", Field::Str(text)) => cells.placed = Some(text.clone()),
                ("observation", Field::Str(text)) => cells.observation = Some(text.clone()),
                ("quantum", Field::Str(text)) => cells.quantum = Some(text.clone()),
                _ => {}
            }
        }
        cells
    }
}

impl Iterator for Quanta {
    type Item = Result<RecordedQuantum, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        // After an error the position in the file is unknown, so the iterator ends.
        let quantum = self.next_quantum();
        self.over = !matches!(quantum, Ok(Some(_)));
        quantum.transpose()
    }
}

impl Quanta {
    fn next_quantum(&mut self) -> Result<Option<RecordedQuantum>, RecordingError> {
        let first = match self.next.take() {
            Some(first) => first,
            None => match self.next_row()? {
                Some(first) => first,
                None => return Ok(None),
            },
        };
        let whole = first.quantum.as_deref().unwrap_or_default();
        let whole: QuantumFacts = serde_json::from_str(whole)
            .map_err(|error| self.foreign(format!("a quantum that says: {error}")))?;
        let generation = first.plan.unsigned_abs();
        let mut quantum = RecordedQuantum {
            plan: whole.plan(generation),
            observation: whole.observation,
        };
        self.add(&mut quantum, &first)?;
        while let Some(row) = self.next_row()? {
            if row.quantum.is_some() {
                self.next = Some(row);
                break;
            }
            self.add(&mut quantum, &row)?;
        }
        // Look-ups of threads rely on their order.
        quantum.observation.threads.sort_by_key(|thread| thread.id);
        Ok(Some(quantum))
    }

    fn add(&self, quantum: &mut RecordedQuantum, row: &RowCells) -> Result<(), RecordingError> {
        let Some(text) = &row.observation else {
            return Ok(());
        };
        let thread: ThreadObservation = serde_json::from_str(text)
            .map_err(|error| self.foreign(format!("a thread that says: {error}")))?;
        if quantum.observation.threads.len() >= MOST_THREADS {
            return Err(self.foreign("a quantum with more than a million threads".to_owned()));
        }
        if let Some(placed) = &row.placed {
            let pus: PuSet = placed
                .parse()
                .map_err(|error| self.foreign(format!("placed = {placed}: {error}")))?;
            let placements = &mut quantum.plan.placements;
            placements.insert(thread.id, Placement::Restricted(pus));
        }
        match row.exited {
            true => quantum.observation.exited.push(thread),
            false => quantum.observation.threads.push(thread),
        }
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<RowCells>, RecordingError> {
        loop {
            if let Some((path, rows)) = &mut self.rows {
                match read_undamaged(path, || rows.next())? {
                    Some(Ok(row)) => return Ok(Some(RowCells::from_row(&row))),
                    Some(Err(error)) => return Err(RecordingError::parquet("read", path, error)),
                    None => {}
                }
            }
            let Some(path) = self.files.next() else {
                return Ok(None);
            };
            let file = Box::new(reader(&path)?);
            let rows = read_undamaged(&path, || RowIter::from_file_into(file))?;
            self.rows = Some((path, rows));
        }
    }

    fn foreign(&self, why: String) -> RecordingError {
        let path = self.rows.as_ref().map(|(path, _)| path.as_path());
        RecordingError::foreign(path.unwrap_or(Path::new("")), why)
    }
}

thread_local! {
    /// True while this thread's panics are held.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Result of a call, or `None` if it panicked. The panic is not printed.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    silence_caught_panics();
    let before = HOLDS.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    HOLDS.set(before);
    result.ok()
}

/// Wraps the process's hook, once: panics elsewhere are printed as ever.
fn silence_caught_panics() {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !HOLDS.get() {
                usual(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caught_panic_has_no_result() {
        assert_eq!(catch_panic(|| 7), Some(7));
        assert_eq!(catch_panic(|| Vec::<u8>::new()[0]), None);
        assert!(!HOLDS.get());
    }
}
