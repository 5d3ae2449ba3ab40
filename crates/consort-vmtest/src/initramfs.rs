//! The guest's whole file system: busybox, the first process, the steps and the test's files.

use std::collections::BTreeSet;

const INIT: &[u8] = include_bytes!("init.sh");
const FOLDERS: [&str; 8] = ["bin", "dev", "proc", "run", "steps", "sys", "tmp", "root"];

/// A shell command whose output is wanted under a name.
#[derive(Clone, Debug)]
pub(crate) struct GuestStep {
    pub(crate) name: String,
    pub(crate) script: String,
}

/// Packs everything into one archive. `files` are (absolute path in the guest, contents).
pub(crate) fn pack(busybox: &[u8], files: &[(String, Vec<u8>)], steps: &[GuestStep]) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in folders(files) {
        archive.add_directory(&folder);
    }
    // The kernel gives the first process its standard streams from here.
    archive.add_character_device("dev/console", 5, 1);
    archive.add_file("bin/busybox", busybox);
    archive.add_symlink("bin/sh", "busybox");
    archive.add_file("init", INIT);
    for (path, contents) in files {
        archive.add_file(path.trim_start_matches('/'), contents);
    }
    for (index, step) in steps.iter().enumerate() {
        let name = format!("steps/{index:03}-{}", step.name);
        archive.add_file(&name, step.script.as_bytes());
    }
    archive.finish()
}

/// Every folder of a file, parents before children, because the kernel makes none by itself.
fn folders(files: &[(String, Vec<u8>)]) -> BTreeSet<String> {
    let mut folders: BTreeSet<String> = FOLDERS.map(String::from).into();
    for (path, _) in files {
        let path = path.trim_start_matches('/');
        folders.extend(
            path.match_indices('/')
                .map(|(end, _)| path[..end].to_owned()),
        );
    }
    folders
}

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive in the "newc" form of cpio, which the kernel unpacks as its first root.
///
/// Format: the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`. Every entry is
/// a header of 13 eight-digit hexadecimal fields after the magic `070701`, the name with its zero
/// byte, padding to four bytes, the contents, padding again.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add_directory(&mut self, name: &str) {
        self.add_entry(name, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that all users may read and run.
    fn add_file(&mut self, name: &str, contents: &[u8]) {
        self.add_entry(name, EXECUTABLE, (0, 0), contents);
    }

    fn add_symlink(&mut self, name: &str, target: &str) {
        self.add_entry(name, SYMLINK, (0, 0), target.as_bytes());
    }

    fn add_character_device(&mut self, name: &str, major: u32, minor: u32) {
        self.add_entry(name, CHARACTER_DEVICE, (major, minor), &[]);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add_entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn add_entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let fields = [
            self.entries,
            mode,
            0, // uid
            0, // gid
            1, // links
            0, // mtime: archives of the same files are the same
            length(contents.len()),
            0, // major and minor of the file system
            0,
            device.0,
            device.1,
            length(name.len() + 1),
            0, // checksum, unused in this form
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The format cannot hold more than 4 GiB. The kernel would cut a longer file, which fails when it
/// is run.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn folders_of_files_come_parents_first() {
        let files = [("/lib/x86/a.so".to_owned(), vec![])];
        let folders: Vec<String> = folders(&files).into_iter().collect();
        let at = |name: &str| folders.iter().position(|f| f == name).unwrap();
        assert!(at("lib") < at("lib/x86"));
        assert!(folders.contains(&"proc".to_owned()));
    }

    #[test]
    fn steps_keep_their_order() {
        let step = |name: &str| GuestStep {
            name: name.into(),
            script: String::new(),
        };
        let archive = pack(b"", &[], &[step("zebra"), step("ant")]);
        let text = String::from_utf8_lossy(&archive);
        assert!(text.contains("steps/000-zebra") && text.contains("steps/001-ant"));
    }

    /// Reads an archive back, apart from the writer: (name, mode, contents).
    fn read(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let field = |i: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * i..14 + 8 * i]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            assert_eq!(&bytes[..6], b"070701");
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = String::from_utf8(bytes[110..110 + name_size - 1].to_vec()).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            if name == "TRAILER!!!" {
                return entries;
            }
            entries.push((name, mode, bytes[start..start + size].to_vec()));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
    }

    proptest! {
        #[test]
        fn entries_are_read_back(
            files in prop::collection::vec(("[a-z/]{1,20}", prop::collection::vec(any::<u8>(), 0..40)), 0..8)
        ) {
            let mut archive = Archive::default();
            for (name, contents) in &files {
                archive.add_file(name, contents);
            }
            let expected: Vec<_> =
                files.into_iter().map(|(name, contents)| (name, EXECUTABLE, contents)).collect();
            prop_assert_eq!(read(&archive.finish()), expected);
        }
    }

    #[test]
    fn kinds_of_entries_differ() {
        let mut archive = Archive::default();
        archive.add_directory("bin");
        archive.add_symlink("bin/sh", "busybox");
        archive.add_character_device("dev/console", 5, 1);
        let entries = read(&archive.finish());
        assert_eq!(entries[0], ("bin".into(), 0o040_755, vec![]));
        assert_eq!(
            entries[1],
            ("bin/sh".into(), 0o120_777, b"busybox".to_vec())
        );
        assert_eq!(entries[2].1 & 0o170_000, 0o020_000);
    }
}
