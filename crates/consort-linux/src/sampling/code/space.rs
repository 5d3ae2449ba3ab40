//! Address spaces: a process id stands for a new one after each `exec`.

use super::images::{FileId, Image, Images};
use super::maps::executable_images;
use super::vintage::Vintages;
use crate::perf::record::{Mapping, Record};
use crate::sampling::Batch;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

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

/// One address space.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) id: SpaceId,
    pub(super) images: Images,
    /// The round in which the process ended.
    ended: Option<u64>,
}

/// Number of rounds for which an ended process is remembered: records of one PU may be read a round
/// later than those of another.
const ROUNDS_AFTER_END: u64 = 3;

/// The address space of each process.
#[derive(Debug)]
pub(super) struct Spaces {
    root: PathBuf,
    by_pid: HashMap<u32, Space>,
    /// Space of each file, and its number, which gives its addresses.
    files: HashMap<FileId, (SpaceId, u64)>,
    vintages: Vintages,
    /// Time, ns, at which processes became other programs in this round.
    replaced_ns: HashMap<u32, u64>,
    next_id: u64,
    round: u64,
}

impl Spaces {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            by_pid: HashMap::new(),
            files: HashMap::new(),
            vintages: Vintages::new(root),
            replaced_ns: HashMap::new(),
            next_id: 0,
            round: 0,
        }
    }

    /// Notes the processes that become other programs within the batch, and forgets those that have
    /// ended. After lost records nothing known is sure.
    pub(super) fn begin_round(&mut self, batch: &Batch) {
        self.round += 1;
        self.vintages.begin_round();
        let round = self.round;
        let recent = |ended: u64| round - ended <= ROUNDS_AFTER_END;
        self.by_pid
            .retain(|_, space| space.ended.is_none_or(recent));
        if batch.lost > 0 {
            self.by_pid.retain(|_, space| space.ended.is_some());
        }
        self.replaced_ns = batch.records.iter().filter_map(replaced).collect();
    }

    /// Returns true if the process became another program after `time_ns`, so that its memory is
    /// not that of the sample.
    pub(super) fn is_replaced_since(&self, pid: u32, time_ns: u64) -> bool {
        let replaced = self.replaced_ns.get(&pid);
        replaced.is_some_and(|&at| time_ns < at)
    }

    /// The space of a process; the mappings of one that was not known are read.
    pub(super) fn of(&mut self, pid: u32) -> &mut Space {
        if !self.by_pid.contains_key(&pid) {
            let images = executable_images(&self.root, pid).into_iter().collect();
            self.begin(pid, images);
        }
        self.by_pid.get_mut(&pid).expect("it was put in just now")
    }

    /// The place of an address of a process, which is the same for all processes that have mapped a
    /// file.
    pub(super) fn place_of(&mut self, pid: u32, address: u64) -> CodePlace {
        let own = CodePlace {
            space: self.of(pid).id,
            address,
        };
        let space = self.by_pid.get_mut(&pid);
        let Some(image) = space.and_then(|space| space.images.at_mut(address)) else {
            return own;
        };
        self.vintages.settle(image);
        let offset = (address - image.start).saturating_add(image.file_offset);
        match image.fixed_file().filter(|_| offset < 1 << FILE_BITS) {
            Some(file) => self.place_in(file, offset),
            None => own,
        }
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
    pub(super) fn living(&self) -> HashSet<SpaceId> {
        let of_processes = self.by_pid.values().map(|space| space.id);
        let of_files = self.files.values().map(|&(space, _)| space);
        of_processes.chain(of_files).collect()
    }

    pub(super) fn fork(&mut self, parent: u32, pid: u32) {
        // A parent that was never seen: its child's own mappings tell as much.
        if let Some(space) = self.by_pid.get(&parent) {
            let images = space.images.clone();
            self.begin(pid, images);
        } else {
            self.by_pid.remove(&pid);
        }
    }

    pub(super) fn exec(&mut self, pid: u32) {
        self.begin(pid, Images::default());
    }

    pub(super) fn end(&mut self, pid: u32) {
        if let Some(space) = self.by_pid.get_mut(&pid) {
            space.ended = Some(self.round);
        }
    }

    /// Maps what a record tells.
    pub(super) fn take(&mut self, mapping: &Mapping) {
        self.map(mapping.pid, Image::of_record(mapping));
    }

    /// Maps an image. Where it covers code that was held to be fixed, no code read so far is sure
    /// any more, and the space gets another name. Where there are too many mappings, those that no
    /// longer exist are forgotten.
    fn map(&mut self, pid: u32, image: Image) {
        let covers_fixed = self.of(pid).images.has_fixed_in(image.start..image.end);
        if covers_fixed {
            self.next_id += 1;
        }
        let newest = SpaceId(self.next_id);
        let root = self.root.clone();
        let space = self.of(pid);
        space.images.insert(image);
        if covers_fixed {
            space.id = newest;
        }
        if space.images.are_too_many() {
            space.images = executable_images(&root, pid).into_iter().collect();
        }
    }

    fn begin(&mut self, pid: u32, images: Images) {
        self.next_id += 1;
        let space = Space {
            id: SpaceId(self.next_id),
            images,
            ended: None,
        };
        self.by_pid.insert(pid, space);
    }
}

/// The process that becomes another program by this record, and the time, ns.
fn replaced(record: &Record) -> Option<(u32, u64)> {
    match record {
        Record::Comm {
            pid,
            exec: true,
            time_ns,
            ..
        } => Some((*pid, *time_ns)),
        Record::Fork(task) if task.pid == task.tid => Some((task.pid, task.time_ns)),
        _ => None,
    }
}
