//! Parsing `/proc/<pid>/cgroup` (cgroups(7)).

use super::path_text::{decode, path_of};
use crate::proc::{ProcError, thread_dir, unless_gone};
use crate::read;
use std::path::{Path, PathBuf};

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

#[cfg(test)]
mod tests {
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
