//! Requests to the reading process, and its replies, as packets.

use serde::{Deserialize, Serialize};

/// A page of a process, to be read from the memory of one of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Address of the first byte.
    pub(crate) start: u64,
}

/// A mapped file: its path, and the numbers that prove that a file is the one that was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FileRef {
    /// The path as the mapping program had it, in its own root and mount namespace.
    pub(crate) path: String,
    /// Major and minor number of the device.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// Processes that may have the same root as the one that has mapped it, the likeliest first.
    pub(crate) seen_by: Vec<u32>,
}

/// A thing to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReadRequest {
    /// The lines of `/proc/PID/maps` that are of executable files, or of the vDSO.
    Maps { pid: u32 },
    /// `len` bytes of the memory whose file comes with the request; nothing if one is missing.
    Memory { start: u64, len: usize },
    /// At most `len` bytes of a file.
    Code {
        file: FileRef,
        offset: u64,
        len: usize,
    },
    /// Time of change of a file, ns since 1970, as 8 bytes.
    Change { file: FileRef },
}

/// A request within a round; files are kept open until another round begins.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Packet {
    pub(super) round: u64,
    pub(super) request: ReadRequest,
}

/// Most bytes of a reply that one packet holds.
pub(super) const PART_BYTES: usize = 64 << 10;
/// Bytes before those of the reply: one that is 1 if another packet follows, and the CPU time of the
/// process, ns.
const HEAD_BYTES: usize = 9;
/// Most bytes of any packet: a request's path has up to 4,096 bytes, each up to six when escaped.
pub(super) const PACKET_BYTES: usize = PART_BYTES + HEAD_BYTES;

/// A part of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplyPart<'a> {
    pub(super) has_next: bool,
    /// CPU time of the reading process so far, ns.
    pub(super) cpu_ns: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> ReplyPart<'a> {
    pub(super) fn from_packet(packet: &'a [u8]) -> Option<Self> {
        let (head, bytes) = packet.split_at_checked(HEAD_BYTES)?;
        Some(Self {
            has_next: head[0] == 1,
            cpu_ns: u64::from_ne_bytes(head[1..].try_into().ok()?),
            bytes,
        })
    }

    pub(super) fn to_packet(&self) -> Vec<u8> {
        let mut packet = vec![u8::from(self.has_next)];
        packet.extend(self.cpu_ns.to_ne_bytes());
        packet.extend(self.bytes);
        packet
    }
}

/// Origin of bytes: what is left alone once it did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadTarget {
    Page { pid: u32, start: u64 },
    File { device: (u32, u32), inode: u64 },
    Maps { pid: u32 },
}

impl ReadTarget {
    pub(super) fn from_file(file: &FileRef) -> Self {
        let (device, inode) = (file.device, file.inode);
        Self::File { device, inode }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_packet_is_a_part_or_refused(packet in prop::collection::vec(any::<u8>(), 0..40)) {
            let part = ReplyPart::from_packet(&packet);
            prop_assert_eq!(part.is_some(), packet.len() >= HEAD_BYTES);
        }
    }

    #[test]
    fn parts_are_read_back() {
        let part = ReplyPart {
            has_next: true,
            cpu_ns: 7,
            bytes: b"code",
        };
        assert_eq!(ReplyPart::from_packet(&part.to_packet()), Some(part));
    }

    #[test]
    fn longest_request_fits_a_packet() {
        let file = FileRef {
            path: "\u{1}".repeat(4096),
            device: (u32::MAX, u32::MAX),
            inode: u64::MAX,
            seen_by: vec![u32::MAX; 16],
        };
        let request = ReadRequest::Code {
            file,
            offset: u64::MAX,
            len: usize::MAX,
        };
        let packet = Packet {
            round: u64::MAX,
            request,
        };
        assert!(serde_json::to_vec(&packet).unwrap().len() < PACKET_BYTES);
    }
}
