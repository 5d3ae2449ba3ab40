//! Address spaces: a process id stands for a new one after each `exec`.

use super::images::{FileChangeTimes, FileId, Image, Images};
use crate::perf::record::{MmapRecord, PerfRecord};
use crate::reader::CodeReader;
use crate::sampling::RecordBatch;
use std::collections::{HashMap, HashSet};

/// A name for one address space; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(pub(super) u64);

/// Place of an instruction: in an address space, or in a file that several have mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodePlace {
    /// The address space of the process, or that of the file.
    pub(crate) space: SpaceId,
    /// Address in the space, which for a file is no address of any process.
    pub(crate) address: u64,
}

/// Most files whose spaces are remembered.
const MAX_FILES: usize = 4_096;
/// Bits of an offset in a file: files lie above every address that a process can have, this far
/// apart.
const FILE_BITS: u32 = 40;
const ABOVE_ALL: u64 = 1 << 63;

/// Number of processes with known parents from which on those without samples are forgotten.
const MAX_PARENTS: usize = 16_384;

/// One address space.
#[derive(Clone, Debug)]
pub(super) struct AddressSpace {
    pub(super) id: SpaceId,
    pub(super) images: Images,
    /// A list of its mappings that was requested.
    awaits: AwaitedList,
    /// Round before which no list of its mappings is requested again.
    next_list: u64,
    /// The round in which the process ended.
    ended: Option<u64>,
}

/// Purpose of a list of mappings that has been requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AwaitedList {
    Nothing,
    /// The mappings that were there before the first record.
    Earlier,
    /// All mappings: too many are known, and most of them may be gone.
    All,
}

/// Rounds between two lists of a process that has too many mappings.
const ROUNDS_BETWEEN_LISTS: u64 = 64;
/// Most ancestors of a process below whose roots its files are looked for.
const MAX_ANCESTORS: usize = 8;

/// Number of rounds for which an ended process is remembered: records of one CPU may be read a
/// round later than those of another.
const ROUNDS_AFTER_END: u64 = 3;

/// The address space of each process.
#[derive(Debug)]
pub(super) struct AddressSpaces {
    by_pid: HashMap<u32, AddressSpace>,
    /// The process that started each one.
    parents: HashMap<u32, u32>,
    /// Space of each file, and its number, which gives its addresses.
    files: HashMap<FileId, (SpaceId, u64)>,
    vintages: FileChangeTimes,
    /// Time, ns, at which processes became other programs in this round.
    replaced_ns: HashMap<u32, u64>,
    next_id: u64,
    round: u64,
}

impl AddressSpaces {
    pub(super) fn new() -> Self {
        Self {
            by_pid: HashMap::new(),
            parents: HashMap::new(),
            files: HashMap::new(),
            vintages: FileChangeTimes::default(),
            replaced_ns: HashMap::new(),
            next_id: 0,
            round: 0,
        }
    }

    /// Notes the processes that become other programs within the batch, and forgets the ones that have
    /// ended. After lost records nothing known is sure.
    pub(super) fn begin_round(&mut self, batch: &RecordBatch) {
        self.round += 1;
        self.vintages.begin_round();
        let round = self.round;
        let recent = |ended: u64| round - ended <= ROUNDS_AFTER_END;
        self.by_pid
            .retain(|_, space| space.ended.is_none_or(recent));
        if self.parents.len() > MAX_PARENTS {
            self.parents.retain(|pid, _| self.by_pid.contains_key(pid));
        }
        if batch.lost > 0 {
            self.by_pid.retain(|_, space| space.ended.is_some());
        }
        self.replaced_ns = batch.records.iter().filter_map(replaced_process).collect();
    }

    /// Returns true if the process became another program after `time_ns`, so that its memory is
    /// not that of the sample.
    pub(super) fn is_replaced_since(&self, pid: u32, time_ns: u64) -> bool {
        let replaced = self.replaced_ns.get(&pid);
        replaced.is_some_and(|&at| time_ns < at)
    }

