//! Decoded blocks of the sampled addresses, kept from one sample to the next.

use super::RecordBatch;
use super::code::{CodeAddress, CodeCounts, CodeMap, CodePlace, GenerationCache};
use crate::perf::record::PerfRecord;
use consort_isa::{Arch, BlockFacts, CodeBytes};
use std::path::Path;
use std::sync::Arc;

/// Most addresses kept; a block takes about a kilobyte and has about five addresses.
const MAX_ADDRESSES: usize = 32_768;
/// Addresses filed between two sweeps: what ended processes had is at most this much, and looking
/// through all addresses costs little compared with filing these.
const SWEEP_AFTER: usize = 1_024;
/// Most bytes of code pages kept.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Finds blocks by process and address. Blocks of a file that does not change are shared by all
/// processes that have mapped it: a build starts the same compiler a thousand times.
#[derive(Debug)]
pub(super) struct BlockCache {
    code: CodeMap,
    /// One place may be run in two instruction sets: x86 switches its width by a jump.
    blocks: GenerationCache<(CodePlace, Option<Arch>), CachedBlock>,
    /// Addresses filed since the last sweep.
    filed: usize,
    round: u64,
}

/// A block, or the knowledge that there is none.
#[derive(Clone, Debug)]
struct CachedBlock {
    block: Option<Arc<BlockFacts>>,
    lasts: BlockValidity,
}

/// Time for which an entry is right.
#[derive(Clone, Debug)]
enum BlockValidity {
    /// Until another mapping takes the place.
    UntilMapped,
    /// For this round, and in later ones if the code is still that of the origin.
    Round(u64, Arc<BlockSource>),
    /// For this round: the code may be readable in the next.
    Unread(u64),
}

/// The code that a block was decoded from.
#[derive(Debug, PartialEq, Eq)]
struct BlockSource {
    arch: Arch,
    base: u64,
    bytes: Vec<u8>,
}

impl BlockCache {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            code: CodeMap::new(root, MAX_PAGE_BYTES),
            blocks: GenerationCache::new(MAX_ADDRESSES),
            filed: 0,
            round: 0,
        }
    }

    pub(super) fn begin_round(&mut self, batch: &RecordBatch) {
        self.round += 1;
        self.code.begin_round(batch);
        if self.filed >= SWEEP_AFTER {
            self.sweep();
        }
    }

    /// Forgets the blocks of address spaces that are gone.
    fn sweep(&mut self) {
        let living = self.code.sweep();
        self.blocks
            .retain(|(place, _)| living.contains(&place.space));
        self.filed = 0;
    }

    fn insert_entry(&mut self, place: CodePlace, arch: Option<Arch>, entry: CachedBlock) {
        self.blocks.put((place, arch), entry);
        self.filed += 1;
    }

    /// Reads the code around addresses whose blocks are not known, all at once.
    pub(super) fn prefetch(&mut self, addresses: impl Iterator<Item = CodeAddress>) {
        let mut wanted = Vec::new();
        for at in addresses.filter(|at| at.arch.is_some()) {
            let place = self.code.place_of(at.pid, at.ip);
            let known = self.blocks.get(&(place, at.arch));
            if !known.is_some_and(|entry| entry.is_fresh(self.round)) {
                wanted.push(at);
            }
        }
        self.code.prefetch(&wanted);
    }

    /// Takes a record in; to be called in order of time.
    pub(super) fn apply_record(&mut self, record: &PerfRecord) {
        self.code.apply_record(record);
    }

    /// The block at an address, if its code can be read and decoded, and the address of the sample
    /// in the block's own terms.
    pub(super) fn at(&mut self, at: CodeAddress) -> (Option<Arc<BlockFacts>>, u64) {
        let place = self.code.place_of(at.pid, at.ip);
        let known = self.blocks.get(&(place, at.arch));
        if let Some(entry) = &known
            && entry.is_fresh(self.round)
        {
            return (entry.block.clone(), place.address);
        }
        let entry = self.build(at, place, known);
        self.share(place, at.arch, &entry);
        let block = entry.block.clone();
        self.insert_entry(place, at.arch, entry);
        (block, place.address)
    }

    /// Enters a block of fixed code at every boundary that it has: samples fall on all of them, and
    /// cutting a block out of code is by far the dearest step.
    fn share(&mut self, place: CodePlace, arch: Option<Arch>, entry: &CachedBlock) {
        let (Some(block), BlockValidity::UntilMapped) = (&entry.block, &entry.lasts) else {
            return;
        };
        for instruction in block.instructions() {
            let other = CodePlace {
                address: instruction.address,
                ..place
            };
            if self.blocks.get(&(other, arch)).is_none() {
                self.insert_entry(other, arch, entry.clone());
            }
        }
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        self.code.take_warnings()
    }

    pub(super) fn counts(&self) -> CodeCounts {
        self.code.counts()
    }

    fn build(
        &mut self,
        at: CodeAddress,
        place: CodePlace,
        known: Option<CachedBlock>,
    ) -> CachedBlock {
        let Ok(window) = self.code.window(at) else {
            let lasts = BlockValidity::Unread(self.round);
            return CachedBlock { block: None, lasts };
        };
        let changeable = window.changeable;
        let origin = BlockSource {
            arch: window.arch,
            base: (place.address - (at.ip - window.base)),
            bytes: window.bytes,
        };
        let block = match known {
            // The same bytes were decoded in an earlier round.
            Some(CachedBlock {
                block,
                lasts: BlockValidity::Round(_, from),
            }) if *from == origin => block,
            _ => origin.block(place.address),
        };
        let lasts = match changeable {
            true => BlockValidity::Round(self.round, Arc::new(origin)),
            false => BlockValidity::UntilMapped,
        };
        CachedBlock { block, lasts }
    }
}

