//! Records of a perf ring buffer, parsed from bytes.
//!
//! Layouts are those of `perf_event_open(2)`, "MMAP layout", for events with
//! `sample_id_all` and the sample fields IP, TID, TIME, CPU and REGS_USER (module `attr`).
//! Pure: any bytes are accepted, and bytes that cannot be read are an error, never a panic.

use consort_isa::{Arch, GENERAL_REGISTERS, RegisterValues};
use thiserror::Error;

/// Bytes of a record's header: type (4), flags (2), size (2).
pub const HEADER_BYTES: usize = 8;

/// The thread that ran when a record was written, with CPU and time; the `sample_id` trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Process id of the running thread.
    pub pid: u32,
    /// Kernel thread id of the running thread.
    pub tid: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The CPU's number.
    pub pu: u32,
}

/// A new or ended thread (`PERF_RECORD_FORK`, `PERF_RECORD_EXIT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Process id.
    pub pid: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Process id of the parent.
    pub parent_pid: u32,
    /// Kernel thread id of the parent.
    pub parent_tid: u32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
}

/// An executable mapping (`PERF_RECORD_MMAP2`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmapRecord {
    /// Process id.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// Length, bytes.
    pub len: u64,
    /// Offset of the first byte in the file, bytes.
    pub file_offset: u64,
    /// Major and minor number of the file's device; 0 and 0 for anonymous memory.
    pub device: (u32, u32),
    /// Inode number of the file; 0 for anonymous memory.
    pub inode: u64,
    /// Generation of the inode: it distinguishes files that had the inode number one after the other;
    /// 0 where the file system has none.
    pub generation: u64,
    /// `PROT_*` bits.
    pub prot: u32,
    /// Path of the file, or a name such as `//anon` or `[vdso]`.
    pub path: String,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    /// The thread was sampled.
    Sample {
        /// Address of the oldest instruction that had not retired.
        ip: u64,
        /// Instruction set that the thread ran in: a process may have code of two widths. `None` if
        /// it cannot be decoded, or if the kernel does not give it.
        arch: Option<Arch>,
        /// The general registers of 64-bit code on x86.
        registers: Option<Box<RegisterValues>>,
        /// The thread, its CPU and the time.
        stamp: Stamp,
    },
    /// A thread or process was started.
    Fork(TaskRecord),
    /// A thread ended.
    Exit(TaskRecord),
    /// A thread was renamed, or executes a new program.
    Comm {
        /// Process id.
        pid: u32,
        /// Kernel thread id.
        tid: u32,
        /// True if the new name comes from an `exec`.
        exec: bool,
        /// The new name; bytes that are no UTF-8 are replaced.
        name: String,
        /// `CLOCK_MONOTONIC`, ns.
        time_ns: u64,
    },
    /// Executable memory was mapped, or memory became executable.
    Mmap2(MmapRecord),
    /// The ring was full, so that records were lost.
    Lost {
        /// Number of records that were not written.
        count: u64,
    },
    /// Sampling was paused or resumed by the kernel.
    Throttle {
        /// True if it was paused.
        paused: bool,
    },
    /// Any other kind of record; nothing here needs it.
    Other {
        /// `PERF_RECORD_*` number of the kind.
        kind: u32,
    },
}

/// Reason for which bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PerfRecordError {
    /// There are fewer bytes than a header has.
    #[error("{0} bytes are too few for a record header of 8 bytes")]
    NoHeader(usize),
    /// The size would never advance the reader, or is beyond the bytes at hand.
    #[error("record size {size} is outside 8..={available}")]
    BadSize {
        /// Size in the header, bytes.
        size: usize,
        /// Bytes at hand.
        available: usize,
    },
    /// The fields of the record's kind do not fit into its size.
    #[error("record of kind {kind} with {size} bytes is too short for its fields")]
    TooShort {
        /// `PERF_RECORD_*` number.
        kind: u32,
        /// Size of the record, bytes.
        size: usize,
    },
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
/// `PERF_RECORD_MISC_COMM_EXEC` of a COMM record.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Bytes of the `sample_id` trailer: pid, tid, time, cpu, reserved.
const STAMP_BYTES: usize = 24;

