//! Code of the sampled processes: from an address to the bytes around it.
//!
//! Memory is read first, since it is right for everything: static and stripped programs, the vDSO,
//! code made at run time. For a process that has ended or has executed another program meanwhile,
//! the bytes come from the file that was mapped there, found by its path and held to be the same
//! when device and inode are (see `opening`: the program has told the path, and it may lead
//! anywhere by now).
//!
//! Pages are kept (see `pages`) under the name of their address space, which changes with an
//! `exec`, with a mapping over fixed code and after lost records; pages that may be written, or
//! that belong to no file, are read again once per round.
//!
//! Known limits: the vDSO and run-time code of a process that is gone are lost; a file that was
//! overwritten in place keeps its inode; code that is rewritten within a round is decoded as it is
//! at the round's end; code on a file system that a user provides (FUSE) is read at the speed of
//! its server.

mod elf;
mod fetch;
mod generations;
mod images;
mod maps;
mod opening;
mod pages;
mod space;

use crate::perf::record::Record;
use crate::sampling::Batch;
use consort_isa::Arch;
use fetch::{Place, Source};
use pages::{Page, Pages};
use space::Spaces;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use generations::Generations;
pub(crate) use images::Image;
#[cfg(test)]
pub(crate) use maps::executable_images;
pub use space::{CodePlace, SpaceId};

/// Number of bytes of code asked for before an address; see [`consort_isa::BlockFacts::build`].
const BEFORE_BYTES: u64 = 1024;
/// Number of bytes of code asked for from an address on.
const FROM_BYTES: u64 = 1280;

/// Address that a sample fell on, with the thread and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAddress {
    /// Process id.
    pub pid: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Address of the instruction.
    pub ip: u64,
    /// Time of the sample, `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
}

/// Code around an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Instruction set of the program.
    pub arch: Arch,
    /// Address of the first byte.
    pub base: u64,
    /// The bytes, without gaps.
    pub bytes: Vec<u8>,
    /// True if the code may change without notice.
    pub changeable: bool,
}

/// Reason for which there is no code for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Nothing is known to be mapped there.
    Unmapped,
    /// Something is mapped there, but it cannot be read, or no longer.
    Unreadable,
    /// The program is of an instruction set that cannot be decoded.
    ForeignArch,
}

/// Numbers of pages and windows of code that were found, by origin, and that were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeCounts {
    /// Number of pages read from a process's memory.
    pub from_memory: u64,
    /// Number of pages read from a mapped file.
    pub from_file: u64,
    /// Number of windows asked for at addresses where nothing is known to be mapped.
    pub unmapped: u64,
    /// Number of windows asked for that could not be read.
    pub unreadable: u64,
    /// Number of windows asked for in programs of other instruction sets.
    pub foreign_arch: u64,
}

/// The code of all sampled processes.
#[derive(Debug)]
pub struct CodeMap {
    root: PathBuf,
    spaces: Spaces,
    pages: Pages,
    counts: CodeCounts,
}

impl CodeMap {
    /// A map that reads processes below `root` and keeps at most `max_bytes` of pages.
    pub fn new(root: &Path, max_bytes: usize) -> Self {
        Self {
            root: root.to_owned(),
            spaces: Spaces::new(root),
            pages: Pages::new(max_bytes),
            counts: CodeCounts::default(),
        }
    }

    /// Begins a round: pages that may change are to be read again, and processes
    /// that become another program within the batch are noted.
    pub fn begin_round(&mut self, batch: &Batch) {
        self.pages.next_round();
        self.spaces.begin_round(batch);
    }

    /// Forgets the pages of spaces that are gone; returns those that are still there.
    pub fn sweep(&mut self) -> HashSet<SpaceId> {
        let living = self.spaces.living();
        self.pages.keep(&living);
        living
    }

