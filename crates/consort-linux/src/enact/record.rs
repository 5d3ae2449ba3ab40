//! The journal's lines.
//!
//! A journal is text. Its first line is the header
//!
//! ```text
//! consort-journal 1 RUN BOOT PIDNS PID START
//! ```
//!
//! with the format version, the run's id, the boot id of the machine, the PID
//! namespace and the owner's pid and start time (clock ticks since boot). Each
//! further line is one record, its fields separated by single spaces:
//!
//! ```text
//! program PID START ROOT PGRP SESSION KIND PUS   a program under management
//! thread PID TID START KIND PUS                  a thread's original mask
//! mask ROOT PUS                                  a mask about to be written in a tree
//! leave PID TID START                            a thread that is not ours to restore
//! paused PID START                               a program about to be stopped
//! resumed PID START                              a program that was continued
//! freezer VERSION HOME NAME                      a cgroup about to be made for pausing
//! freezer-gone VERSION HOME NAME                 one that was removed
//! cookie ID                                      a core-scheduling cookie about to be given
//! ```
//!
//! ROOT is the pid of the program at the root of a tree of managed programs. KIND is `open` if the
//! thread was not pinned, else `pinned`; PUS is a Linux CPU list. VERSION is `v1` or `v2`,
//! HOME the directory of the cgroup that the processes came from, its unusual bytes in octal
//! (`\040`). A line counts once its newline is there: an action that it permits is taken only
//! afterwards, so a torn last line has had no effect.

use super::affinity::OriginalMask;
use crate::cgroup::CgroupVersion;
use crate::pause::FreezerCgroup;
use consort_core::{PuSet, ThreadId};
use std::ffi::OsString;
use std::fmt;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitAsciiWhitespace};
use thiserror::Error;

const MAGIC: &str = "consort-journal";
const VERSION: &str = "1";
/// Boot id in the journal of a run that could not read it: a service with systemd's
/// `ProcSubset=pid` sees processes in `/proc` and nothing else.
pub(crate) const UNKNOWN_BOOT: &str = "unknown";

/// Reason for which a line of a journal could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum JournalRecordError {
    /// The first line is not a header of this version.
    #[error("not a journal of version {VERSION}: '{0}'")]
    Header(String),
    /// A line is not a record.
    #[error("not a journal record: '{0}'")]
    Record(String),
}

/// The run that wrote a journal, with the boot and the PID namespace in which its numbers are
/// valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalHeader {
    pub run: String,
    pub boot_id: String,
    pub pid_namespace: String,
    pub pid: u32,
    pub start_ticks: u64,
}

/// A program under management.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManagedProgram {
    pub pid: u32,
    pub start_ticks: u64,
    /// Pid of the program at the root of its tree; its own for a root.
    pub root: u32,
    pub pgrp: u32,
    pub session: u32,
    /// Original mask for those of its threads that have none of their own.
    pub original: OriginalMask,
}

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalRecord {
    Program(ManagedProgram),
    Thread(ThreadId, OriginalMask),
    Mask { root: u32, pus: PuSet },
    Leave(ThreadId),
    Paused { pid: u32, start_ticks: u64 },
    Resumed { pid: u32, start_ticks: u64 },
    Freezer(FreezerCgroup),
    FreezerGone(FreezerCgroup),
    Cookie(u64),
}

impl fmt::Display for JournalHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run,
            boot_id,
            pid_namespace,
            pid,
            start_ticks,
        } = self;
        write!(
            f,
            "{MAGIC} {VERSION} {run} {boot_id} {pid_namespace} {pid} {start_ticks}"
        )
    }
}

impl JournalHeader {
    /// Returns true if the run belongs to this boot; also if one of the two boots is not known. Then
    /// pid and start time alone identify threads. In a folder in memory, where journals usually lie,
    /// all of them are of this boot anyway.
    pub(super) fn is_of_boot(&self, boot_id: Option<&str>) -> bool {
        self.boot_id == UNKNOWN_BOOT || boot_id.is_none_or(|now| now == self.boot_id)
    }
}

impl FromStr for JournalHeader {
    type Err = JournalRecordError;

    fn from_str(line: &str) -> Result<Self, JournalRecordError> {
        let mut fields = JournalFields(line.split_ascii_whitespace());
        let read = || {
            fields.expect_word(MAGIC)?;
            fields.expect_word(VERSION)?;
            let header = Self {
                run: fields.text()?,
                boot_id: fields.text()?,
                pid_namespace: fields.text()?,
                pid: fields.number()?,
                start_ticks: fields.number()?,
            };
            fields.expect_end(header)
        };
        read_or(read, || JournalRecordError::Header(line.to_owned()))
    }
}

