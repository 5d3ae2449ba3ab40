//! Files that users name, read within bounds.
//!
//! A name may lead anywhere: to a device that never ends, a folder, a file larger than memory. So all
//! code that reads a file which a user names calls [`read_text`]. It reads a pipe until its writer
//! closes it, however long that takes; code that must not wait calls [`read_regular_file`].

use nix::fcntl::OFlag;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Size that no file written by hand or by Consort reaches, bytes.
pub const LARGEST: u64 = 16 << 20;

/// Bytes from which on the kernel refuses a path (PATH_MAX).
const LONGEST_PATH: usize = 4096;

/// Device number of `/dev/null`, which is as good as an empty file.
const NULL: u64 = 0x103;

/// Text of a regular file or a pipe of at most [`LARGEST`] bytes.
///
/// # Errors
/// What the kernel answers; a folder or a device; more bytes; no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    read_text_within(LARGEST, path)
}

/// Text of a regular file of at most [`LARGEST`] bytes, without ever waiting for another process: a
/// pipe is refused. For files that a service reads while it runs.
///
/// # Errors
/// The kernel's answer; anything but a file; more bytes; no UTF-8.
pub fn read_regular_file(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for a process that writes to it.
    let file = File::options()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    let there = file.metadata()?;
    check_file_kind(&there)?;
    if there.file_type().is_fifo() {
        return Err(io::Error::other("it is a pipe, not a file"));
    }
    read_within(LARGEST, file)
}

/// Text of a regular file or a pipe of at most `most_bytes` bytes.
///
/// # Errors
/// As for [`read_text`].
pub fn read_text_within(most_bytes: u64, path: &Path) -> io::Result<String> {
    // Checked before it is opened, because opening a device may have an effect: /dev/watchdog starts
    // its timer.
    check_file_kind(&path.metadata()?)?;
    read_within(most_bytes, File::open(path)?)
}

fn read_within(most_bytes: u64, file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let most = most_bytes >> 20;
        return Err(io::Error::other(format!("it is larger than {most} MiB")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))
}

/// True if a text can only be a path: it contains `/`, begins with `.` or `~`, or ends in `.toml`.
///
/// Every notation that takes a name or a file uses this, so that a path means the same in all of
/// them.
pub fn is_path(text: &str) -> bool {
    text.contains('/') || text.starts_with(['.', '~']) || text.ends_with(".toml")
}

/// True if there is a file of this name, or a pipe or device, but not a folder: a folder `gcc`
/// in the current one must not hide a program of that name.
pub fn is_file(text: &str) -> bool {
    // Longer names than the kernel takes exist nowhere; expressions may be much longer.
    text.len() < LONGEST_PATH
        && Path::new(text)
            .metadata()
            .is_ok_and(|there| !there.is_dir())
}

/// Text of the file that an option's value names by its form or because it exists; `None` if it
/// names none. Values such as `map=0.1/2.3` contain a `/` and are no paths, so the form counts only
/// if it begins as a path or ends in `.toml`.
///
/// # Errors
/// As for [`read_text`].
pub fn read_if_file(value: &str) -> Option<io::Result<String>> {
    let has_form = value.ends_with(".toml")
        || ["/", "./", "../", "~/"]
            .iter()
            .any(|start| value.starts_with(start));
    (has_form || is_file(value)).then(|| read_text(Path::new(value)))
}

fn check_file_kind(there: &Metadata) -> io::Result<()> {
    let kind = there.file_type();
    let device = kind.is_char_device() || kind.is_block_device();
    let problem = match (
        kind.is_dir(),
        device && there.rdev() != NULL,
        kind.is_socket(),
    ) {
        (true, ..) => "a folder",
        (_, true, _) => "a device",
        (.., true) => "a socket",
        _ => return Ok(()),
    };
    Err(io::Error::other(format!(
        "it is {problem}, not a file or a pipe"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn reported(most_bytes: u64, path: &str) -> String {
        read_text_within(most_bytes, Path::new(path))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn devices_and_folders_are_refused() {
        assert_eq!(
            reported(1 << 20, "/dev/zero"),
            "it is a device, not a file or a pipe"
        );
        assert_eq!(
            reported(1 << 20, "/"),
            "it is a folder, not a file or a pipe"
        );
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn only_existing_files_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c++ 3*x");
        fs::write(&path, "a").unwrap();
        let path = path.to_str().unwrap();
        assert!(is_file(path) && is_path(path));
        assert!(!is_file(folder.path().to_str().unwrap()));
        assert_eq!(read_if_file(path).unwrap().unwrap(), "a");
        assert!(read_if_file("hmmer").is_none());
        assert!(read_if_file("2.2.3.3/0.0.1.1").is_none());
        assert!(read_if_file("./missing").unwrap().is_err());
        for text in ["a/b", ".hidden", "~x", "x.toml"] {
            assert!(is_path(text), "{text}");
        }
        assert!(!is_path("hmmer") && !is_file(&"a".repeat(1 << 20)));
    }

    #[test]
    fn pipe_without_a_writer_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = read_regular_file(&pipe).unwrap_err().to_string();
        assert_eq!(error, "it is a pipe, not a file");
        assert!(read_regular_file(Path::new("/dev/zero")).is_err());
        assert!(read_regular_file(folder.path()).is_err());
        assert_eq!(read_regular_file(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn file_above_the_limit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(read_text_within(1 << 20, &path).unwrap().len(), 1 << 20);
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_len((1 << 20) + 1)
            .unwrap();
        assert_eq!(
            reported(1 << 20, path.to_str().unwrap()),
            "it is larger than 1 MiB"
        );
        // Sparse, and larger than memory.
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_len(1 << 42)
            .unwrap();
        assert_eq!(
            read_text(&path).unwrap_err().to_string(),
            "it is larger than 16 MiB"
        );
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(
            reported(1 << 20, path.to_str().unwrap()),
            "it is not valid UTF-8"
        );
    }
}