    /// The space of a process; if it is new, a list of its mappings is requested.
    pub(super) fn space_mut(&mut self, pid: u32, reader: &mut CodeReader) -> &mut AddressSpace {
        if !self.by_pid.contains_key(&pid) {
            self.begin_space(pid, Images::default());
            self.request_list(pid, AwaitedList::Earlier, reader);
        }
        self.by_pid.get_mut(&pid).expect("it was put in just now")
    }

    fn request_list(&mut self, pid: u32, awaits: AwaitedList, reader: &mut CodeReader) {
        if let Some(space) = self.by_pid.get_mut(&pid) {
            space.awaits = awaits;
            space.next_list = self.round + ROUNDS_BETWEEN_LISTS;
        }
        if let Some(list) = reader.request_mappings(pid) {
            self.take_list(pid, &list);
        }
    }

    /// Takes in a list of the mappings of a process, unless it has become another program since the
    /// list was requested.
    pub(super) fn take_list(&mut self, pid: u32, list: &[u8]) {
        let Some(space) = self.by_pid.get_mut(&pid) else {
            return;
        };
        let awaited = std::mem::replace(&mut space.awaits, AwaitedList::Nothing);
        if awaited == AwaitedList::Nothing || list.is_empty() {
            return;
        }
        let mut images: Images = executable_images(list).collect();
        if awaited == AwaitedList::Earlier {
            images.cover_with(&space.images);
        }
        space.images = images;
    }

    /// The place of an address of a process, which is the same for all processes that have mapped a
    /// file.
    pub(super) fn place_of(
        &mut self,
        pid: u32,
        address: u64,
        reader: &mut CodeReader,
    ) -> CodePlace {
        let own = CodePlace {
            space: self.space_mut(pid, reader).id,
            address,
        };
        let Some(image) = self.by_pid[&pid].images.at(address) else {
            return own;
        };
        if image.generation == 0 && image.mapped_ns != 0 {
            let ancestry = self.ancestry(pid);
            let space = self.by_pid.get_mut(&pid);
            if let Some(image) = space.and_then(|space| space.images.at_mut(address)) {
                self.vintages.settle_generation(image, &ancestry, reader);
            }
        }
        let Some(image) = self.by_pid[&pid].images.at(address) else {
            return own;
        };
        let offset = (address - image.start).saturating_add(image.file_offset);
        match image.fixed_file().filter(|_| offset < 1 << FILE_BITS) {
            Some(file) => self.place_in(file, offset),
            None => own,
        }
    }

    /// The process and its ancestors, as far as they are known.
    pub(super) fn ancestry(&self, pid: u32) -> Vec<u32> {
        let ancestors = std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied());
        ancestors.take(1 + MAX_ANCESTORS).collect()
    }

    fn place_in(&mut self, file: FileId, offset: u64) -> CodePlace {
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&file) {
            self.files.clear();
        }
        let next = self.files.len() as u64;
        let (space, number) = *self.files.entry(file).or_insert_with(|| {
            self.next_id += 1;
            (SpaceId(self.next_id), next)
        });
        CodePlace {
            space,
            address: ABOVE_ALL | (number << FILE_BITS) | offset,
        }
    }

    /// The spaces that processes or files still have.
    pub(super) fn living_spaces(&self) -> HashSet<SpaceId> {
        let of_processes = self.by_pid.values().map(|space| space.id);
        let of_files = self.files.values().map(|&(space, _)| space);
        of_processes.chain(of_files).collect()
    }

    pub(super) fn note_fork(&mut self, parent: u32, pid: u32) {
        self.parents.insert(pid, parent);
        // A parent that was never seen: its child's own mappings show as much.
        if let Some(space) = self.by_pid.get(&parent) {
            let images = space.images.clone();
            self.begin_space(pid, images);
        } else {
            self.by_pid.remove(&pid);
        }
    }

    pub(super) fn note_exec(&mut self, pid: u32) {
        self.begin_space(pid, Images::default());
    }

    pub(super) fn note_exit(&mut self, pid: u32) {
        if let Some(space) = self.by_pid.get_mut(&pid) {
            space.ended = Some(self.round);
        }
    }

    /// Maps what a record shows. Where it covers code that was held to be fixed, no code read so far
    /// is sure any more, and the space gets another name. Where there are too many mappings, those
    /// that no longer exist are forgotten.
    pub(super) fn apply_mapping(&mut self, mapping: &MmapRecord, reader: &mut CodeReader) {
        let image = Image::from_record(mapping);
        let images = &self.space_mut(mapping.pid, reader).images;
        let covers_fixed = images.has_fixed_in(image.start..image.end);
        if covers_fixed {
            self.next_id += 1;
        }
        let newest = SpaceId(self.next_id);
        let round = self.round;
        let space = self.space_mut(mapping.pid, reader);
        if covers_fixed {
            space.id = newest;
        }
        space.images.insert(image);
        let is_due = space.awaits == AwaitedList::Nothing && round >= space.next_list;
        if space.images.is_partial && is_due {
            self.request_list(mapping.pid, AwaitedList::All, reader);
        }
    }

    fn begin_space(&mut self, pid: u32, images: Images) {
        self.next_id += 1;
        let space = AddressSpace {
            id: SpaceId(self.next_id),
            images,
            awaits: AwaitedList::Nothing,
            next_list: 0,
            ended: None,
        };
        self.by_pid.insert(pid, space);
    }
}