impl fmt::Display for JournalRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(p) => {
                let (kind, pus) = kind_and_pus(&p.original);
                write!(f, "program {} {} {} ", p.pid, p.start_ticks, p.root)?;
                write!(f, "{} {} {kind} {pus}", p.pgrp, p.session)
            }
            Self::Thread(t, original) => {
                let (kind, pus) = kind_and_pus(original);
                write!(f, "thread {} {} {} ", t.pid, t.tid, t.start_ticks)?;
                write!(f, "{kind} {pus}")
            }
            Self::Mask { root, pus } => write!(f, "mask {root} {pus}"),
            Self::Leave(t) => write!(f, "leave {} {} {}", t.pid, t.tid, t.start_ticks),
            Self::Paused { pid, start_ticks } => write!(f, "paused {pid} {start_ticks}"),
            Self::Resumed { pid, start_ticks } => write!(f, "resumed {pid} {start_ticks}"),
            Self::Freezer(cgroup) => write_freezer(f, "freezer", cgroup),
            Self::FreezerGone(cgroup) => write_freezer(f, "freezer-gone", cgroup),
            Self::Cookie(id) => write!(f, "cookie {id}"),
        }
    }
}

impl FromStr for JournalRecord {
    type Err = JournalRecordError;

    fn from_str(line: &str) -> Result<Self, JournalRecordError> {
        let mut fields = JournalFields(line.split_ascii_whitespace());
        let read = || {
            let record = fields.record()?;
            fields.expect_end(record)
        };
        read_or(read, || JournalRecordError::Record(line.to_owned()))
    }
}

fn write_freezer(f: &mut fmt::Formatter<'_>, word: &str, cgroup: &FreezerCgroup) -> fmt::Result {
    let version = match cgroup.version {
        CgroupVersion::V1 => "v1",
        CgroupVersion::V2 => "v2",
    };
    let home = escape_path(&cgroup.home);
    write!(f, "{word} {version} {home} {}", cgroup.name)
}

fn kind_and_pus(original: &OriginalMask) -> (&'static str, &PuSet) {
    let kind = if original.open { "open" } else { "pinned" };
    (kind, &original.pus)
}

fn read_or<T>(
    mut read: impl FnMut() -> Option<T>,
    error: impl Fn() -> JournalRecordError,
) -> Result<T, JournalRecordError> {
    read().ok_or_else(error)
}

/// The fields of a line, taken one after the other.
struct JournalFields<'a>(SplitAsciiWhitespace<'a>);

impl JournalFields<'_> {
    fn text(&mut self) -> Option<String> {
        self.0.next().map(str::to_owned)
    }

    fn expect_word(&mut self, expected: &str) -> Option<()> {
        (self.0.next()? == expected).then_some(())
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    fn pus(&mut self) -> Option<PuSet> {
        let pus: PuSet = self.number()?;
        (!pus.is_empty()).then_some(pus)
    }

    fn original(&mut self) -> Option<OriginalMask> {
        let open = match self.0.next()? {
            "open" => true,
            "pinned" => false,
            _ => return None,
        };
        let pus = self.pus()?;
        Some(OriginalMask { pus, open })
    }

    fn thread(&mut self) -> Option<ThreadId> {
        Some(ThreadId {
            pid: self.number()?,
            tid: self.number()?,
            start_ticks: self.number()?,
        })
    }

    fn program(&mut self) -> Option<ManagedProgram> {
        Some(ManagedProgram {
            pid: self.number()?,
            start_ticks: self.number()?,
            root: self.number()?,
            pgrp: self.number()?,
            session: self.number()?,
            original: self.original()?,
        })
    }

    fn freezer(&mut self) -> Option<FreezerCgroup> {
        let version = match self.0.next()? {
            "v1" => CgroupVersion::V1,
            "v2" => CgroupVersion::V2,
            _ => return None,
        };
        Some(FreezerCgroup {
            version,
            home: unescape_path(self.0.next()?)?,
            name: self.text()?,
        })
    }

    fn record(&mut self) -> Option<JournalRecord> {
        Some(match self.0.next()? {
            "program" => JournalRecord::Program(self.program()?),
            "thread" => JournalRecord::Thread(self.thread()?, self.original()?),
            "mask" => JournalRecord::Mask {
                root: self.number()?,
                pus: self.pus()?,
            },
            "leave" => JournalRecord::Leave(self.thread()?),
            "paused" => JournalRecord::Paused {
                pid: self.number()?,
                start_ticks: self.number()?,
            },
            "resumed" => JournalRecord::Resumed {
                pid: self.number()?,
                start_ticks: self.number()?,
            },
            "freezer" => JournalRecord::Freezer(self.freezer()?),
            "freezer-gone" => JournalRecord::FreezerGone(self.freezer()?),
            "cookie" => JournalRecord::Cookie(self.number()?),
            _ => return None,
        })
    }

    fn expect_end<T>(&mut self, value: T) -> Option<T> {
        self.0.next().is_none().then_some(value)
    }
}

