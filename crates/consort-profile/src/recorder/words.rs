//! Words in which the plugin reports execution: accesses to memory, and what they and the next
//! block show about an operation.

use consort_ops::{Branch, BranchKind, Op, OpKind};

const ADDRESS_BITS: u32 = 50;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// Little-endian words of 64 bits.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

/// Access to memory as the emulator reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessWord {
    pub(super) address: u64,
    bytes: u64,
    pub(super) instruction: usize,
    store: bool,
    taken: bool,
}

impl AccessWord {
    pub(super) const fn new(word: u64) -> Self {
        Self {
            address: Self::address(word),
            bytes: 1 << (word >> 59 & 7),
            instruction: (word >> 50 & 0x1ff) as usize,
            store: word >> 62 & 1 == 1,
            taken: false,
        }
    }

    /// The address. Those of user programs are below 2^47.
    pub(super) const fn address(word: u64) -> u64 {
        word & ADDRESS
    }

    pub(super) const fn form(word: u64) -> u64 {
        word >> ADDRESS_BITS
    }

    /// The form of an access of `bytes` bytes by the instruction with this number; `None` if no
    /// single word can describe it.
    pub(super) fn access_form(instruction: usize, bytes: u64, is_store: bool) -> Option<u64> {
        let is_one = bytes.is_power_of_two() && bytes <= 8 && instruction < 512;
        let size = u64::from(bytes.trailing_zeros());
        is_one.then_some(u64::from(is_store) << 12 | size << 9 | instruction as u64)
    }
}

/// Finds the address of the operation's data. Returns false if there was no access. An access that
/// the emulator splits is joined; one that it both reads and writes in one step is reported once.
pub(super) fn locate_data(op: &mut Op, accesses: &mut [AccessWord]) -> bool {
    let store = op.kind == OpKind::Store;
    let free = accesses
        .iter()
        .position(|word| !word.taken && word.store == store);
    let Some(at) = free.or_else(|| accesses.len().checked_sub(1)) else {
        return false;
    };
    let Some(data) = &mut op.data else {
        return false;
    };
    data.address = accesses[at].address;
    let mut end = data.address;
    for word in &mut accesses[at..] {
        let follows = word.store == store && word.address == end;
        if !follows || (data.bytes > 0 && end - data.address >= u64::from(data.bytes)) {
            break;
        }
        word.taken = true;
        end += word.bytes;
    }
    if data.bytes == 0 {
        data.bytes = u16::try_from(end - data.address).unwrap_or(u16::MAX);
    }
    true
}

/// Outcome of a branch, given the address `next` at which execution continued; if that is not
/// known, as if it continued behind the branch.
pub(super) fn resolve_branch(op: &Op, branch: Branch, next: Option<u64>) -> Branch {
    let through = op.address.wrapping_add(u64::from(op.length));
    let target = next.unwrap_or(through);
    Branch {
        taken: target != through || branch.turn != BranchKind::Conditional,
        target,
        ..branch
    }
}