/// The size of the record that begins with these bytes.
///
/// # Errors
/// When there is no whole header, or a size below the header's own.
pub fn record_size(header: &[u8]) -> Result<usize, PerfRecordError> {
    let size = header
        .get(6..HEADER_BYTES)
        .ok_or(PerfRecordError::NoHeader(header.len()))?;
    let size = usize::from(u16::from_ne_bytes([size[0], size[1]]));
    if size < HEADER_BYTES {
        let available = header.len();
        return Err(PerfRecordError::BadSize { size, available });
    }
    Ok(size)
}

/// The kind of the record that begins with these bytes, 0 when there is no header.
pub(crate) fn kind_of(header: &[u8]) -> u32 {
    PerfRecordFields(header).u32(0).unwrap_or(0)
}

/// Returns true if a kind of record is a sample.
pub(crate) fn is_sample(kind: u32) -> bool {
    kind == SAMPLE
}

/// Returns true if a record is of the beginning or end of a thread, or of an `exec`.
pub(crate) fn is_lifecycle_record(bytes: &[u8]) -> bool {
    match kind_of(bytes) {
        FORK | EXIT => true,
        COMM => bytes
            .get(4..6)
            .is_some_and(|misc| u16::from_ne_bytes([misc[0], misc[1]]) & MISC_COMM_EXEC != 0),
        _ => false,
    }
}

/// Process and time that a record is about, read without parsing all of it: records of strangers
/// are dropped by these. `None` for records about the ring itself.
pub(crate) fn process_and_time(bytes: &[u8]) -> Option<(u32, u64)> {
    let kind = kind_of(bytes);
    let body = PerfRecordFields(bytes.get(HEADER_BYTES..)?);
    match kind {
        SAMPLE => Some((body.u32(8)?, body.u64(16)?)),
        FORK | EXIT | COMM | MMAP2 => Some((body.u32(0)?, body.stamp()?.time_ns)),
        _ => None,
    }
}

impl PerfRecord {
    /// Parses the first record of some bytes; its length is [`record_size`].
    ///
    /// # Errors
    /// When the size is impossible or the fields do not fit into it.
    pub fn parse(bytes: &[u8]) -> Result<Self, PerfRecordError> {
        let size = record_size(bytes)?;
        let available = bytes.len();
        let bytes = bytes
            .get(..size)
            .ok_or(PerfRecordError::BadSize { size, available })?;
        let kind = kind_of(bytes);
        let misc = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let body = PerfRecordFields(&bytes[HEADER_BYTES..]);
        Self::from_kind(kind, misc, body).ok_or(PerfRecordError::TooShort { kind, size })
    }

    fn from_kind(kind: u32, misc: u16, body: PerfRecordFields<'_>) -> Option<Self> {
        Some(match kind {
            SAMPLE => sample(body)?,
            FORK => Self::Fork(task(body)?),
            EXIT => Self::Exit(task(body)?),
            COMM => comm(body, misc & MISC_COMM_EXEC != 0)?,
            MMAP2 => Self::Mmap2(mapping(body)?),
            LOST => Self::Lost {
                count: body.u64(8)?,
            },
            LOST_SAMPLES => Self::Lost {
                count: body.u64(0)?,
            },
            THROTTLE | UNTHROTTLE => Self::Throttle {
                paused: kind == THROTTLE,
            },
            _ => Self::Other { kind },
        })
    }

    /// Time at which the record was written, `CLOCK_MONOTONIC`, ns, for records that are kept in
    /// order.
    pub fn time_ns(&self) -> Option<u64> {
        match self {
            Self::Sample { stamp, .. } => Some(stamp.time_ns),
            Self::Fork(task) | Self::Exit(task) => Some(task.time_ns),
            Self::Comm { time_ns, .. } => Some(*time_ns),
            Self::Mmap2(mapping) => Some(mapping.time_ns),
            Self::Lost { .. } | Self::Throttle { .. } | Self::Other { .. } => None,
        }
    }
}