    /// Takes a record in; to be called in order of time.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Fork(task) if task.pid == task.tid => {
                self.spaces.fork(task.parent_pid, task.pid);
            }
            Record::Exit(task) if task.pid == task.tid => self.spaces.end(task.pid),
            Record::Comm {
                pid, exec: true, ..
            } => self.spaces.exec(*pid),
            Record::Mmap2(mapping) => self.spaces.map(mapping.pid, Image::of_record(mapping)),
            _ => {}
        }
    }

    /// The place of an address of a process as it is now. It changes with every `exec`, but for
    /// code of files, which all processes share that have mapped it.
    pub fn place_of(&mut self, pid: u32, address: u64) -> CodePlace {
        self.spaces.place_of(pid, address)
    }

    /// The code around an address.
    ///
    /// # Errors
    /// When nothing is mapped there, it cannot be read, or its instruction set cannot be decoded.
    pub fn window(&mut self, at: CodeAddress) -> Result<Window, Miss> {
        let window = self.read_window(at);
        match window {
            Err(Miss::Unmapped) => self.counts.unmapped += 1,
            Err(Miss::Unreadable) => self.counts.unreadable += 1,
            Err(Miss::ForeignArch) => self.counts.foreign_arch += 1,
            Ok(_) => {}
        }
        window
    }

    /// Numbers of pages and windows found so far, and of those that were not.
    pub fn counts(&self) -> CodeCounts {
        self.counts
    }

    fn read_window(&mut self, at: CodeAddress) -> Result<Window, Miss> {
        let arch = self.spaces.arch_of(at.pid).ok_or(Miss::ForeignArch)?;
        let page = self.page(at, at.ip)?;
        let mut window = Window {
            arch,
            base: page.start,
            bytes: page.bytes.to_vec(),
            changeable: page.changeable,
        };
        self.extend_back(at, &mut window);
        self.extend_on(at, &mut window);
        window.trim(at.ip);
        Ok(window)
    }

    /// Puts the page before the window's in front of it, if the window needs that and it can be
    /// read.
    fn extend_back(&mut self, at: CodeAddress, window: &mut Window) {
        let wanted = at.ip.saturating_sub(BEFORE_BYTES);
        if wanted < window.base
            && let Ok(page) = self.page(at, wanted)
            && page.end() == window.base
        {
            window.base = page.start;
            window.bytes.splice(0..0, page.bytes.iter().copied());
            window.changeable |= page.changeable;
        }
    }

    fn extend_on(&mut self, at: CodeAddress, window: &mut Window) {
        let end = window.base + window.bytes.len() as u64;
        let wanted = at.ip.saturating_add(FROM_BYTES);
        if wanted > end
            && let Ok(page) = self.page(at, end)
            && page.start == end
        {
            window.bytes.extend_from_slice(&page.bytes);
            window.changeable |= page.changeable;
        }
    }

    fn page(&mut self, at: CodeAddress, address: u64) -> Result<Arc<Page>, Miss> {
        let space = self.spaces.of(at.pid).id;
        if let Some(page) = self.pages.get(space, address) {
            return Ok(page);
        }
        let image = self.spaces.of(at.pid).images.at(address).cloned();
        let place = Place {
            pid: at.pid,
            tid: at.tid,
            start: self.pages.start_of(address),
            image,
            replaced: self.spaces.is_replaced_since(at.pid, at.time_ns),
        };
        let (bytes, source) = fetch::page(&self.root, &place, self.pages.page_bytes())?;
        match source {
            Source::Memory => self.counts.from_memory += 1,
            Source::File => self.counts.from_file += 1,
        }
        Ok(self.pages.put(space, place.to_page(bytes)))
    }
}

impl Window {
    /// Cuts the window to the bytes that are wanted around `ip`.
    fn trim(&mut self, ip: u64) {
        let skip = ip.saturating_sub(BEFORE_BYTES).saturating_sub(self.base);
        let skip = usize::try_from(skip).unwrap_or(0).min(self.bytes.len());
        self.bytes.drain(..skip);
        self.base += skip as u64;
        let len = ip.saturating_add(FROM_BYTES).saturating_sub(self.base);
        self.bytes
            .truncate(usize::try_from(len).unwrap_or(usize::MAX));
    }
}
