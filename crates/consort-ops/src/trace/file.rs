//! Traces as files: complete, or not there. The head of a file says what was recorded and how.

use super::bytes::{ByteReader, put_number, put_text};
use super::code::TraceCode;
use super::streams::ThreadStreams;
use super::{Damage, Trace, TraceError};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

const MAGIC: &[u8] = b"consort trace\n";
/// Layout that is written. Layout 1 has fewer kinds of operations and no parts in fused pairs.
const VERSION: u8 = 2;
/// Oldest layout that is read.
const OLDEST: u8 = 1;
/// Largest section that is read, bytes.
const MOST_SECTION: u64 = 1 << 30;
/// Largest file that is read, bytes.
const MOST_FILE: u64 = 1 << 30;

impl Trace {
    /// Reads a trace and checks all of it.
    ///
    /// # Errors
    ///
    /// [`TraceError`] if the file cannot be read, is no trace, or is not as it was written.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST_FILE).read_to_end(&mut bytes));
        read.map_err(|source| TraceError::from_io("read", path, source))?;
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err(TraceError::Foreign {
                path: path.to_owned(),
            });
        };
        match rest.split_first() {
            Some((OLDEST..=VERSION, body)) => {
                decode(body).map_err(|reason| TraceError::from_damage(path, reason))
            }
            Some((&found, _)) => Err(TraceError::Version {
                path: path.to_owned(),
                found,
                oldest: OLDEST,
                known: VERSION,
            }),
            None => Err(TraceError::from_damage(path, Damage::Truncated)),
        }
    }

    /// Reads a trace from the bytes of a file.
    ///
    /// # Errors
    ///
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Damage> {
        match bytes.strip_prefix(MAGIC).and_then(<[u8]>::split_first) {
            Some((OLDEST..=VERSION, body)) => decode(body),
            _ => Err(Damage::Value),
        }
    }

    /// Bytes of the trace as a file has them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(VERSION);
        put_section(&mut out, &encode_head(&self.about, &self.threads));
        put_section(&mut out, &self.code.encode());
        for streams in &self.streams {
            put_section(&mut out, &streams.successors);
            put_section(&mut out, &streams.outcomes);
            put_section(&mut out, &streams.targets);
            put_section(&mut out, &streams.addresses);
        }
        out
    }

    /// Writes the trace to a temporary file in the same folder and moves it to `path`, so that
    /// `path` is never half written.
    ///
    /// # Errors
    ///
    /// [`TraceError::File`] if that is not possible; `path` is then as it was.
    pub fn save(&self, path: &Path) -> Result<(), TraceError> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let written =
            NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).and_then(|mut file| {
                file.write_all(&self.to_bytes())?;
                file.as_file().sync_data()?;
                // Temporary files are private; a trace is readable like other files.
                file.as_file()
                    .set_permissions(Permissions::from_mode(0o644))?;
                file.persist(path).map_err(|error| error.error)
            });
        written.map_err(|source| TraceError::from_io("write", path, source))?;
        Ok(())
    }
}

fn put_section(out: &mut Vec<u8>, raw: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let packed = encoder.write_all(raw).and_then(|()| encoder.finish());
    let packed = packed.unwrap_or_default();
    put_number(out, raw.len() as u64);
    put_number(out, packed.len() as u64);
    out.extend_from_slice(&packed);
}

fn read_section(reader: &mut ByteReader) -> Result<Vec<u8>, Damage> {
    let length = reader.read_number()?;
    if length > MOST_SECTION {
        return Err(Damage::TooLarge);
    }
    let packed_length = reader.read_number()?;
    let packed = reader.take(packed_length)?;
    let mut raw = Vec::new();
    let decoder = ZlibDecoder::new(packed)
        .take(length + 1)
        .read_to_end(&mut raw);
    decoder.map_err(|_| Damage::Section)?;
    let whole = raw.len() as u64 == length;
    whole.then_some(raw).ok_or(Damage::Section)
}

