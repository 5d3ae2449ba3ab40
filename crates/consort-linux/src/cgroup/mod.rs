//! Control groups: the CPUs that their cpusets allow, their files, and the rules by which they are
//! managed.
//!
//! Usage: `cpuset()` for this process, `CpusetHierarchies::cpuset_of` for any thread
//! whose `cgroup` file the caller has read, `Hierarchy` for the directory of a
//! cgroup that is to be written, `CpuLimits` for limits of CPU time.

mod cpuset;
mod directory;
mod rules;
mod walk;

pub use cpuset::CgroupVersion;
pub(crate) use cpuset::{CgroupCpuset, CpusetHierarchies, CpusetLocation, cpuset, membership_text};
pub use directory::CpuLimit;
pub(crate) use directory::{CpuLimits, Hierarchy, read_limit};
pub(crate) use rules::ProgramGroup;
pub use rules::{CgroupPattern, CgroupPatternError, CgroupRule, CgroupRules};

use crate::proc::{ProcError, thread_dir, unless_gone};
use crate::read;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

// Text of the kernel's files about cgroups: paths that keep every byte, `/proc/<pid>/cgroup`
// (cgroups(7)), and `/proc/self/mountinfo` (proc_pid_mountinfo(5)) as far as cgroups need it.
//
// The kernel accepts any bytes in a name but `/`, newline and NUL. Patterns and reports are text. So
// a byte that is no part of a character is represented by a character from the end of the last
// private plane, which stands for itself nowhere: its own four bytes are represented in the same
// way. A pattern's `*` and `?` match such a character like any other.

/// The character that represents byte 0.
const FIRST: u32 = 0x10_FF00;

/// The text that represents these bytes.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match byte_of(char) {
                None => text.push(char),
                Some(_) => {
                    let mut buffer = [0; 4];
                    let bytes = char.encode_utf8(&mut buffer).bytes();
                    text.extend(bytes.filter_map(char_of));
                }
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    text
}

/// The bytes that a text represents.
pub(crate) fn encode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match byte_of(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

/// The path that a text represents.
pub(crate) fn path_of(text: &str) -> PathBuf {
    OsString::from_vec(encode(text)).into()
}

/// The text for people: bytes that are no part of a character are escaped, `\xff`.
pub(crate) fn escape_for_display(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match byte_of(char) {
            // Writing to a text does not fail.
            Some(byte) => drop(write!(shown, "\\x{byte:02x}")),
            None => shown.push(char),
        }
    }
    shown
}

/// Text of a file with names in it; `None` if it cannot be read.
pub(crate) fn text_of_file(path: &Path) -> Option<String> {
    Some(decode(&read::bytes(path).ok()?))
}

fn char_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

fn byte_of(char: char) -> Option<u8> {
    u8::try_from(u32::from(char).checked_sub(FIRST)?).ok()
}

/// One line of the file: a hierarchy, and the process's cgroup in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// Controllers of the version 1 hierarchy; empty for version 2.
    pub(crate) controllers: Vec<String>,
    /// True for the line of the version 2 hierarchy (`0::`).
    pub(crate) unified: bool,
    /// Path of the cgroup, as seen from the reader's cgroup namespace, with its unusual bytes as
    /// [`decode`] represents them.
    pub(crate) path: String,
}

impl Membership {
    /// The same path with the kernel's bytes.
    pub(crate) fn path(&self) -> PathBuf {
        path_of(&self.path)
    }
}

/// Text of a thread's `cgroup` file; `None` once the thread has ended.
///
/// # Errors
/// If it cannot be read although the thread may be there, as when descriptors are short.
pub(crate) fn cgroups_of(root: &Path, pid: u32, tid: u32) -> Result<Option<String>, ProcError> {
    let path = thread_dir(root, pid, tid).join("cgroup");
    let bytes = read::bytes(&path).map_err(|error| ProcError::io(&path, &error));
    Ok(unless_gone(bytes)?.map(|bytes| decode(&bytes)))
}

/// Parses every well-formed line of a text that [`decode`] has made.
pub(crate) fn memberships(text: &str) -> Vec<Membership> {
    // Not `lines`, which takes a carriage return off the end of a name.
    text.split('\n').filter_map(membership).collect()
}