/// The process that becomes another program by this record, and the time, ns.
fn replaced_process(record: &PerfRecord) -> Option<(u32, u64)> {
    match record {
        PerfRecord::Comm {
            pid,
            exec: true,
            time_ns,
            ..
        } => Some((*pid, *time_ns)),
        PerfRecord::Fork(task) if task.pid == task.tid => Some((task.pid, task.time_ns)),
        _ => None,
    }
}

const READ: u32 = 1;
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;

/// The executable mappings of a list, without lines of another form.
pub(in crate::sampling) fn executable_images(list: &[u8]) -> impl Iterator<Item = Image> {
    let lines = list.split(|&byte| byte == b'\n');
    let images = lines.filter_map(|line| image(&String::from_utf8_lossy(line)));
    images.filter(|image| image.prot & EXECUTE != 0)
}

/// Parses `start-end perms offset dev inode   path`; the path may hold spaces.
fn image(line: &str) -> Option<Image> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let prot = prot(fields.next()?);
    let file_offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let device = device(fields.next()?)?;
    let inode = fields.next()?.parse().ok()?;
    Some(Image {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        file_offset,
        device,
        inode,
        generation: 0,
        mapped_ns: 0,
        prot,
        path: fields.next().unwrap_or_default().trim_start().into(),
    })
}

/// Major and minor number, hexadecimal.
fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    Some((number(major)?, number(minor)?))
}

fn prot(letters: &str) -> u32 {
    let bit = |letter: char, bit| if letters.contains(letter) { bit } else { 0 };
    bit('r', READ) | bit('w', WRITE) | bit('x', EXECUTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn executable_mappings_are_read_with_spaces_in_paths() {
        let text = "\
55d0-55e0 r--p 00000000 fe:00 12                         /bin/a b
55e0-55f0 r-xp 00001000 fe:00 12                         /bin/a b
6000-7000 rwxp 00000000 00:00 0 
7fff-8fff r-xp 00000000 00:00 0                          [vdso]
";
        let images: Vec<Image> = executable_images(text.as_bytes()).collect();
        let paths: Vec<&str> = images.iter().map(|i| &*i.path).collect();
        assert_eq!(paths, ["/bin/a b", "", "[vdso]"]);
        let code = &images[0];
        assert_eq!(code.device, (0xfe, 0));
        let range = (code.start, code.end, code.file_offset, code.inode);
        assert_eq!(range, (0x55e0, 0x55f0, 0x1000, 12));
        assert_eq!(images[1].prot, READ | WRITE | EXECUTE);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,80}") {
            executable_images(text.as_bytes()).count();
        }
    }
}
