//! Mispredictions of model predictors of several sizes.
//!
//! Conditional branches: TAGE (Seznec and Michaud, JILP 8, 2006) of a bimodal table and five
//! tagged tables with histories of 5, 15, 44, 90 and 130 branches, as there; the useful bits age
//! by one whenever no entry is free. Returns: a stack of 32 addresses. Indirect jumps and calls: a
//! table of 2048 targets, chosen by address and the last targets (Chang, Hao and Patt, ISCA 1997).

use consort_ops::{Branch, Op, Turn};

/// Sizes of predictors, KiB.
pub const PREDICTOR_KIB: [u64; 5] = [4, 8, 16, 32, 64];

/// Lengths of history of the tagged tables.
const HISTORIES: [u32; 5] = [5, 15, 44, 90, 127];
const TAGGED: usize = HISTORIES.len();
/// Widths of the two folds that make a tag.
const TAG_BITS: [u32; 2] = [11, 10];
const RETURNS: usize = 32;
const TARGETS: usize = 2048;

/// Predictors of every size, and what they missed.
#[derive(Debug, Clone)]
pub struct Branches {
    tables: Vec<Tage>,
    history: u128,
    /// The history of each tagged table, folded into 11 and into 10 bits.
    tags: [[Fold; 2]; TAGGED],
    returns: Vec<u64>,
    targets: Vec<u64>,
    path: u64,
    counts: bool,
    conditional: [u64; PREDICTOR_KIB.len()],
    elsewhere: u64,
}

impl Default for Branches {
    fn default() -> Self {
        Self {
            tables: PREDICTOR_KIB.map(Tage::new).into(),
            history: 0,
            tags: HISTORIES.map(|length| TAG_BITS.map(|bits| Fold::new(bits, length))),
            returns: Vec::new(),
            targets: vec![0; TARGETS],
            path: 0,
            counts: true,
            conditional: [0; PREDICTOR_KIB.len()],
            elsewhere: 0,
        }
    }
}