fn membership(line: &str) -> Option<Membership> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let id: u32 = id.parse().ok()?;
    if !path.starts_with('/') {
        return None;
    }
    let controllers = controllers.split(',').filter(|c| !c.is_empty());
    let controllers: Vec<String> = controllers.map(str::to_owned).collect();
    Some(Membership {
        unified: id == 0 && controllers.is_empty(),
        controllers,
        path: path.to_owned(),
    })
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Directory of the file system that is mounted; for cgroups a cgroup path.
    pub(crate) root: PathBuf,
    /// Directory at which it is mounted.
    pub(crate) point: PathBuf,
    /// File system type.
    pub(crate) kind: String,
    /// Options of the file system; for cgroup version 1 the controllers are among them.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// Directory at which it is mounted, for a reader whose files are below `root`.
    pub(crate) fn point_below(&self, root: &Path) -> PathBuf {
        root.join(self.point.strip_prefix("/").unwrap_or(&self.point))
    }
}

/// Parses every well-formed line of a text that [`decode`] has made.
pub(crate) fn mounts(text: &str) -> Vec<Mount> {
    text.split('\n').filter_map(mount).collect()
}

/// Parses a line. Fields 4 and 5 are root and mount point; after ` - ` follow type, source,
/// options.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let mut after = after.split(' ');
    Some(Mount {
        root: unescape(before.next()?),
        point: unescape(before.next()?),
        kind: after.next()?.to_owned(),
        options: after
            .nth(1)
            .map(|options| options.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
    })
}

/// Undoes the kernel's `\040` for blanks and the like; anything else is left as it is.
fn unescape(text: &str) -> PathBuf {
    let escaped = encode(text);
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_slice();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| byte == b'\\');
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(octal.unwrap_or(byte));
        rest = octal.map_or(tail, |_| &tail[3..]);
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(escape_for_display(&decode(b"bin\xff/in")), "bin\\xff/in");
        assert_eq!(escape_for_display(&decode("ünï".as_bytes())), "ünï");
    }

    proptest! {
        #[test]
        fn every_byte_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(encode(&decode(&bytes)), bytes);
        }

        #[test]
        fn every_text_comes_back(text in "\\PC{0,20}|[\u{10ff00}-\u{10ffff}a]{0,6}") {
            prop_assert_eq!(encode(&decode(text.as_bytes())), text.into_bytes());
        }
    }
}

#[cfg(test)]
mod membership_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_versions_are_read() {
        let all =
            memberships("4:cpu,cpuset:/a:b\n1:name=systemd:/\n0::/user.slice\nrubbish\n3:x\n");
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].controllers, ["cpu", "cpuset"]);
        assert_eq!(all[0].path, "/a:b");
        assert_eq!((all[1].unified, all[2].unified), (false, true));
        assert_eq!(all[2].path, "/user.slice");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_failing(text in "([0-9]{1,9}|[:/,\n]|cpuset|.){0,40}") {
            for m in memberships(&text) {
                prop_assert!(m.path.starts_with('/'));
                prop_assert!(!m.unified || m.controllers.is_empty());
            }
        }
    }
}

#[cfg(test)]
mod mountinfo_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cgroup_mount_is_read() {
        let line = "34 31 0:31 /a /sys/fs/cgroup/my\\040set rw shared:9 - cgroup cgroup rw,cpuset";
        let all = mounts(&format!("rubbish\n{line}\n1 2 3 - x\n"));
        let expected = Mount {
            root: "/a".into(),
            point: "/sys/fs/cgroup/my set".into(),
            kind: "cgroup".into(),
            options: vec!["rw".into(), "cpuset".into()],
        };
        assert_eq!(all, [expected]);
    }

    #[test]
    fn only_octal_escapes_are_undone() {
        let unescape = |text: &str| unescape(text).into_os_string().into_string().unwrap();
        assert_eq!(unescape("a\\134b\\9\\04"), "a\\b\\9\\04");
        assert_eq!(unescape("\\303\\251é\\777"), "éé\\777");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_failing(text in "([0-9]{1,4}| - |[ ,:/\n\\\\]|cgroup2?|.){0,60}") {
            prop_assert!(mounts(&text).len() <= text.split('\n').count());
        }

        #[test]
        fn escaped_text_comes_back(text in "[a-z \t\\\\é]{0,20}") {
            let escape = |c: char| match c {
                ' ' | '\t' | '\\' => format!("\\{:03o}", u32::from(c)),
                c => c.to_string(),
            };
            let escaped: String = text.chars().map(escape).collect();
            prop_assert_eq!(unescape(&escaped), PathBuf::from(text));
        }
    }
}