fn decode(body: &[u8]) -> Result<Trace, Damage> {
    let mut reader = ByteReader::new(body);
    let (about, threads) = decode_head(&read_section(&mut reader)?)?;
    let code = TraceCode::decode(&read_section(&mut reader)?)?;
    let mut streams = Vec::new();
    for _ in &threads {
        streams.push(ThreadStreams {
            successors: read_section(&mut reader)?,
            outcomes: read_section(&mut reader)?,
            targets: read_section(&mut reader)?,
            addresses: read_section(&mut reader)?,
        });
    }
    if !reader.is_at_end() {
        return Err(Damage::Excess);
    }
    let trace = Trace {
        about,
        threads,
        code,
        streams,
    };
    check(&trace)?;
    Ok(trace)
}

/// Decodes every operation once, so that later readers cannot meet damage.
fn check(trace: &Trace) -> Result<(), Damage> {
    for (number, thread) in trace.threads.iter().enumerate() {
        let mut ops = trace.thread_ops(number);
        let (mut operations, mut instructions) = (0_u64, 0_u64);
        while let Some(op) = ops.step()? {
            operations += 1;
            instructions += u64::from(op.first);
        }
        let counted = (operations, instructions) == (thread.operations, thread.instructions);
        if !counted || !ops.is_at_end() {
            return Err(Damage::Count);
        }
    }
    Ok(())
}

/// Threads that a trace can have.
const MOST_THREADS: u64 = 4096;

/// Account of what was recorded, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceInfo {
    /// Name of the program.
    pub program: String,
    /// Instructions that the program executed, recorded or not, of all threads; those before the
    /// recording began included.
    pub executed: u64,
    /// Instructions before the first that is recorded.
    pub skipped: u64,
    /// Sampling of the remaining instructions; `None` if all are recorded.
    pub sampling: Option<TraceSampling>,
}

/// Systematic sampling, in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSampling {
    /// From the beginning of a window to that of the next.
    pub every: u64,
    /// Length of a window.
    pub window: u64,
    /// Instructions before each window that warm caches and predictors and count for nothing else.
    pub warm: u64,
}

/// A thread of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadTrace {
    /// Name, or role.
    pub name: String,
    /// Instructions recorded.
    pub instructions: u64,
    /// Operations recorded.
    pub operations: u64,
}

pub(super) fn encode_head(about: &TraceInfo, threads: &[ThreadTrace]) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(&mut out, &about.program);
    put_number(&mut out, about.executed);
    put_number(&mut out, about.skipped);
    let sampling = about.sampling.unwrap_or(TraceSampling {
        every: 0,
        window: 0,
        warm: 0,
    });
    for number in [sampling.every, sampling.window, sampling.warm] {
        put_number(&mut out, number);
    }
    put_number(&mut out, threads.len() as u64);
    for thread in threads {
        put_text(&mut out, &thread.name);
        put_number(&mut out, thread.instructions);
        put_number(&mut out, thread.operations);
    }
    out
}

pub(super) fn decode_head(bytes: &[u8]) -> Result<(TraceInfo, Vec<ThreadTrace>), Damage> {
    let mut reader = ByteReader::new(bytes);
    let about = TraceInfo {
        program: reader.read_text()?,
        executed: reader.read_number()?,
        skipped: reader.read_number()?,
        sampling: read_sampling(&mut reader)?,
    };
    let count = reader.read_number()?;
    if count > MOST_THREADS {
        return Err(Damage::Value);
    }
    let threads = (0..count)
        .map(|_| read_thread(&mut reader))
        .collect::<Result<_, _>>()?;
    if !reader.is_at_end() {
        return Err(Damage::Excess);
    }
    Ok((about, threads))
}

fn read_sampling(reader: &mut ByteReader) -> Result<Option<TraceSampling>, Damage> {
    let sampling = TraceSampling {
        every: reader.read_number()?,
        window: reader.read_number()?,
        warm: reader.read_number()?,
    };
    Ok((sampling.every > 0).then_some(sampling))
}

fn read_thread(reader: &mut ByteReader) -> Result<ThreadTrace, Damage> {
    Ok(ThreadTrace {
        name: reader.read_text()?,
        instructions: reader.read_number()?,
        operations: reader.read_number()?,
    })
}