fn sample(body: PerfRecordFields<'_>) -> Option<PerfRecord> {
    let stamp = Stamp {
        pid: body.u32(8)?,
        tid: body.u32(12)?,
        time_ns: body.u64(16)?,
        pu: body.u32(24)?,
    };
    Some(PerfRecord::Sample {
        ip: body.u64(0)?,
        arch: body.u64(32).and_then(arch_of_abi),
        registers: registers(body, 32).map(Box::new),
        stamp,
    })
}

/// `PERF_SAMPLE_REGS_ABI_32` of `perf_event_open(2)`.
const ABI_32: u64 = 1;
/// `PERF_SAMPLE_REGS_ABI_64` of `perf_event_open(2)`.
const ABI_64: u64 = 2;

/// Instruction set of a sample's register ABI. On x86 the kernel takes it from the code segment of
/// the sampled thread (since Linux 5.11; earlier from the program file).
fn arch_of_abi(abi: u64) -> Option<Arch> {
    match (std::env::consts::ARCH, abi) {
        ("x86_64" | "x86", ABI_32) => Some(Arch::X86_32),
        ("x86_64" | "x86", ABI_64) => Some(Arch::X86_64),
        // The 32-bit instruction sets of Arm cannot be decoded.
        ("aarch64", ABI_64) => Some(Arch::Aarch64),
        _ => None,
    }
}

/// Position at which the kernel writes the register of each hardware number: its order is a, b, c,
/// d, si, di, bp, sp, r8 to r15.
const KERNEL_POSITION: [usize; GENERAL_REGISTERS] =
    [0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The registers at `at`, after the register ABI; `None` unless it is 64-bit x86.
fn registers(body: PerfRecordFields<'_>, at: usize) -> Option<RegisterValues> {
    if body.u64(at).and_then(arch_of_abi) != Some(Arch::X86_64) {
        return None;
    }
    let mut values = [0; GENERAL_REGISTERS];
    for (value, position) in values.iter_mut().zip(KERNEL_POSITION) {
        *value = body.u64(at + 8 * (1 + position))?;
    }
    Some(RegisterValues(values))
}

fn task(body: PerfRecordFields<'_>) -> Option<TaskRecord> {
    Some(TaskRecord {
        pid: body.u32(0)?,
        parent_pid: body.u32(4)?,
        tid: body.u32(8)?,
        parent_tid: body.u32(12)?,
        time_ns: body.stamp()?.time_ns,
    })
}

fn comm(body: PerfRecordFields<'_>, exec: bool) -> Option<PerfRecord> {
    Some(PerfRecord::Comm {
        pid: body.u32(0)?,
        tid: body.u32(4)?,
        exec,
        name: body.text(8)?,
        time_ns: body.stamp()?.time_ns,
    })
}

fn mapping(body: PerfRecordFields<'_>) -> Option<MmapRecord> {
    Some(MmapRecord {
        pid: body.u32(0)?,
        start: body.u64(8)?,
        len: body.u64(16)?,
        file_offset: body.u64(24)?,
        device: (body.u32(32)?, body.u32(36)?),
        inode: body.u64(40)?,
        generation: body.u64(48)?,
        prot: body.u32(56)?,
        path: body.text(64)?,
        time_ns: body.stamp()?.time_ns,
    })
}

/// The bytes after a record's header.
#[derive(Clone, Copy)]
struct PerfRecordFields<'a>(&'a [u8]);

