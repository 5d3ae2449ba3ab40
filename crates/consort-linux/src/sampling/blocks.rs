//! The decoded block at each sampled address, kept from one sample to the next.

use super::Batch;
use super::code::{CodeAddress, CodeCounts, CodeMap, Generations, SpaceId};
use crate::perf::record::Record;
use consort_isa::{Arch, BlockFacts, Code};
use std::path::Path;
use std::sync::Arc;

/// Most addresses kept; a block takes about a kilobyte and has about five.
const MAX_ADDRESSES: usize = 32_768;
/// Most bytes of code pages kept.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// Finds blocks by process and address.
#[derive(Debug)]
pub(super) struct Blocks {
    code: CodeMap,
    blocks: Generations<(SpaceId, u64), Entry>,
    round: u64,
}

/// A block, or the knowledge that there is none.
#[derive(Clone, Debug)]
struct Entry {
    block: Option<Arc<BlockFacts>>,
    lasts: Lasts,
}

/// For how long an entry is right.
#[derive(Clone, Debug)]
enum Lasts {
    /// Until something else is mapped there.
    UntilMapped,
    /// For this round; in later ones, if the code is still that of the origin.
    Round(u64, Arc<Origin>),
    /// For this round: the code may be readable in the next.
    Unread(u64),
}

/// The code that a block was decoded from.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    arch: Arch,
    base: u64,
    bytes: Vec<u8>,
}

impl Blocks {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            code: CodeMap::new(root, MAX_PAGE_BYTES),
            blocks: Generations::new(MAX_ADDRESSES),
            round: 0,
        }
    }

    pub(super) fn begin_round(&mut self, batch: &Batch) {
        self.round += 1;
        self.code.begin_round(batch);
    }

    /// Takes a record in; to be called in order of time.
    pub(super) fn take(&mut self, record: &Record) {
        self.code.take(record);
    }

    /// The block at an address, if its code can be read and decoded.
    pub(super) fn at(&mut self, at: CodeAddress) -> Option<Arc<BlockFacts>> {
        let key = (self.code.space_of(at.pid), at.ip);
        let known = self.blocks.get(&key);
        if let Some(entry) = &known
            && entry.is_fresh(self.round)
        {
            return entry.block.clone();
        }
        let entry = self.build(at, known);
        self.share(key, &entry);
        let block = entry.block.clone();
        self.blocks.put(key, entry);
        block
    }

    /// Files a block of fixed code under every boundary that it has: samples fall on all of them,
    /// and cutting a block out of code is by far the dearest step.
    fn share(&mut self, (space, _): (SpaceId, u64), entry: &Entry) {
        let (Some(block), Lasts::UntilMapped) = (&entry.block, &entry.lasts) else {
            return;
        };
        for instruction in block.instructions() {
            let key = (space, instruction.address);
            if self.blocks.get(&key).is_none() {
                self.blocks.put(key, entry.clone());
            }
        }
    }

    pub(super) fn counts(&self) -> CodeCounts {
        self.code.counts()
    }

    fn build(&mut self, at: CodeAddress, known: Option<Entry>) -> Entry {
        let Ok(window) = self.code.window(at) else {
            let lasts = Lasts::Unread(self.round);
            return Entry { block: None, lasts };
        };
        let changeable = window.changeable;
        let origin = Origin {
            arch: window.arch,
            base: window.base,
            bytes: window.bytes,
        };
        let block = match known {
            Some(known) if known.is_from(&origin) => known.block,
            _ => origin.block(at.ip),
        };
        let lasts = match changeable {
            true => Lasts::Round(self.round, Arc::new(origin)),
            false => Lasts::UntilMapped,
        };
        Entry { block, lasts }
    }
}

impl Entry {
    fn is_fresh(&self, now: u64) -> bool {
        match self.lasts {
            Lasts::UntilMapped => true,
            Lasts::Round(round, _) | Lasts::Unread(round) => round == now,
        }
    }

    fn is_from(&self, code: &Origin) -> bool {
        matches!(&self.lasts, Lasts::Round(_, origin) if **origin == *code)
    }
}

impl Origin {
    fn block(&self, ip: u64) -> Option<Arc<BlockFacts>> {
        let code = Code {
            arch: self.arch,
            bytes: &self.bytes,
            base: self.base,
        };
        BlockFacts::build(code, ip, &[]).ok().map(Arc::new)
    }
}
