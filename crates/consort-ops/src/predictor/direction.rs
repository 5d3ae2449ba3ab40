//! Whether a conditional branch is taken.

use super::Scheme;
use super::history::{History, TAG_BITS};

/// Histories of the tagged tables, branches: a geometric series (Seznec and Michaud, 2006).
pub(super) const HISTORIES: [u32; 5] = [5, 12, 29, 64, 126];
const TABLES: usize = HISTORIES.len();
/// Bits of an entry: a counter of 3, a usefulness of 2, a tag of 11.
const TAGGED_BITS: f64 = 16.0;
const USEFUL: u8 = 3;

/// Tables of one of the kinds.
#[derive(Clone, Debug)]
pub(crate) struct Directions {
    base: Vec<Counter>,
    /// Branches of history in the index of `base`.
    history: u32,
    tagged: Vec<Vec<Tagged>>,
}

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
        Self {
            base: vec![Counter::default(); base],
            history: match scheme {
                Scheme::Gshare => base.ilog2(),
                Scheme::Bimodal | Scheme::Tagged => 0,
            },
            tagged: vec![vec![Tagged::default(); table]; tables],
        }
    }

    /// Bits of the index of a tagged table; 0 where there are none.
    pub(super) fn index_bits(&self) -> u32 {
        self.tagged.first().map_or(0, |table| table.len().ilog2())
    }

    /// The prediction; the truth is learnt.
    pub(crate) fn predict(&mut self, at: u64, history: &History, taken: bool) -> bool {
        let base = self.base_index(at, history);
        let all: [(usize, u16); TABLES] = std::array::from_fn(|t| match t < self.tagged.len() {
            true => self.place(t, at, history),
            false => (0, 0),
        });
        let places = &all[..self.tagged.len()];
        let holds = |&t: &usize| self.tagged[t][places[t].0].tag == places[t].1;
        let mut providers = (0..places.len()).rev().filter(holds);
        let (provider, other) = (providers.next(), providers.next());
        let of = |t: Option<usize>| match t {
            Some(t) => self.tagged[t][places[t].0].counter.taken(),
            None => self.base[base].taken(),
        };
        let (predicted, otherwise) = (of(provider), of(other));
        match provider {
            Some(t) => {
                let entry = &mut self.tagged[t][places[t].0];
                entry.counter.learn(taken, 3);
                if predicted != otherwise {
                    entry.learn_use(predicted == taken);
                }
            }
            None => self.base[base].learn(taken, 1),
        }
        if predicted != taken {
            self.allocate(provider, places, taken);
        }
        predicted
    }

    fn base_index(&self, at: u64, history: &History) -> usize {
        let mask = (1u64 << self.history) - 1;
        ((at >> 1) ^ (history.outcomes() & mask)) as usize & (self.base.len() - 1)
    }

    /// Where a table would have a branch with its history, and under which tag (never 0).
    fn place(&self, table: usize, at: u64, history: &History) -> (usize, u16) {
        let bits = self.index_bits();
        let folds = history.folds(table);
        let index = (at >> 1) ^ (at >> (bits + 1)) ^ folds.index.value();
        let tag = (at >> 1) ^ folds.tag.value() ^ folds.other_tag.value() << 1;
        let mask = (1 << TAG_BITS) - 1;
        (index as usize & ((1 << bits) - 1), (tag & mask) as u16 + 1)
    }

    /// Gives a mispredicted branch an entry with a longer history, or makes that easier.
    fn allocate(&mut self, provider: Option<usize>, places: &[(usize, u16)], taken: bool) {
        let longer = provider.map_or(0, |t| t + 1)..places.len();
        let free = longer
            .clone()
            .find(|&t| self.tagged[t][places[t].0].useful == 0);
        if let Some(t) = free {
            self.tagged[t][places[t].0] = Tagged {
                tag: places[t].1,
                counter: Counter(if taken { 0 } else { -1 }),
                useful: 0,
            };
            return;
        }
        for t in longer {
            self.tagged[t][places[t].0].learn_use(false);
        }
    }
}

impl Counter {
    fn taken(self) -> bool {
        self.0 >= 0
    }

    /// Moves towards the truth, from `-most - 1` to `most`.
    fn learn(&mut self, taken: bool, most: i8) {
        let towards = if taken { 1 } else { -1 };
        self.0 = (self.0 + towards).clamp(-most - 1, most);
    }
}

impl Tagged {
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
