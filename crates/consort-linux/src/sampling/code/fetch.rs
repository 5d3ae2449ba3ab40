//! Reading of one page of code, from memory or from the file behind it.

use super::Miss;
use super::images::Image;
use super::opening::open;
use super::pages::Page;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A page to read, with the thread and the mapping that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Address of the page.
    pub(super) start: u64,
    /// The mapping that the page lies in, as far as is known.
    pub(super) image: Option<Image>,
    /// True if the process has become another program, so that its memory would mislead.
    pub(super) replaced: bool,
}

impl Place {
    /// The page with these bytes. Without a known mapping the code may change at any time.
    pub(super) fn to_page(&self, bytes: Vec<u8>) -> Page {
        let image = self.image.as_ref();
        Page {
            bytes: bytes.into(),
            changeable: image.is_none_or(Image::is_changeable),
        }
    }
}

/// Origin of a page's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Memory,
    File,
}

/// Most files that are kept open until the round ends.
const MAX_OPEN: usize = 8;

/// Reader of pages. Programs that live for milliseconds, such as those of a build, leave samples of
/// which each wants another page of the same file, so what was found out about processes and files
/// is kept until the round ends.
#[derive(Debug)]
pub(super) struct Reader {
    root: PathBuf,
    /// Threads that have no memory any more, with their processes.
    gone: HashSet<(u32, u32)>,
    /// Files that were opened, with a mapping of each.
    open: Vec<(Image, File)>,
}

impl Reader {
    /// A reader that finds processes and files below `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            gone: HashSet::new(),
            open: Vec::new(),
        }
    }

    /// Forgets what was found out, and closes all files.
    pub(super) fn next_round(&mut self) {
        self.gone.clear();
        self.open.clear();
    }

    /// Reads a page of `len` bytes.
    pub(super) fn page(&mut self, place: &Place, len: usize) -> Result<(Vec<u8>, Source), Miss> {
        if !place.replaced
            && let Some(bytes) = self.in_memory(place, len)
        {
            return Ok((bytes, Source::Memory));
        }
        let image = place.image.as_ref().ok_or(Miss::Unmapped)?;
        let bytes = self.in_file(image, place.start, len);
        Ok((bytes.ok_or(Miss::Unreadable)?, Source::File))
    }

    /// Reads from the memory of the thread before that of the process: a leader that has ended has
    /// no memory any more though its threads live on.
    fn in_memory(&mut self, place: &Place, len: usize) -> Option<Vec<u8>> {
        let who = (place.pid, place.tid);
        if self.gone.contains(&who) {
            return None;
        }
        let ask = |id| vm_read(id, place.start, len);
        if let Some(bytes) = ask(place.tid).or_else(|| ask(place.pid)) {
            return Some(bytes);
        }
        let Ok(memory) = File::open(self.root.join(format!("proc/{}/mem", place.pid))) else {
            self.gone.insert(who);
            return None;
        };
        let mut bytes = vec![0; len];
        memory.read_exact_at(&mut bytes, place.start).ok()?;
        Some(bytes)
    }

    /// The page as the file has it; the last page of a file may be short.
    fn in_file(&mut self, image: &Image, start: u64, len: usize) -> Option<Vec<u8>> {
        let offset = image
            .file_offset
            .checked_add(start.checked_sub(image.start)?)?;
        let mut bytes = vec![0; len];
        let read = self.file(image)?.read_at(&mut bytes, offset).ok()?;
        bytes.truncate(read);
        (read > 0).then_some(bytes)
    }

    fn file(&mut self, image: &Image) -> Option<&File> {
        let known = self.open.iter().position(|(of, _)| of.has_file_of(image));
        let index = match known {
            Some(index) => index,
            None => {
                let file = open(&self.root, image)?;
                if self.open.len() == MAX_OPEN {
                    self.open.remove(0);
                }
                self.open.push((image.clone(), file));
                self.open.len() - 1
            }
        };
        Some(&self.open[index].1)
    }
}

fn vm_read(id: u32, start: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let remote = RemoteIoVec {
        base: usize::try_from(start).ok()?,
        len,
    };
    let pid = Pid::from_raw(i32::try_from(id).ok().filter(|&id| id > 0)?);
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
    (read == Ok(len)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A page of a process that nobody has, mapped from the file at `path` below `root`.
    fn place(root: &Path, path: &str) -> Place {
        Place {
            pid: u32::MAX,
            tid: u32::MAX,
            start: 0,
            image: Some(Image::of_file(root, path)),
            replaced: false,
        }
    }

    #[test]
    fn a_file_is_held_until_the_round_ends_and_proven_again_in_the_next() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let place = place(root.path(), "code");
        let mut reader = Reader::new(root.path());
        assert_eq!(
            reader.page(&place, 4).unwrap(),
            (b"code".into(), Source::File)
        );
        fs::rename(root.path().join("code"), root.path().join("old")).unwrap();
        fs::write(root.path().join("code"), "evil").unwrap();
        assert_eq!(
            reader.page(&place, 4).unwrap(),
            (b"code".into(), Source::File)
        );
        reader.next_round();
        assert_eq!(reader.page(&place, 4), Err(Miss::Unreadable));
    }

    #[test]
    fn few_files_are_open_at_a_time_and_each_gives_its_own_code() {
        let root = tempfile::tempdir().unwrap();
        let mut reader = Reader::new(root.path());
        for _ in 0..2 {
            for file in 0..2 * MAX_OPEN {
                let name = format!("code{file:04}");
                fs::write(root.path().join(&name), &name).unwrap();
                let bytes = reader.page(&place(root.path(), &name), 8).unwrap().0;
                assert_eq!(bytes, name.as_bytes());
                assert!(reader.open.len() <= MAX_OPEN);
            }
        }
    }

    #[test]
    fn a_process_without_memory_is_asked_once_a_round() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let place = place(root.path(), "code");
        let mut reader = Reader::new(root.path());
        reader.page(&place, 4).unwrap();
        assert!(reader.gone.contains(&(place.pid, place.tid)));
        reader.next_round();
        assert!(reader.gone.is_empty());
    }
}
