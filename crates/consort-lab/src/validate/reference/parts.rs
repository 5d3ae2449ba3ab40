//! Parts of machines on which programs run together, and the draw of those programs.

use crate::validate::ValidateError;
use consort_core::PuId;
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::machine::presets;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use std::sync::Arc;

/// CPUs of a machine that are used.
#[derive(Clone, Copy, Debug)]
enum PuSelection {
    /// So many CPUs of the first core.
    Core(usize),
    /// One CPU each of so many cores of the first LLC domain.
    Cores(usize),
    /// One CPU of a core of each type.
    Types,
}

/// Key, machine, SMT ways and CPUs of each part, by what they show: SMT on cores that share buffers
/// in different ways, a shared FPU, two types of cores, a shared LLC.
const PARTS: [(&str, &str, Option<u32>, PuSelection); 8] = {
    use PuSelection::{Core, Cores, Types};
    [
        ("core-i7-6700-smt2", "core-i7-6700", None, Core(2)),
        ("power7-smt2", "power7", Some(2), Core(2)),
        ("power8-smt2", "power8", Some(2), Core(2)),
        ("bulldozer-module", "bulldozer-6282se", None, Core(2)),
        ("acmp-large-and-small", "acmp-1+1", None, Types),
        ("power7-smt4", "power7", Some(4), Core(4)),
        ("power8-smt4", "power8", Some(4), Core(4)),
        ("core-i7-6700-llc", "core-i7-6700", None, Cores(4)),
    ]
};

/// The same for traces of a folder: one machine of the parts above, and one for which no trace was
/// used in development.
const PARTS_FOR_TRACES: [(&str, &str, Option<u32>, PuSelection); 2] = [
    PARTS[0],
    ("epyc-7763-smt2", "epyc-7763", None, PuSelection::Core(2)),
];

/// A part of a machine, ready to run programs on.
pub(super) struct ChipPart {
    /// Name in tables.
    pub(super) key: &'static str,
    pub(super) chip: Arc<Chip>,
    /// The CPUs that programs run on.
    pub(super) pus: Vec<PuId>,
}

impl ChipPart {
    /// All parts; those for two programs come first.
    pub(super) fn load_all() -> Result<Vec<Self>, ValidateError> {
        PARTS.into_iter().map(Self::load).collect()
    }

    /// The parts on which traces of a folder run.
    pub(super) fn load_for_traces() -> Result<Vec<Self>, ValidateError> {
        PARTS_FOR_TRACES.into_iter().map(Self::load).collect()
    }

    fn load(
        (key, machine, smt, selection): (&'static str, &str, Option<u32>, PuSelection),
    ) -> Result<Self, ValidateError> {
        let chip = Arc::new(Chip::new(&presets::find(machine)?, smt)?);
        let pus = select_pus(&chip, selection);
        Ok(Self { key, chip, pus })
    }

    pub(super) fn core_type(&self, place: usize) -> usize {
        self.chip.places()[self.pus[place].0 as usize].core_type
    }

    /// Places that differ from those before them: by core type.
    pub(super) fn distinct_places(&self) -> Vec<usize> {
        let is_new = |place: &usize| {
            (0..*place).all(|before| self.core_type(before) != self.core_type(*place))
        };
        (0..self.pus.len()).filter(is_new).collect()
    }
}

fn select_pus(chip: &Chip, selection: PuSelection) -> Vec<PuId> {
    let places = chip.places();
    let mut found: Vec<usize> = Vec::new();
    for pu in 0..places.len() {
        let place = places[pu];
        let is_new = |key: fn(&PuPlace) -> usize| {
            found
                .iter()
                .all(|&other| key(&places[other]) != key(&place))
        };
        let fits = match selection {
            PuSelection::Core(n) => place.core == places[0].core && found.len() < n,
            PuSelection::Cores(n) => {
                place.llc == places[0].llc && found.len() < n && is_new(|place| place.core)
            }
            PuSelection::Types => is_new(|place| place.core_type),
        };
        if fits {
            found.push(pu);
        }
    }
    found.into_iter().map(|pu| PuId(pu as u32)).collect()
}

/// Programs of a square; all pairs of a square are run.
const SQUARE: usize = 8;

/// Extent of the comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparisonExtent {
    /// Squares per part for two programs.
    pub(super) squares: usize,
    /// Sets of programs per part for more.
    pub(super) fours: usize,
    /// Parts of each kind that are used, from the first.
    pub(super) parts: usize,
}

/// Programs to run on one part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramDraw {
    /// Number of the part.
    pub(super) part: usize,
    /// Sets of programs; all pairs of a set are run.
    pub(super) squares: Vec<Vec<usize>>,
    /// Programs that run together.
    pub(super) sets: Vec<Vec<usize>>,
}

/// Draws programs by number, below `programs`, for all parts.
pub(super) fn draw_programs(
    parts: &[ChipPart],
    programs: usize,
    extent: ComparisonExtent,
    seed: u64,
) -> Vec<ProgramDraw> {
    let of_kind = |is_pair: bool| {
        let numbers = 0..parts.len();
        let of_kind = numbers.filter(move |&part| (parts[part].pus.len() == 2) == is_pair);
        of_kind.take(extent.parts)
    };
    let mut drawn = Vec::new();
    for part in of_kind(true).chain(of_kind(false)) {
        let mut random = Pcg64Mcg::seed_from_u64(seed.wrapping_add(part as u64));
        let mut shuffled_order = || {
            let mut order: Vec<usize> = (0..programs).collect();
            order.shuffle(&mut random);
            order
        };
        let (mut squares, mut sets) = (Vec::new(), Vec::new());
        let size = parts[part].pus.len();
        if size == 2 {
            // Squares have no program in common, as long as there are enough.
            let order = shuffled_order();
            squares = { order.chunks(SQUARE) }
                .filter(|chunk| chunk.len() == SQUARE.min(programs))
                .take(extent.squares)
                .map(<[usize]>::to_vec)
                .collect();
            for square in &squares {
                for b in 0..square.len() {
                    sets.extend((0..b).map(|a| vec![square[a], square[b]]));
                }
            }
        } else {
            for _ in 0..extent.fours {
                let mut order = shuffled_order();
                order.truncate(size);
                sets.push(order);
            }
        }
        drawn.push(ProgramDraw {
            part,
            squares,
            sets,
        });
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_pus() {
        let parts = ChipPart::load_all().unwrap();
        let sizes: Vec<usize> = parts.iter().map(|part| part.pus.len()).collect();
        assert_eq!(sizes, [2, 2, 2, 2, 2, 4, 4, 4]);
        let distinct = parts.iter().map(|part| part.distinct_places().len());
        assert_eq!(distinct.collect::<Vec<_>>(), [1, 1, 1, 1, 2, 1, 1, 1]);
    }

    #[test]
    fn full_extent_has_enough_of_both() {
        let parts = ChipPart::load_all().unwrap();
        let extent = ComparisonExtent {
            squares: 3,
            fours: 20,
            parts: 5,
        };
        let drawn = draw_programs(&parts, 24, extent, 1);
        let count = |size: usize| -> usize {
            let sets = drawn.iter().flat_map(|draw| &draw.sets);
            sets.filter(|set| set.len() == size).count()
        };
        assert_eq!((count(2), count(4)), (5 * 3 * 28, 60));
        assert_eq!(drawn, draw_programs(&parts, 24, extent, 1));
    }
}
