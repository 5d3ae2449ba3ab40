//! Messages of the plugin, as plugin/recorder.c writes them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use super::blocks::BlockTable;
use super::thread_decoder::ThreadDecoder;
use super::words::words;
use super::{EndReason, ExecutionSink, ProgramEvent, ProgramRecordError, SystemCall, ThreadAction};

const DESCRIBED: u32 = 1;
const EXECUTED: u32 = 2;
const FINISHED: u32 = 3;
const HAPPENED: u32 = 4;
const PROGRESSED: u32 = 5;
/// Words of an event.
const EVENT: usize = 7;
/// Largest part that the plugin sends, bytes.
const MOST_BYTES: u64 = 1 << 21;

/// Reports everything from `channel` to `sink`. Returns the number of executed instructions and the
/// reason of the end.
pub(super) fn read_messages(
    channel: impl Read,
    sink: &mut dyn ExecutionSink,
) -> Result<(u64, EndReason), ProgramRecordError> {
    // Larger parts bypass the buffer.
    let mut channel = BufReader::with_capacity(1 << 18, channel);
    let mut bytes = Vec::new();
    let mut blocks = BlockTable::default();
    let mut lanes: BTreeMap<u32, ThreadDecoder> = BTreeMap::new();
    let (mut ended, mut progressed) = (None, 0);
    while let Some((kind, thread)) = read_part(&mut channel, &mut bytes)? {
        match kind {
            DESCRIBED => blocks.add_descriptions(&bytes)?,
            EXECUTED => {
                let number = thread as usize;
                let lane = lanes
                    .entry(thread)
                    .or_insert_with(|| ThreadDecoder::new(number));
                lane.decode_words(&bytes, &blocks, sink)?;
            }
            HAPPENED => deliver_events(&bytes, sink)?,
            FINISHED => ended = Some(parse_end(&bytes)?),
            PROGRESSED => progressed = words(&bytes).next().unwrap_or(progressed),
            _ => return Err(ProgramRecordError::Garbled { at: "a part" }),
        }
    }
    for lane in lanes.values_mut() {
        lane.finish(&blocks, sink);
    }
    let received: u64 = lanes.values().map(ThreadDecoder::instruction_count).sum();
    Ok(ended.unwrap_or((received.max(progressed), EndReason::Cut)))
}

/// Kind and thread of the next part, whose content goes to `bytes`; `None` when the emulator has
/// ended, even in the middle of a part.
fn read_part(
    channel: &mut impl Read,
    bytes: &mut Vec<u8>,
) -> Result<Option<(u32, u32)>, ProgramRecordError> {
    let mut header = [0; 16];
    if !fill_buffer(channel, &mut header)? {
        return Ok(None);
    }
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let length = u64::from(number(8)) | u64::from(number(12)) << 32;
    if length > MOST_BYTES {
        return Err(ProgramRecordError::Garbled { at: "a length" });
    }
    bytes.resize(length as usize, 0);
    let whole = fill_buffer(channel, bytes)?;
    Ok(whole.then(|| (number(0), number(4))))
}

fn fill_buffer(channel: &mut impl Read, into: &mut [u8]) -> Result<bool, ProgramRecordError> {
    match channel.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(ProgramRecordError::system_error(
            "hear from the emulator",
            error,
        )),
    }
}

fn parse_end(bytes: &[u8]) -> Result<(u64, EndReason), ProgramRecordError> {
    let mut words = words(bytes);
    let reason = match words.next() {
        Some(0) => EndReason::Exited,
        Some(1) => EndReason::Limit,
        Some(2) => EndReason::Replaced,
        _ => return Err(ProgramRecordError::Garbled { at: "the end" }),
    };
    let executed = words
        .next()
        .ok_or(ProgramRecordError::Garbled { at: "the end" })?;
    Ok((executed, reason))
}

fn deliver_events(bytes: &[u8], sink: &mut dyn ExecutionSink) -> Result<(), ProgramRecordError> {
    let words: Vec<u64> = words(bytes).collect();
    let (events, rest) = words.as_chunks::<EVENT>();
    if !rest.is_empty() {
        return Err(ProgramRecordError::Garbled { at: "an event" });
    }
    for words in events {
        sink.record_event(&parse_event(words)?);
    }
    Ok(())
}

fn parse_event(words: &[u64; EVENT]) -> Result<ProgramEvent, ProgramRecordError> {
    let [who, number, a1, a2, a3, executed, executed_by_first] = *words;
    let arguments = [a1, a2, a3];
    let deed = match who >> 32 {
        0 => ThreadAction::Began,
        1 => ThreadAction::Ended,
        2 => ThreadAction::Called(SystemCall { number, arguments }),
        3 => ThreadAction::Returned(a1.cast_signed()),
        _ => return Err(ProgramRecordError::Garbled { at: "an event" }),
    };
    Ok(ProgramEvent {
        thread: (who & 0xffff_ffff) as usize,
        deed,
        executed,
        executed_by_first,
    })
}
