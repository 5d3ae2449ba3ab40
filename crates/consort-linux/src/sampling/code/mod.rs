//! Code of the sampled processes: from an address to the bytes around it.
//!
//! Memory is read first, since it is right for everything: static and stripped programs, the vDSO,
//! code made at run time. For a process that has ended or has executed another program meanwhile,
//! the bytes come from the file that was mapped there, found by its path and held to be the same
//! when device and inode are. All reading goes through [`crate::reader`], as pages and files of
//! others may never arrive; a page that does not is counted as unreadable.
//!
//! Pages are kept (see `pages`) under the name of their address space, which changes with an
//! `exec`, with a mapping over fixed code and after lost records; pages that may be written, or
//! that belong to no file, are read again once per round.
//!
//! Known limits: the vDSO and run-time code of a process that is gone are lost; a file that was
//! overwritten in place keeps its inode; code that is rewritten within a round is decoded as it is
//! at the round's end.

mod images;
mod pages;
mod space;

pub(crate) use pages::GenerationCache;
#[cfg(test)]
pub(super) use space::executable_images;
pub use space::{CodePlace, SpaceId};

use crate::perf::record::{PerfRecord, Stamp};
use crate::reader::{CodeReader, PageAddress};
use crate::sampling::RecordBatch;
use consort_isa::Arch;
use images::{Image, MAX_IMAGES};
use pages::{CachedPage, PageCache};
use space::AddressSpaces;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Number of bytes of code requested before an address; see [`consort_isa::BlockFacts::build`].
const BEFORE_BYTES: u64 = 1024;
/// Number of bytes of code requested from an address on.
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

impl CodeAddress {
    /// The address of a sample.
    pub(super) fn from_sample(ip: u64, arch: Option<Arch>, stamp: Stamp) -> Self {
        Self {
            pid: stamp.pid,
            tid: stamp.tid,
            ip,
            arch,
            time_ns: stamp.time_ns,
        }
    }
}

/// Code around an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeWindow {
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
pub enum CodeMiss {
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
    /// Number of windows requested at addresses where nothing is known to be mapped.
    pub unmapped: u64,
    /// Number of windows requested that could not be read.
    pub unreadable: u64,
    /// Number of windows requested in code of other instruction sets.
    pub foreign_arch: u64,
}

/// The code of all sampled processes.
#[derive(Debug)]
pub struct CodeMap {
    reader: CodeReader,
    spaces: AddressSpaces,
    pages: PageCache,
    counts: CodeCounts,
    /// Pages that could not be read from memory in this round.
    unread: HashSet<CodePlace>,
    /// Processes that a warning has named because they have too many mappings.
    crowded: HashSet<u32>,
    warnings: Vec<String>,
}

/// Most processes that such warnings name.
const MAX_CROWDED: usize = 16;

