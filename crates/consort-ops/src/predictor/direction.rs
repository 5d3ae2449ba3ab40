//! Predictors of the direction of conditional branches.

use super::history::{BranchHistory, HISTORIES, Lanes, MOST_BITS, TAG_BITS, width_position};
use super::{PredictorScheme, SCATTER};

const TABLES: usize = HISTORIES.len();
/// Bits of an entry: a counter of 3, a usefulness of 2, a tag of 11.
const TAGGED_BITS: f64 = 16.0;
const USEFUL: u8 = 3;
/// Bits to which histories are folded for indices: a prime, because folding a history whose
/// outcomes repeat with a period keeps only as many different bits as the width has multiples of
/// the period. With an even width half of the history of a loop around one irregular branch is
/// lost.
const INDEX_BITS: u32 = 13;
/// Odd number that scatters 16 bits by multiplication, the golden ratio's (Knuth, volume 3, section
/// 6.4).
const SCATTER_INDEX: u16 = 0x9e37;

/// Tables of one of the kinds.
#[derive(Clone, Debug)]
pub(crate) struct DirectionTables {
    base: TwoBitCounters,
    /// Bits of an index of `base`.
    mask: usize,
    /// Branches of history in the index of `base`.
    history: u32,
    /// Tagged tables, one behind the other.
    tagged: Vec<TaggedEntry>,
    /// Bits of the index of a tagged table.
    index_bits: u32,
    /// Position in the history of what is folded to [`INDEX_BITS`].
    folds: usize,
    strangers: Strangers,
}

/// Insertions of another program.
#[derive(Clone, Copy, Debug, Default)]
struct Strangers {
    /// Branches for each insertion; 0 for none.
    every: u32,
    /// Branches until the next one.
    left: u32,
    /// Numbers drawn so far.
    drawn: u64,
}