impl PerfRecordFields<'_> {
    fn u32(self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn u64(self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The text at `at`, up to its zero byte or the trailer.
    fn text(self, at: usize) -> Option<String> {
        let end = self.0.len().checked_sub(STAMP_BYTES)?;
        let bytes = self.0.get(at..end)?;
        let len = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }

    fn stamp(self) -> Option<Stamp> {
        let at = self.0.len().checked_sub(STAMP_BYTES)?;
        Some(Stamp {
            pid: self.u32(at)?,
            tid: self.u32(at + 4)?,
            time_ns: self.u64(at + 8)?,
            pu: self.u32(at + 16)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(HEADER_BYTES + body.len()).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn trailer() -> Vec<u8> {
        words(&[1, 2, 77, 0, 3, 0])
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = PerfRecord::parse(&bytes);
        }

        #[test]
        fn any_body_of_any_kind_is_parsed_or_refused(
            kind in 0u32..24, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            let bytes = record(kind, misc, &body);
            match PerfRecord::parse(&bytes) {
                Ok(_) => prop_assert_eq!(record_size(&bytes), Ok(bytes.len())),
                Err(e) => prop_assert_eq!(e, PerfRecordError::TooShort { kind, size: bytes.len() }),
            }
        }

        #[test]
        fn samples_are_read_back(ip: u64, pid: u32, tid: u32, time_ns: u64, pu: u32) {
            let mut body = ip.to_ne_bytes().to_vec();
            body.extend(words(&[pid, tid]));
            body.extend(time_ns.to_ne_bytes());
            body.extend(words(&[pu, 0]));
            let stamp = Stamp { pid, tid, time_ns, pu };
            let registers = None;
            let expect = PerfRecord::Sample { ip, arch: None, registers, stamp };
            prop_assert_eq!(PerfRecord::parse(&record(SAMPLE, 2, &body)), Ok(expect));
        }
    }

    /// A sample with registers, each of which holds the kernel's number of itself.
    fn with_registers(abi: u64) -> (Option<Arch>, Option<Box<RegisterValues>>) {
        let mut body = vec![0; 32];
        for word in std::iter::once(abi).chain(0..16) {
            body.extend(word.to_ne_bytes());
        }
        match PerfRecord::parse(&record(SAMPLE, 2, &body)) {
            Ok(PerfRecord::Sample {
                arch, registers, ..
            }) => (arch, registers),
            other => panic!("not a sample: {other:?}"),
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn registers_are_put_into_hardware_order() {
        let (arch, registers) = with_registers(ABI_64);
        assert_eq!(arch, Some(Arch::X86_64));
        let registers = registers.expect("64-bit code");
        // rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi
        assert_eq!(registers.0[..8], [0, 2, 3, 1, 7, 6, 4, 5]);
        assert_eq!(registers.0[8..], [8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(with_registers(ABI_32), (Some(Arch::X86_32), None));
        assert_eq!(with_registers(0), (None, None));
    }

    #[test]
    fn a_record_without_size_is_refused() {
        let error = PerfRecord::parse(&[0; 64]);
        assert_eq!(
            error,
            Err(PerfRecordError::BadSize {
                size: 0,
                available: 64
            })
        );
    }

    #[test]
    fn forks_carry_the_trailer_time() {
        let mut body = words(&[10, 20, 11, 21, 5, 0]);
        body.extend(trailer());
        let expect = TaskRecord {
            pid: 10,
            tid: 11,
            parent_pid: 20,
            parent_tid: 21,
            time_ns: 77,
        };
        assert_eq!(
            PerfRecord::parse(&record(FORK, 0, &body)),
            Ok(PerfRecord::Fork(expect))
        );
    }

    #[test]
    fn names_end_at_zero_and_show_execs() {
        let mut body = words(&[10, 11]);
        body.extend(b"a) b\n\0\0\0");
        body.extend(trailer());
        let expect = PerfRecord::Comm {
            pid: 10,
            tid: 11,
            exec: true,
            name: "a) b\n".into(),
            time_ns: 77,
        };
        assert_eq!(
            PerfRecord::parse(&record(COMM, MISC_COMM_EXEC, &body)),
            Ok(expect)
        );
    }

    #[test]
    fn mappings_tell_file_and_place() {
        let mut body = words(&[10, 11]);
        for word in [0x1000u64, 0x2000, 0x3000] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(words(&[8, 1]));
        for word in [99u64, 3] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(words(&[5, 2]));
        body.extend(b"/bin/x\0\0");
        body.extend(trailer());
        let Ok(PerfRecord::Mmap2(mapping)) = PerfRecord::parse(&record(MMAP2, 0, &body)) else {
            panic!("not a mapping");
        };
        let seen = (mapping.start, mapping.len, mapping.file_offset);
        assert_eq!(seen, (0x1000, 0x2000, 0x3000));
        let file = (mapping.device, mapping.inode, mapping.generation);
        assert_eq!((file, mapping.prot), (((8, 1), 99, 3), 5));
        assert_eq!((mapping.path.as_str(), mapping.time_ns), ("/bin/x", 77));
    }
}