impl CodeMap {
    /// A map that reads processes below `root` and keeps at most `max_bytes` of pages.
    pub fn new(root: &Path, max_bytes: usize) -> Self {
        Self {
            reader: CodeReader::new(root),
            spaces: AddressSpaces::new(),
            pages: PageCache::new(max_bytes),
            counts: CodeCounts::default(),
            unread: HashSet::new(),
            crowded: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Begins a round: pages that may change are to be read again, and processes
    /// that become another program within the batch are noted.
    pub fn begin_round(&mut self, batch: &RecordBatch) {
        self.pages.next_round();
        self.unread.clear();
        self.spaces.begin_round(batch);
        for (pid, list) in self.reader.next_round() {
            self.spaces.take_list(pid, &list);
        }
    }

    /// Reads the pages around some addresses from memory, all at once, where they are not known.
    pub fn prefetch(&mut self, addresses: &[CodeAddress]) {
        let mut places = Vec::new();
        let mut wanted = Vec::new();
        let mut seen = HashSet::new();
        for at in addresses {
            let first = self.pages.start_of(at.ip.saturating_sub(BEFORE_BYTES));
            let last = self.pages.start_of(at.ip.saturating_add(FROM_BYTES - 1));
            for start in (first..=last).step_by(self.pages.page_bytes()) {
                let place = self.place_of(at.pid, start);
                if seen.insert(place) && self.pages.get(place).is_none() {
                    let (pid, tid) = (at.pid, at.tid);
                    places.push(place);
                    wanted.push(PageAddress { pid, tid, start });
                }
            }
        }
        let read = self.reader.read_pages(&wanted, self.pages.page_bytes());
        for ((place, page), bytes) in places.into_iter().zip(wanted).zip(read) {
            match bytes {
                Some(bytes) => {
                    self.counts.from_memory += 1;
                    let images = &self.spaces.space_mut(page.pid, &mut self.reader).images;
                    let page = to_page(bytes, images.at(page.start));
                    self.pages.put(place, page);
                }
                None => {
                    self.unread.insert(place);
                }
            }
        }
    }

    /// Warnings for the user since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.extend(self.reader.take_warnings());
        warnings
    }

    /// Forgets the pages of spaces that are gone; returns the spaces that are still there.
    pub fn sweep(&mut self) -> HashSet<SpaceId> {
        let living = self.spaces.living_spaces();
        self.pages.retain_spaces(&living);
        living
    }

    /// Takes a record in; to be called in order of time.
    pub fn apply_record(&mut self, record: &PerfRecord) {
        match record {
            PerfRecord::Fork(task) if task.pid == task.tid => {
                self.reader.note_fork(task.parent_pid, task.pid);
                self.spaces.note_fork(task.parent_pid, task.pid);
            }
            PerfRecord::Exit(task) if task.pid == task.tid => {
                self.reader.note_exit(task.pid);
                self.spaces.note_exit(task.pid);
            }
            PerfRecord::Comm {
                pid, exec: true, ..
            } => self.spaces.note_exec(*pid),
            PerfRecord::Mmap2(mapping) => {
                self.spaces.apply_mapping(mapping, &mut self.reader);
                self.warn_if_crowded(mapping.pid);
            }
            _ => {}
        }
    }

    /// The place of an address of a process as it is now. It changes with every `exec`, but for
    /// code of files, which all processes share that have mapped it.
    pub fn place_of(&mut self, pid: u32, address: u64) -> CodePlace {
        self.spaces.place_of(pid, address, &mut self.reader)
    }

    fn warn_if_crowded(&mut self, pid: u32) {
        let is_partial = self
            .spaces
            .space_mut(pid, &mut self.reader)
            .images
            .is_partial;
        if is_partial && self.crowded.len() < MAX_CROWDED && self.crowded.insert(pid) {
            self.warnings.push(format!(
                "process {pid} maps files as code in more than {MAX_IMAGES} places: code in others \
                 is not known any more when the process has ended"
            ));
        }
    }

    /// The code around an address.
    ///
    /// # Errors
    /// When nothing is mapped there, it cannot be read, or its instruction set cannot be decoded.
    pub fn window(&mut self, at: CodeAddress) -> Result<CodeWindow, CodeMiss> {
        let window = self.read_window(at);
        match window {
            Err(CodeMiss::Unmapped) => self.counts.unmapped += 1,
            Err(CodeMiss::Unreadable) => self.counts.unreadable += 1,
            Err(CodeMiss::ForeignArch) => self.counts.foreign_arch += 1,
            Ok(_) => {}
        }
        window
    }

    /// Numbers of pages and windows that were found so far, and that were not.
    pub fn counts(&self) -> CodeCounts {
        self.counts
    }

    fn read_window(&mut self, at: CodeAddress) -> Result<CodeWindow, CodeMiss> {
        let arch = at.arch.ok_or(CodeMiss::ForeignArch)?;
        let own = self.page(at, at.ip)?;
        let mut window = CodeWindow {
            arch,
            base: at.ip.saturating_sub(BEFORE_BYTES).max(own.start),
            bytes: Vec::with_capacity((BEFORE_BYTES + FROM_BYTES) as usize),
            changeable: false,
        };
        // Pages next to it only if the window reaches into them and they can be read.
        let wanted = at.ip.saturating_sub(BEFORE_BYTES);
        if wanted < own.start
            && let Ok(before) = self.page(at, wanted)
            && before.end() == own.start
        {
            window.base = wanted;
            window.extend(&before, at.ip);
        }
        window.extend(&own, at.ip);
        if at.ip.saturating_add(FROM_BYTES) > own.end()
            && let Ok(behind) = self.page(at, own.end())
            && behind.start == own.end()
        {
            window.extend(&behind, at.ip);
        }
        Ok(window)
    }

    fn page(&mut self, at: CodeAddress, address: u64) -> Result<MappedPage, CodeMiss> {
        let start = self.pages.start_of(address);
        let place = self.spaces.place_of(at.pid, start, &mut self.reader);
        if let Some(page) = self.pages.get(place) {
            return Ok(MappedPage { start, page });
        }
        let images = &self.spaces.space_mut(at.pid, &mut self.reader).images;
        let image = images.at(address).cloned();
        let bytes = self.read_page(at, start, place, image.as_ref())?;
        let page = self.pages.put(place, to_page(bytes, image.as_ref()));
        Ok(MappedPage { start, page })
    }

    /// Reads a page from memory, or from the file behind it.
    fn read_page(
        &mut self,
        at: CodeAddress,
        start: u64,
        place: CodePlace,
        image: Option<&Image>,
    ) -> Result<Vec<u8>, CodeMiss> {
        let len = self.pages.page_bytes();
        // The memory of another program would mislead.
        let is_replaced = self.spaces.is_replaced_since(at.pid, at.time_ns);
        if !is_replaced && !self.unread.contains(&place) {
            let (pid, tid) = (at.pid, at.tid);
            let read = self
                .reader
                .read_pages(&[PageAddress { pid, tid, start }], len);
            if let Some(bytes) = read.into_iter().next().flatten() {
                self.counts.from_memory += 1;
                return Ok(bytes);
            }
            self.unread.insert(place);
        }
        let image = image.ok_or(CodeMiss::Unmapped)?;
        let offset = start.checked_sub(image.start);
        let offset = offset
            .filter(|_| image.is_file())
            .ok_or(CodeMiss::Unreadable)?;
        let offset = image.file_offset.saturating_add(offset);
        let file = image.file_ref(self.spaces.ancestry(at.pid));
        let bytes = self.reader.read_code(at.pid, file, offset, len);
        let bytes = bytes.ok_or(CodeMiss::Unreadable)?;
        self.counts.from_file += 1;
        Ok(bytes)
    }
}

fn to_page(bytes: Vec<u8>, image: Option<&Image>) -> CachedPage {
    CachedPage {
        bytes: bytes.into(),
        // Without a known mapping the code may change at any time.
        changeable: image.is_none_or(Image::is_changeable),
    }
}

/// A page at an address of a process.
struct MappedPage {
    start: u64,
    page: Arc<CachedPage>,
}

impl MappedPage {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.page.bytes.len() as u64)
    }
}

impl CodeWindow {
    /// Adds what is wanted of the page that begins where the window ends: from its base on, and up
    /// to `FROM_BYTES` from `ip` on.
    fn extend(&mut self, mapped: &MappedPage, ip: u64) {
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
