//! Parsing `/proc/self/mountinfo` (proc_pid_mountinfo(5)), as far as cgroups need it.

use super::path_text::encode;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

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

/// Parses every well-formed line of a text that [`decode`](super::path_text::decode) has made.
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
        let octal = (byte == b'\\')
            .then(|| tail.get(..3).and_then(octal_byte))
            .flatten();
        bytes.push(octal.unwrap_or(byte));
        rest = octal.map_or(tail, |_| &tail[3..]);
    }
    OsString::from_vec(bytes).into()
}

fn octal_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
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
