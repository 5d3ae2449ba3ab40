//! Files that are either whole or not there.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permissions of a result for anybody, less the caller's umask.
const MODE: u32 = 0o666;

/// Writes a file into a folder under a passing name and renames it when it is
/// whole and on disk, so that an interruption leaves the old file or none. The
/// passing name starts with `.consort-`; only a kill can leave one behind.
///
/// # Errors
/// What the file system answers.
pub fn write_whole(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(".consort-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_new_file_replaces_the_old_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        write_whole(folder.path(), "a", b"long old content").unwrap();
        write_whole(folder.path(), "a", b"new").unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_failed_write_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(write_whole(folder.path(), "taken", b"x").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn a_reader_sees_one_whole_file_or_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [vec![b'a'; 100_000], vec![b'b'; 70_000]];
        write_whole(folder.path(), "f", &contents[0]).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..40 {
                    write_whole(folder.path(), "f", &contents[round % 2]).unwrap();
                }
            });
            while !writer.is_finished() {
                let seen = std::fs::read(folder.path().join("f")).unwrap();
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
    }
}
