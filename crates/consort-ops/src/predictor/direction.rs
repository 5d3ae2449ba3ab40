//! Predictors of the direction of conditional branches.

use super::Scheme;
use super::history::{History, Lanes, TAG_BITS, place};

/// Histories of the tagged tables, branches: a geometric series (Seznec and Michaud, 2006).
pub(super) const HISTORIES: [u32; 5] = [5, 12, 29, 64, 126];
const TABLES: usize = HISTORIES.len();
/// Bits of an entry: a counter of 3, a usefulness of 2, a tag of 11.
const TAGGED_BITS: f64 = 16.0;
const USEFUL: u8 = 3;

/// Tables of one of the kinds.
#[derive(Clone, Debug)]
pub(crate) struct Directions {
    base: Counters,
    /// Bits of an index of `base`.
    mask: usize,
    /// Branches of history in the index of `base`.
    history: u32,
    /// Tagged tables, one behind the other.
    tagged: Vec<Tagged>,
    /// Bits of the index of a tagged table.
    index_bits: u32,
    /// Position in the history of what is folded to as many bits.
    folds: usize,
}

/// Saturating counters of two bits, four in a byte; taken from two on.
#[derive(Clone, Debug)]
struct Counters(Vec<u8>);

/// A saturating counter; taken from zero on.
#[derive(Clone, Copy, Debug, Default)]
struct Counter(i8);

#[derive(Clone, Copy, Debug, Default)]
struct Tagged {
    tag: u16,
    counter: Counter,
    useful: u8,
}

impl Directions {
    /// Tables of a kind in so much storage: a tagged predictor gives a fifth of it to two-bit
    /// counters and the rest to its tagged tables in equal parts.
    pub(crate) fn new(scheme: Scheme, size_kib: f64) -> Self {
        let bits = size_kib * 8192.0;
        let tage = scheme == Scheme::Tagged;
        let base = power_of_two(bits / if tage { 10.0 } else { 2.0 });
        let table = power_of_two(bits * 0.8 / HISTORIES.len() as f64 / TAGGED_BITS);
        let tables = if tage { HISTORIES.len() } else { 0 };
        let mut tables = Self {
            base: Counters::new(base),
            mask: base - 1,
            history: match scheme {
                Scheme::Gshare => base.ilog2(),
                Scheme::Bimodal | Scheme::Tagged => 0,
            },
            tagged: vec![Tagged::default(); table * tables],
            index_bits: table.ilog2(),
            folds: 0,
        };
        tables.follow(&tables.widths());
        tables
    }

    /// Widths to which histories are folded here.
    pub(super) fn widths(&self) -> Vec<u32> {
        if self.tagged.is_empty() {
            return Vec::new();
        }
        let mut widths = vec![self.index_bits, TAG_BITS, TAG_BITS - 1];
        widths.sort_unstable();
        widths.dedup();
        widths
    }

    /// Has it use a history that is folded to these widths, its own among them.
    pub(super) fn follow(&mut self, widths: &[u32]) {
        self.folds = place(widths, self.index_bits);
    }

    /// The prediction of a branch that has these `tags` in the tagged tables; the truth is learnt.
    #[inline]
    pub(crate) fn predict(
        &mut self,
        at: u64,
        history: &History,
        tags: &Lanes,
        taken: bool,
    ) -> bool {
        let base = self.base_index(at, history);
        match self.tagged.is_empty() {
            true => self.base.predict(base, taken),
            false => self.predict_tagged(at, history, tags, base, taken),
        }
    }

    fn predict_tagged(
        &mut self,
        at: u64,
        history: &History,
        tags: &Lanes,
        base: usize,
        taken: bool,
    ) -> bool {
        let places = self.places(at, history);
        let holds = |t: usize| u32::from(u32::from(self.tagged[places[t]].tag) == tags[t]) << t;
        let holding = (0..TABLES).fold(0, |bits, t| bits | holds(t));
        let provider = holding.checked_ilog2().map(|t| t as usize);
        let others = provider.map_or(0, |t| holding ^ 1 << t);
        let otherwise = match others.checked_ilog2() {
            Some(t) => self.tagged[places[t as usize]].counter.taken(),
            None => self.base.taken(base),
        };
        let predicted = match provider {
            Some(t) => self.tagged[places[t]].predict(taken, otherwise),
            None => self.base.predict(base, taken),
        };
        if predicted != taken {
            self.allocate(provider, &places, tags, taken);
        }
        predicted
    }

    fn base_index(&self, at: u64, history: &History) -> usize {
        let mask = (1u64 << self.history) - 1;
        ((at >> 1) ^ (history.outcomes() & mask)) as usize & self.mask
    }

    /// Position that a branch with its history would have in each table.
    fn places(&self, at: u64, history: &History) -> [usize; TABLES] {
        let bits = self.index_bits;
        let mixed = ((at >> 1) ^ (at >> (bits + 1))) as u32;
        let folds = history.folds(self.folds);
        let index = |t: usize| (mixed ^ folds[t]) & ((1 << bits) - 1);
        std::array::from_fn(|t| (t << bits) + index(t) as usize)
    }

    /// Gives a mispredicted branch an entry with a longer history, or makes that easier.
    fn allocate(
        &mut self,
        provider: Option<usize>,
        places: &[usize; TABLES],
        tags: &Lanes,
        taken: bool,
    ) {
        let longer = provider.map_or(0, |t| t + 1)..TABLES;
        let free = longer.clone().find(|&t| self.tagged[places[t]].useful == 0);
        if let Some(t) = free {
            self.tagged[places[t]] = Tagged {
                tag: tags[t] as u16,
                counter: Counter(if taken { 0 } else { -1 }),
                useful: 0,
            };
            return;
        }
        for t in longer {
            self.tagged[places[t]].learn_use(false);
        }
    }
}

impl Counters {
    /// So many, all of which just say that a branch is taken.
    fn new(count: usize) -> Self {
        Self(vec![0b1010_1010; count.div_ceil(4)])
    }

    fn of(&self, at: usize) -> u8 {
        self.0[at / 4] >> (at % 4 * 2) & 3
    }

    fn taken(&self, at: usize) -> bool {
        self.of(at) >= 2
    }

    /// The prediction of one; the truth is learnt.
    fn predict(&mut self, at: usize, taken: bool) -> bool {
        let before = self.of(at);
        let after = match taken {
            true => (before + 1).min(3),
            false => before.saturating_sub(1),
        };
        self.0[at / 4] ^= (before ^ after) << (at % 4 * 2);
        before >= 2
    }
}

impl Counter {
    fn taken(self) -> bool {
        self.0 >= 0
    }

    /// Moves towards the truth, from -4 to 3.
    fn learn(&mut self, taken: bool) {
        let towards = if taken { 1 } else { -1 };
        self.0 = (self.0 + towards).clamp(-4, 3);
    }
}

impl Tagged {
    /// The prediction, where without it there would be another; the truth is learnt.
    fn predict(&mut self, taken: bool, otherwise: bool) -> bool {
        let predicted = self.counter.taken();
        self.counter.learn(taken);
        if predicted != otherwise {
            self.learn_use(predicted == taken);
        }
        predicted
    }

    fn learn_use(&mut self, was: bool) {
        self.useful = match was {
            true => (self.useful + 1).min(USEFUL),
            false => self.useful.saturating_sub(1),
        };
    }
}

/// The largest power of two that is not larger, at least 2.
fn power_of_two(entries: f64) -> usize {
    let entries = (entries as usize).max(2);
    1 << entries.ilog2()
}