impl CachedBlock {
    fn is_fresh(&self, now: u64) -> bool {
        match self.lasts {
            BlockValidity::UntilMapped => true,
            BlockValidity::Round(round, _) | BlockValidity::Unread(round) => round == now,
        }
    }
}

impl BlockSource {
    fn block(&self, ip: u64) -> Option<Arc<BlockFacts>> {
        let code = CodeBytes {
            arch: self.arch,
            bytes: &self.bytes,
            base: self.base,
        };
        BlockFacts::build(code, ip, &[]).ok().map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::executable_images;
    use super::*;
    use crate::perf::record::{MmapRecord, TaskRecord};
    use std::process::{Child, Command};

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    /// Tells `blocks` of the program's own code as the kernel does; returns an address in it.
    fn tell(blocks: &mut BlockCache, child: &Child, generation: u64) -> u64 {
        let exe = std::fs::read_link(format!("/proc/{}/exe", child.id())).unwrap();
        let list = std::fs::read(format!("/proc/{}/maps", child.id())).unwrap();
        let own = executable_images(&list).find(|image| Path::new(&*image.path) == exe);
        let own = own.unwrap();
        blocks.apply_record(&PerfRecord::Mmap2(MmapRecord {
            pid: child.id(),
            start: own.start,
            len: own.end - own.start,
            file_offset: own.file_offset,
            device: own.device,
            inode: own.inode,
            generation,
            prot: own.prot,
            path: own.path.to_string(),
            time_ns: 1,
        }));
        own.start + 0x100
    }

    fn block_of(blocks: &mut BlockCache, child: &Child, generation: u64) -> Arc<BlockFacts> {
        block_behind(blocks, child, generation, 0)
    }

    fn block_behind(
        blocks: &mut BlockCache,
        child: &Child,
        generation: u64,
        bytes: u64,
    ) -> Arc<BlockFacts> {
        let ip = tell(blocks, child, generation) + bytes;
        let at = CodeAddress {
            pid: child.id(),
            tid: child.id(),
            ip,
            arch: Some(Arch::X86_64),
            time_ns: 2,
        };
        blocks.at(at).0.unwrap()
    }

    #[test]
    fn processes_of_a_known_file_share_blocks() {
        let children = [(); 3].map(|()| sleeper());
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut blocks = BlockCache::new(Path::new("/"));
        let [first, second, unsure] = &children;
        let one = block_of(&mut blocks, first, 7);
        let read = blocks.counts();
        let other = block_of(&mut blocks, second, 7);
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(blocks.counts(), read, "code was read again");
        let apart = block_of(&mut blocks, unsure, 0);
        assert!(!Arc::ptr_eq(&one, &apart));
        assert_eq!(one.instructions().len(), apart.instructions().len());
        children.into_iter().for_each(end);
    }

    #[test]
    fn file_pages_are_read_once_for_all_processes() {
        let children = [(); 2].map(|()| sleeper());
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut blocks = BlockCache::new(Path::new("/"));
        let [first, second] = &children;
        // Far enough from what is mapped before the code.
        let far = 0x800;
        let one = block_behind(&mut blocks, first, 7, far);
        let read = blocks.counts();
        let last = one.instructions().last().unwrap();
        let behind = last.end() - one.instructions()[0].address;
        let other = block_behind(&mut blocks, second, 7, far + behind);
        assert!(!Arc::ptr_eq(&one, &other), "no other block");
        assert_eq!(blocks.counts(), read, "a page was read again");
        children.into_iter().for_each(end);
    }

    #[test]
    fn blocks_of_ended_processes_are_forgotten() {
        let [ended, other] = [(); 2].map(|()| sleeper());
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut blocks = BlockCache::new(Path::new("/"));
        block_of(&mut blocks, &ended, 0);
        let pid = ended.id();
        end(ended);
        blocks.apply_record(&PerfRecord::Exit(TaskRecord {
            pid,
            tid: pid,
            parent_pid: 1,
            parent_tid: 1,
            time_ns: 3,
        }));
        let ip = tell(&mut blocks, &other, 0);
        for ip in ip..ip + SWEEP_AFTER as u64 {
            blocks.begin_round(&RecordBatch::default());
            let (pid, tid, time_ns) = (other.id(), other.id(), 4);
            blocks.at(CodeAddress {
                pid,
                tid,
                ip,
                arch: Some(Arch::X86_64),
                time_ns,
            });
        }
        blocks.begin_round(&RecordBatch::default());
        let space = blocks.code.place_of(other.id(), ip).space;
        let filed = blocks.blocks.len();
        blocks.blocks.retain(|(place, _)| place.space == space);
        assert_eq!(blocks.blocks.len(), filed);
        end(other);
    }
}