/// Writes a path without blanks and control characters: such bytes, the backslash and all beyond
/// ASCII become a backslash and three octal digits, as in `/proc/self/mountinfo`.
pub(super) fn escape_path(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_graphic() && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

/// Reads a path; none where a backslash is not followed by three octal digits.
pub(super) fn unescape_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\' {
            let digits = str::from_utf8(tail.get(..3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            rest = &tail[3..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use consort_core::PuId;
    use proptest::prelude::*;

    fn pus() -> impl Strategy<Value = PuSet> {
        prop::collection::vec(0u32..300, 1..10).prop_map(|pus| pus.into_iter().map(PuId).collect())
    }

    fn original() -> impl Strategy<Value = OriginalMask> {
        (pus(), any::<bool>()).prop_map(|(pus, open)| OriginalMask { pus, open })
    }

    fn thread() -> impl Strategy<Value = ThreadId> {
        (1u32..50, 1u32..50, 0u64..3).prop_map(|(pid, tid, start_ticks)| ThreadId {
            pid,
            tid,
            start_ticks,
        })
    }

    fn program() -> impl Strategy<Value = ManagedProgram> {
        (thread(), 1u32..50, original()).prop_map(|(t, root, original)| ManagedProgram {
            pid: t.pid,
            start_ticks: t.start_ticks,
            root,
            pgrp: t.tid,
            session: root,
            original,
        })
    }

    fn freezer() -> impl Strategy<Value = FreezerCgroup> {
        let version = prop_oneof![Just(CgroupVersion::V1), Just(CgroupVersion::V2)];
        (version, "/[a-z \\\\é\n]{0,8}", 0u32..4).prop_map(|(version, home, n)| FreezerCgroup {
            version,
            home: home.into(),
            name: format!("consort-{n}"),
        })
    }

    /// Any record, from few ids so that records meet each other.
    pub(crate) fn record() -> impl Strategy<Value = JournalRecord> {
        prop_oneof![
            program().prop_map(JournalRecord::Program),
            (thread(), original()).prop_map(|(t, o)| JournalRecord::Thread(t, o)),
            (1u32..50, pus()).prop_map(|(root, pus)| JournalRecord::Mask { root, pus }),
            thread().prop_map(JournalRecord::Leave),
            (1u32..50, 0u64..3)
                .prop_map(|(pid, start_ticks)| JournalRecord::Paused { pid, start_ticks }),
            (1u32..50, 0u64..3)
                .prop_map(|(pid, start_ticks)| JournalRecord::Resumed { pid, start_ticks }),
            freezer().prop_map(JournalRecord::Freezer),
            freezer().prop_map(JournalRecord::FreezerGone),
            (1u64..50).prop_map(JournalRecord::Cookie),
        ]
    }

    #[test]
    fn a_header_is_read_back() {
        let header = JournalHeader {
            run: "7-99-0".into(),
            boot_id: "b".into(),
            pid_namespace: "pid:[4026531836]".into(),
            pid: 7,
            start_ticks: 99,
        };
        assert_eq!(header.to_string().parse(), Ok(header));
    }

    #[test]
    fn another_version_is_refused() {
        let error = "consort-journal 2 r b n 1 2"
            .parse::<JournalHeader>()
            .unwrap_err();
        assert!(error.to_string().starts_with("not a journal of version 1"));
    }

    #[test]
    fn a_record_needs_exactly_its_fields() {
        for line in [
            "",
            "thread 1 2 3 open",
            "leave 1 2",
            "leave 1 2 3 4",
            "mask 1 x",
            "own 1",
        ] {
            assert!(line.parse::<JournalRecord>().is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn records_are_read_back(record in record()) {
            prop_assert_eq!(record.to_string().parse(), Ok(record));
        }

        #[test]
        fn any_text_is_read_without_panic(line: String) {
            let _ = line.parse::<JournalRecord>();
            let _ = line.parse::<JournalHeader>();
        }

        #[test]
        fn near_misses_are_read_without_panic(record in record(), cut: prop::sample::Index) {
            let line = record.to_string();
            let _ = line[..cut.index(line.len())].parse::<JournalRecord>();
        }
    }
}

#[cfg(test)]
mod path_field_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_escape_is_no_path() {
        for text in ["/a\\", "/a\\04", "/a\\9aa", "/\\777"] {
            assert_eq!(unescape_path(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn paths_come_back_and_have_no_blanks(bytes in prop::collection::vec(1u8.., 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = escape_path(&path);
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic()));
            prop_assert_eq!(unescape_path(&text), Some(path));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = unescape_path(&text);
        }
    }
}
