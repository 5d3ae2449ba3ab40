//! Head of a trace: its description of itself.

use super::bytes::{ByteReader, put_number, put_text};
use super::error::Damage;

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
    /// Choice of the others that are recorded; all where there is none.
    pub sampling: Option<TraceSampling>,
}

/// Systematic sampling, in instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSampling {
    /// From the beginning of a window to that of the next.
    pub every: u64,
    /// Length of a window.
    pub window: u64,
    /// Instructions before each window that warm caches and predictors and count for nothing
    /// else.
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

pub(super) fn encode(about: &TraceInfo, threads: &[ThreadTrace]) -> Vec<u8> {
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

pub(super) fn decode(bytes: &[u8]) -> Result<(TraceInfo, Vec<ThreadTrace>), Damage> {
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