impl Branches {
    /// Has what follows count, or only train.
    pub const fn count(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Takes an operation.
    pub fn op(&mut self, op: &Op) {
        let Some(branch) = op.branch else { return };
        let missed = match branch.turn {
            Turn::Conditional => {
                self.condition(op.address, branch.taken);
                false
            }
            Turn::Return => self.returns.pop() != Some(branch.target),
            Turn::IndirectJump | Turn::IndirectCall => self.aim(op.address, branch),
            Turn::Jump | Turn::Call => false,
        };
        if matches!(branch.turn, Turn::Call | Turn::IndirectCall) {
            self.call(op.address.wrapping_add(u64::from(op.length)));
        }
        self.elsewhere += u64::from(missed && self.counts);
    }

    /// Mispredictions with each of [`PREDICTOR_KIB`].
    #[must_use]
    pub fn missed(&self) -> [u64; PREDICTOR_KIB.len()] {
        self.conditional.map(|missed| missed + self.elsewhere)
    }

    fn condition(&mut self, address: u64, taken: bool) {
        let tags = self
            .tags
            .each_ref()
            .map(|folds| folds.each_ref().map(Fold::value));
        for (table, missed) in self.tables.iter_mut().zip(&mut self.conditional) {
            let wrong = table.update(address, &tags, taken);
            *missed += u64::from(wrong && self.counts);
        }
        self.pass(taken);
    }

    /// Takes an outcome into all histories.
    fn pass(&mut self, taken: bool) {
        let leaving = HISTORIES.map(|length| self.history >> (length - 1) & 1 == 1);
        for (folds, leaves) in self.tags.iter_mut().zip(leaving) {
            for fold in folds {
                fold.push(taken, leaves);
            }
        }
        for table in &mut self.tables {
            for (fold, leaves) in table.indices.iter_mut().zip(leaving) {
                fold.push(taken, leaves);
            }
        }
        self.history = self.history << 1 | u128::from(taken);
    }

    fn call(&mut self, behind: u64) {
        if self.returns.len() == RETURNS {
            self.returns.remove(0);
        }
        self.returns.push(behind);
    }

    fn aim(&mut self, address: u64, branch: Branch) -> bool {
        let place = (address >> 1 ^ self.path) as usize % TARGETS;
        let expected = std::mem::replace(&mut self.targets[place], branch.target);
        self.path = self.path << 3 ^ branch.target >> 2;
        expected != branch.target
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    tag: u16,
    /// -4 to 3; taken from 0.
    counter: i8,
    useful: u8,
}

/// One TAGE. An entry of a tagged table takes two bytes, one of the bimodal table a quarter; the
/// tagged tables get seven eighths of the size.
#[derive(Debug, Clone)]
struct Tage {
    bimodal: Vec<i8>,
    tagged: Vec<Vec<Entry>>,
    index_bits: u32,
    /// The history of each tagged table, folded into the bits of an index.
    indices: [Fold; TAGGED],
}

impl Tage {
    fn new(kib: u64) -> Self {
        let bytes = kib << 10;
        let entries = (bytes * 7 / 8 / 2 / TAGGED as u64).next_power_of_two() as usize / 2;
        Self {
            bimodal: vec![0; (bytes / 8 * 4) as usize],
            tagged: vec![vec![Entry::default(); entries]; TAGGED],
            index_bits: entries.trailing_zeros(),
            indices: HISTORIES.map(|length| Fold::new(entries.trailing_zeros(), length)),
        }
    }

    /// Predicts, learns, and tells whether the prediction was wrong.
    fn update(&mut self, address: u64, tags: &[[u64; 2]; TAGGED], taken: bool) -> bool {
        let places = std::array::from_fn(|table| self.place(table, address, tags[table]));
        let base = (address >> 1) as usize % self.bimodal.len();
        let provider = self.provider(&places, TAGGED);
        let other = provider.and_then(|table| self.provider(&places, table));
        let said = self.said(provider, &places, base);
        let otherwise = self.said(other, &places, base);
        match provider {
            Some(table) => {
                let entry = &mut self.tagged[table][places[table].0];
                entry.counter = trained(entry.counter, taken, 3);
                if said != otherwise {
                    entry.useful = if said == taken {
                        (entry.useful + 1).min(3)
                    } else {
                        entry.useful.saturating_sub(1)
                    };
                }
            }
            None => self.bimodal[base] = trained(self.bimodal[base], taken, 1),
        }
        if said != taken {
            self.allocate(provider.map_or(0, |table| table + 1), &places, taken);
        }
        said != taken
    }

    /// Index and tag in a table.
    fn place(&self, table: usize, address: u64, [wide, narrow]: [u64; 2]) -> (usize, u16) {
        let bits = self.index_bits;
        let index = address >> 1 ^ address >> (bits + 1) ^ self.indices[table].value();
        let tag = address >> 1 ^ wide ^ narrow << 1;
        (
            index as usize & ((1 << bits) - 1),
            (tag & 0x7ff) as u16 | 0x800,
        )
    }

    /// The table of the longest history below `below` that knows the branch.
    fn provider(&self, places: &[(usize, u16); TAGGED], below: usize) -> Option<usize> {
        let known = |&table: &usize| self.tagged[table][places[table].0].tag == places[table].1;
        (0..below).rev().find(known)
    }

    fn said(&self, provider: Option<usize>, places: &[(usize, u16); TAGGED], base: usize) -> bool {
        match provider {
            Some(table) => self.tagged[table][places[table].0].counter >= 0,
            None => self.bimodal[base] >= 0,
        }
    }

    /// Takes an entry that is of no use in one table of a longer history; else all age.
    fn allocate(&mut self, from: usize, places: &[(usize, u16); TAGGED], taken: bool) {
        let free = (from..TAGGED).find(|&table| self.tagged[table][places[table].0].useful == 0);
        if let Some(table) = free {
            self.tagged[table][places[table].0] = Entry {
                tag: places[table].1,
                counter: if taken { 0 } else { -1 },
                useful: 0,
            };
            return;
        }
        for (table, (place, _)) in self.tagged.iter_mut().zip(places).skip(from) {
            table[*place].useful -= 1;
        }
    }
}

/// A counter from -most-1 to most moved towards what happened.
fn trained(counter: i8, taken: bool, most: i8) -> i8 {
    if taken {
        (counter + 1).min(most)
    } else {
        (counter - 1).max(-most - 1)
    }
}

/// History folded into a few bits by exclusive or, kept up with every outcome (Michaud, JILP 7,
/// 2005, section 3).
#[derive(Debug, Clone, Copy)]
struct Fold {
    bits: u32,
    /// Where what leaves the history lies.
    end: u32,
    value: u64,
}

impl Fold {
    /// A history of `length` outcomes in `bits`.
    const fn new(bits: u32, length: u32) -> Self {
        Self {
            bits,
            end: length % bits,
            value: 0,
        }
    }

    const fn value(&self) -> u64 {
        self.value
    }

    /// Takes in an outcome, and out the one that leaves the history.
    const fn push(&mut self, taken: bool, leaves: bool) {
        let rotated = self.value << 1 | self.value >> (self.bits - 1);
        let out = (leaves as u64) << self.end;
        self.value = (rotated ^ taken as u64 ^ out) & ((1 << self.bits) - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::Kind;

    fn branch(address: u64, turn: Turn, taken: bool, target: u64) -> Op {
        let mut op = Op::new(Kind::Branch, address);
        op.branch = Some(Branch {
            turn,
            taken,
            target,
        });
        op
    }

    fn missed_of(outcomes: impl Iterator<Item = bool>) -> [u64; 5] {
        let mut branches = Branches::default();
        for taken in outcomes {
            branches.op(&branch(0x1000, Turn::Conditional, taken, 0x2000));
        }
        branches.missed()
    }

    #[test]
    fn a_pattern_is_learnt() {
        let missed = missed_of((0..10_000).map(|i| i % 7 < 3));
        assert!(missed.iter().all(|&missed| missed < 200), "{missed:?}");
    }

    #[test]
    fn chance_is_missed_half_the_time() {
        let mut state = 1_u64;
        let random = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 63 == 1
        });
        let missed = missed_of(random.take(20_000));
        assert!(
            missed.iter().all(|missed| (9_000..11_000).contains(missed)),
            "{missed:?}"
        );
    }

    #[test]
    fn folds_are_those_of_the_whole_history() {
        let (mut history, mut fold, length) = (0_u128, Fold::new(11, 44), 44);
        for i in 0..500_u64 {
            let taken = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
            fold.push(taken, history >> (length - 1) & 1 == 1);
            history = (history << 1 | u128::from(taken)) & ((1 << length) - 1);
            let pieces = (0..4).map(|piece| (history >> (11 * piece)) as u64 & 0x7ff);
            assert_eq!(fold.value(), pieces.fold(0, |folded, piece| folded ^ piece));
        }
    }

    #[test]
    fn returns_go_where_their_call_was() {
        let mut branches = Branches::default();
        for site in 0..100 {
            branches.op(&branch(site * 16, Turn::Call, true, 0x9000));
            branches.op(&branch(0x9010, Turn::Return, true, site * 16 + 4));
        }
        assert_eq!(branches.missed(), [0; 5]);
    }
}
