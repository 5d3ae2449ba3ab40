//! Archives in the "newc" form of cpio, which the kernel unpacks as its first root.
//!
//! Format: the kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`. Every
//! entry is a header of 13 eight-digit hexadecimal fields after the magic `070701`, the name with
//! its zero byte, padding to four bytes, the contents, padding again.

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that grows entry by entry.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(crate) fn add_directory(&mut self, name: &str) {
        self.add_entry(name, DIRECTORY, (0, 0), &[]);
    }

    /// Adds a file that everybody may read and run.
    pub(crate) fn add_file(&mut self, name: &str, contents: &[u8]) {
        self.add_entry(name, EXECUTABLE, (0, 0), contents);
    }

    pub(crate) fn add_symlink(&mut self, name: &str, target: &str) {
        self.add_entry(name, SYMLINK, (0, 0), target.as_bytes());
    }

    pub(crate) fn add_character_device(&mut self, name: &str, major: u32, minor: u32) {
        self.add_entry(name, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
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

/// The format cannot hold more than 4 GiB; a longer file would be cut by the kernel and found out
/// by whoever runs it.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn what_is_put_in_comes_out(
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
    fn kinds_of_entries_are_told_apart() {
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