impl Strangers {
    /// A random number of 64 bits (`SplitMix64`: Steele, Lea and Flood, OOPSLA 2014).
    const fn next_random(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(SCATTER);
        let mixed = (self.drawn ^ self.drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Saturating counters of two bits, four in a byte; taken from two on.
#[derive(Clone, Debug)]
struct TwoBitCounters(Vec<u8>);

/// An entry of a tagged table: in the lower half a tag; in the upper five bits a state, which is a
/// saturating counter from 0 to 7, taken from 4 on, and below it how useful it was, 0 to 3.
#[derive(Clone, Copy, Debug)]
struct TaggedEntry(u32);

/// Position of the state of an entry.
const STATE_SHIFT: u32 = 27;

impl DirectionTables {
    /// Tables of a kind in so much storage: a tagged predictor gives a fifth of it to two-bit
    /// counters and the rest to its tagged tables in equal parts.
    pub(crate) fn new(scheme: PredictorScheme, size_kib: f64) -> Self {
        let bits = size_kib * 8192.0;
        let tage = scheme == PredictorScheme::Tagged;
        let base = power_of_two(bits / if tage { 10.0 } else { 2.0 });
        let table =
            power_of_two(bits * 0.8 / HISTORIES.len() as f64 / TAGGED_BITS).min(1 << MOST_BITS);
        let tables = if tage { HISTORIES.len() } else { 0 };
        let mut tables = Self {
            base: TwoBitCounters::new(base),
            mask: base - 1,
            history: match scheme {
                PredictorScheme::Gshare => base.ilog2(),
                PredictorScheme::Bimodal | PredictorScheme::Tagged => 0,
            },
            tagged: vec![TaggedEntry::default(); table * tables],
            index_bits: table.ilog2(),
            folds: 0,
            strangers: Strangers::default(),
        };
        tables.bind_history(&tables.widths());
        tables
    }

    /// Widths to which histories are folded here.
    pub(super) fn widths(&self) -> Vec<u32> {
        if self.tagged.is_empty() {
            return Vec::new();
        }
        vec![TAG_BITS - 1, TAG_BITS, INDEX_BITS]
    }

    /// Uses a history that is folded to these widths, which include its own.
    pub(super) fn bind_history(&mut self, widths: &[u32]) {
        self.folds = width_position(widths, INDEX_BITS);
    }

    /// Lets a stranger insert after every so many branches.
    pub(super) const fn share(&mut self, every: u32) {
        (self.strangers.every, self.strangers.left) = (every, every);
    }

    /// Predicts a branch with these `tags` in the tagged tables, and learns the outcome.
    #[inline(always)]
    pub(crate) fn predict(
        &mut self,
        at: u64,
        history: &BranchHistory,
        tags: &Lanes,
        taken: bool,
    ) -> bool {
        let base = self.base_index(at, history);
        let predicted = match self.tagged.is_empty() {
            true => self.base.predict(base, taken),
            false => self.predict_tagged(at, history, tags, base, taken),
        };
        if self.strangers.every > 0 {
            self.strangers.left -= 1;
            if self.strangers.left == 0 {
                self.strangers.left = self.strangers.every;
                self.insert_stranger();
            }
        }
        predicted
    }

    #[inline(always)]
    fn predict_tagged(
        &mut self,
        at: u64,
        history: &BranchHistory,
        tags: &Lanes,
        base: usize,
        taken: bool,
    ) -> bool {
        let places = self.places(at, history);
        let entries: [TaggedEntry; TABLES] = std::array::from_fn(|t| self.tagged[places[t]]);
        // The base is the lowest bit, and has an entry for every branch. Which tables match, and
        // what they predict, follows no pattern, so this is computed with bits instead of branches.
        let holding = bits(|t| u32::from(entries[t].tag() == tags[t])) * 2 + 1;
        let saying = bits(|t| entries[t].taken_bit()) * 2 + u32::from(self.base.is_taken(base));
        let provider = holding.ilog2();
        let other = (holding ^ 1 << provider | 1).ilog2();
        let predicted = saying >> provider & 1 == 1;
        let otherwise = saying >> other & 1 == 1;
        self.base.learn_if(provider == 0, base, taken);
        let entry = &mut self.tagged[places[provider.saturating_sub(1) as usize]];
        entry.learn_if(provider > 0, taken, otherwise);
        if predicted != taken {
            self.allocate(provider as usize, &places, tags, taken);
        }
        predicted
    }

    /// Replaces what lies at a random place, as another program's insertion does: with tags an entry
    /// of a misprediction, without tags a counter that is trained once.
    fn insert_stranger(&mut self) {
        let mut random = self.strangers.next_random();
        let taken = random >> 63 == 1;
        if self.tagged.is_empty() {
            let at = random as usize & self.mask;
            self.base.learn_if(true, at, taken);
            return;
        }
        // The history that a stranger mispredicts has a length and a place in every table.
        let provider = (random >> 32) as usize % TABLES;
        let mask = (1 << self.index_bits) - 1;
        let places = std::array::from_fn(|t| {
            random = self.strangers.next_random();
            random as usize & mask | t << self.index_bits
        });
        let tag = random >> 48;
        let tags = std::array::from_fn(|t| ((tag >> t) as u16 & ((1 << TAG_BITS) - 1)) + 1);
        self.allocate(provider, &places, &tags, taken);
    }

    fn base_index(&self, at: u64, history: &BranchHistory) -> usize {
        let mask = (1u64 << self.history) - 1;
        ((at >> 1) ^ (history.outcomes() & mask)) as usize & self.mask
    }

    /// Position that a branch with its history would have in each table.
    ///
    /// The index is the upper bits of a number that does not depend on the table's size, so that
    /// branches that meet in a large table meet in every smaller one too, and more storage only
    /// separates them.
    #[inline(always)]
    fn places(&self, at: u64, history: &BranchHistory) -> [usize; TABLES] {
        let bits = self.index_bits;
        let mixed = ((at >> 1) ^ (at >> (INDEX_BITS + 1))) as u16;
        let folds = history.folds(self.folds);
        let unused = MOST_BITS - bits;
        let index: Lanes =
            std::array::from_fn(|t| (mixed ^ folds[t]).wrapping_mul(SCATTER_INDEX) >> unused);
        std::array::from_fn(|t| usize::from(index[t]) | t << bits)
    }

    /// Gives a mispredicted branch an entry in a table from `longer` on, or makes that easier.
    #[inline(never)]
    fn allocate(&mut self, longer: usize, places: &[usize; TABLES], tags: &Lanes, taken: bool) {
        let longer = longer..TABLES;
        let is_free = |t: &usize| self.tagged[places[*t]].is_useless();
        if let Some(t) = longer.clone().find(is_free) {
            self.tagged[places[t]] = TaggedEntry::new(tags[t], taken);
            return;
        }
        for t in longer {
            self.tagged[places[t]].age();
        }
    }
}

impl TwoBitCounters {
    /// So many counters that weakly predict taken.
    fn new(count: usize) -> Self {
        Self(vec![0b1010_1010; count.div_ceil(4)])
    }

    fn counter(&self, at: usize) -> u8 {
        self.0[at / 4] >> (at % 4 * 2) & 3
    }

    fn is_taken(&self, at: usize) -> bool {
        self.counter(at) >= 2
    }

    /// Predicts with one counter and trains it with the outcome.
    fn predict(&mut self, at: usize, taken: bool) -> bool {
        let predicted = self.is_taken(at);
        self.learn_if(true, at, taken);
        predicted
    }

    /// Trains one counter with the outcome, if it `learns`.
    fn learn_if(&mut self, learns: bool, at: usize, taken: bool) {
        let change = CHANGES[usize::from(taken)][usize::from(self.counter(at))];
        let change = if learns { change } else { 0 };
        self.0[at / 4] ^= change << (at % 4 * 2);
    }
}

/// Bits of a counter from 0 to 3 that change when a branch is not taken, and when it is.
const CHANGES: [[u8; 4]; 2] = [[0, 1, 2 ^ 1, 3 ^ 2], [1, 1 ^ 2, 2 ^ 3, 0]];

/// The state that follows each, by whether a branch was taken, and by whether the prediction without
/// the entry was that it is.
const FOLLOWING: [[[u8; 32]; 2]; 2] = {
    let mut following = [[[0; 32]; 2]; 2];
    let mut case = 0;
    while case < 128 {
        let (state, taken, otherwise) = (case % 32, case / 32 % 2, case / 64);
        following[taken][otherwise][state] =
            following_state(state as u8, taken == 1, otherwise == 1);
        case += 1;
    }
    following
};

const fn following_state(state: u8, taken: bool, otherwise: bool) -> u8 {
    let (counter, used) = (state >> 2, state & USEFUL);
    let predicted = counter >= 4;
    let used = match (predicted != otherwise, predicted == taken) {
        (false, _) => used,
        (true, true) if used < USEFUL => used + 1,
        (true, true) => USEFUL,
        (true, false) => used.saturating_sub(1),
    };
    let counter = match taken {
        true if counter < 7 => counter + 1,
        true => 7,
        false => counter.saturating_sub(1),
    };
    counter << 2 | used
}

impl Default for TaggedEntry {
    fn default() -> Self {
        Self::new(0, true)
    }
}

impl TaggedEntry {
    /// An entry that hardly says that a branch is taken, or that it is not, and was of no use yet.
    const fn new(tag: u16, taken: bool) -> Self {
        let counter = if taken { 4 } else { 3 };
        Self(counter << (STATE_SHIFT + 2) | tag as u32)
    }

    const fn tag(self) -> u16 {
        self.0 as u16
    }

    /// 1 where it says that a branch is taken, else 0.
    const fn taken_bit(self) -> u32 {
        self.0 >> 31
    }

    /// Trains the entry with the outcome, if it `learns`; `otherwise` is the prediction without it.
    fn learn_if(&mut self, learns: bool, taken: bool, otherwise: bool) {
        let following = &FOLLOWING[usize::from(taken)][usize::from(otherwise)];
        let state = u32::from(following[(self.0 >> STATE_SHIFT) as usize]);
        let learnt = state << STATE_SHIFT | u32::from(self.tag());
        self.0 = if learns { learnt } else { self.0 };
    }

    const fn is_useless(self) -> bool {
        self.0 >> STATE_SHIFT & USEFUL as u32 == 0
    }

    /// Becomes less useful.
    const fn age(&mut self) {
        if !self.is_useless() {
            self.0 -= 1 << STATE_SHIFT;
        }
    }
}

/// Bits of the tagged tables, the first the lowest.
#[inline(always)]
fn bits(is: impl Fn(usize) -> u32) -> u32 {
    let tables = (0..TABLES).rev();
    tables.fold(0, |bits, t| bits + bits + is(t))
}

/// The largest power of two that is not larger, at least 2.
fn power_of_two(entries: f64) -> usize {
    let entries = (entries as usize).max(2);
    1 << entries.ilog2()
}
