//! The guest's whole file system: busybox, the first process, the steps and the test's files.

use crate::cpio::Archive;
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

/// Every folder that a file lies in, parents before children: the kernel makes none by itself.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
