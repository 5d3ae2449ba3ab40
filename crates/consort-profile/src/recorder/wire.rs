//! Messages of the plugin, as plugin/recorder.c writes them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

use super::blocks::Blocks;
use super::lane::Lane;
use super::words::words;
use super::{Call, Deed, EndReason, Event, RecordError, Sink};

const DESCRIBED: u32 = 1;
const EXECUTED: u32 = 2;
const FINISHED: u32 = 3;
const HAPPENED: u32 = 4;
/// Words of an event.
const EVENT: usize = 7;
/// Largest part that is sent, bytes.
const MOST_BYTES: u64 = 1 << 21;

/// Tells `sink` all that comes from `channel`; gives the instructions executed and why it ended.
pub(super) fn hear(
    channel: impl Read,
    sink: &mut dyn Sink,
) -> Result<(u64, EndReason), RecordError> {
    // Parts that are larger pass it by.
    let mut channel = BufReader::with_capacity(1 << 18, channel);
    let mut bytes = Vec::new();
    let mut blocks = Blocks::default();
    let mut lanes: BTreeMap<u32, Lane> = BTreeMap::new();
    let mut ended = None;
    while let Some((kind, thread)) = part(&mut channel, &mut bytes)? {
        match kind {
            DESCRIBED => blocks.describe(&bytes)?,
            EXECUTED => {
                let number = thread as usize;
                let lane = lanes.entry(thread).or_insert_with(|| Lane::new(number));
                lane.hear(&bytes, &blocks, sink)?;
            }
            HAPPENED => events(&bytes, sink)?,
            FINISHED => ended = Some(end(&bytes)?),
            _ => return Err(RecordError::Garbled { at: "a part" }),
        }
    }
    for lane in lanes.values_mut() {
        lane.finish(&blocks, sink);
    }
    let heard = lanes.values().map(Lane::heard).sum();
    Ok(ended.unwrap_or((heard, EndReason::Cut)))
}

/// Kind and thread of the next part, which is put into `bytes`; nothing when the emulator has gone,
/// be it in the middle of one.
fn part(channel: &mut impl Read, bytes: &mut Vec<u8>) -> Result<Option<(u32, u32)>, RecordError> {
    let mut header = [0; 16];
    if !filled(channel, &mut header)? {
        return Ok(None);
    }
    let number = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let length = u64::from(number(8)) | u64::from(number(12)) << 32;
    if length > MOST_BYTES {
        return Err(RecordError::Garbled { at: "a length" });
    }
    bytes.resize(length as usize, 0);
    let whole = filled(channel, bytes)?;
    Ok(whole.then(|| (number(0), number(4))))
}

fn filled(channel: &mut impl Read, into: &mut [u8]) -> Result<bool, RecordError> {
    match channel.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(RecordError::system("hear from the emulator", error)),
    }
}

fn end(bytes: &[u8]) -> Result<(u64, EndReason), RecordError> {
    let mut words = words(bytes);
    let reason = match words.next() {
        Some(0) => EndReason::Exited,
        Some(1) => EndReason::Limit,
        Some(2) => EndReason::Replaced,
        _ => return Err(RecordError::Garbled { at: "the end" }),
    };
    let executed = words.next().ok_or(RecordError::Garbled { at: "the end" })?;
    Ok((executed, reason))
}

fn events(bytes: &[u8], sink: &mut dyn Sink) -> Result<(), RecordError> {
    let words: Vec<u64> = words(bytes).collect();
    let (events, rest) = words.as_chunks::<EVENT>();
    if !rest.is_empty() {
        return Err(RecordError::Garbled { at: "an event" });
    }
    for words in events {
        sink.event(&event(words)?);
    }
    Ok(())
}

fn event(words: &[u64; EVENT]) -> Result<Event, RecordError> {
    let [who, number, a1, a2, a3, executed, executed_by_first] = *words;
    let arguments = [a1, a2, a3];
    let deed = match who >> 32 {
        0 => Deed::Began,
        1 => Deed::Ended,
        2 => Deed::Called(Call { number, arguments }),
        3 => Deed::Returned(a1.cast_signed()),
        _ => return Err(RecordError::Garbled { at: "an event" }),
    };
    Ok(Event {
        thread: (who & 0xffff_ffff) as usize,
        deed,
        executed,
        executed_by_first,
    })
}
