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

mod fetch;
mod generations;
mod images;
mod maps;
mod opening;
mod pages;
mod space;
mod vintage;

use crate::perf::record::Record;
use crate::sampling::Batch;
use consort_isa::Arch;
use fetch::{Place, Reader, Source};
use pages::{Page, Pages};
use space::Spaces;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

pub(crate) use generations::Generations;
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
    /// Instruction set that the thread ran in; `None` if it cannot be decoded.
    pub arch: Option<Arch>,
    /// Time of the sample, `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
}

/// Code around an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Instruction set of the code.
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
    /// The code is of an instruction set that cannot be decoded.
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
    /// Number of windows asked for in code of other instruction sets.
    pub foreign_arch: u64,
}

/// The code of all sampled processes.
#[derive(Debug)]
pub struct CodeMap {
    reader: Reader,
    spaces: Spaces,
    pages: Pages,
    counts: CodeCounts,
}

impl CodeMap {
    /// A map that reads processes below `root` and keeps at most `max_bytes` of pages.
    pub fn new(root: &Path, max_bytes: usize) -> Self {
        Self {
            reader: Reader::new(root),
            spaces: Spaces::new(root),
            pages: Pages::new(max_bytes),
            counts: CodeCounts::default(),
        }
    }

    /// Begins a round: pages that may change are to be read again, and processes
    /// that become another program within the batch are noted.
    pub fn begin_round(&mut self, batch: &Batch) {
        self.reader.next_round();
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
            Record::Mmap2(mapping) => self.spaces.take(mapping),
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
        let arch = at.arch.ok_or(Miss::ForeignArch)?;
        let own = self.page(at, at.ip)?;
        let mut window = Window {
            arch,
            base: at.ip.saturating_sub(BEFORE_BYTES).max(own.start),
            bytes: Vec::with_capacity((BEFORE_BYTES + FROM_BYTES) as usize),
            changeable: false,
        };
        if let Some(before) = self.page_before(at, own.start) {
            window.base = at.ip.saturating_sub(BEFORE_BYTES);
            window.extend(&before, at.ip);
        }
        window.extend(&own, at.ip);
        if let Some(behind) = self.page_behind(at, own.end()) {
            window.extend(&behind, at.ip);
        }
        Ok(window)
    }

    /// The page that ends at `start`, if the window needs it and it can be read.
    fn page_before(&mut self, at: CodeAddress, start: u64) -> Option<Mapped> {
        let wanted = at.ip.saturating_sub(BEFORE_BYTES);
        let page = (wanted < start).then(|| self.page(at, wanted).ok())??;
        (page.end() == start).then_some(page)
    }

    /// The page that begins at `end`, if the window needs it and it can be read.
    fn page_behind(&mut self, at: CodeAddress, end: u64) -> Option<Mapped> {
        let wanted = at.ip.saturating_add(FROM_BYTES);
        let page = (wanted > end).then(|| self.page(at, end).ok())??;
        (page.start == end).then_some(page)
    }

    fn page(&mut self, at: CodeAddress, address: u64) -> Result<Mapped, Miss> {
        let start = self.pages.start_of(address);
        let place = self.spaces.place_of(at.pid, start);
        if let Some(page) = self.pages.get(place) {
            return Ok(Mapped { start, page });
        }
        let image = self.spaces.of(at.pid).images.at(address).cloned();
        let from = Place {
            pid: at.pid,
            tid: at.tid,
            start,
            image,
            replaced: self.spaces.is_replaced_since(at.pid, at.time_ns),
        };
        let (bytes, source) = self.reader.page(&from, self.pages.page_bytes())?;
        match source {
            Source::Memory => self.counts.from_memory += 1,
            Source::File => self.counts.from_file += 1,
        }
        let page = self.pages.put(place, from.to_page(bytes));
        Ok(Mapped { start, page })
    }
}

/// A page at an address of a process.
struct Mapped {
    start: u64,
    page: Arc<Page>,
}

impl Mapped {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.page.bytes.len() as u64)
    }
}

impl Window {
    /// Adds what is wanted of the page that begins where the window ends: from its base on, and up
    /// to `FROM_BYTES` from `ip` on.
    fn extend(&mut self, mapped: &Mapped, ip: u64) {
        let bytes = &mapped.page.bytes;
        let index_of = |address: u64| {
            let index = address.saturating_sub(mapped.start);
            usize::try_from(index).map_or(bytes.len(), |index| index.min(bytes.len()))
        };
        let wanted = index_of(self.base)..index_of(ip.saturating_add(FROM_BYTES));
        self.bytes.extend_from_slice(&bytes[wanted]);
        self.changeable |= mapped.page.changeable;
    }
}
