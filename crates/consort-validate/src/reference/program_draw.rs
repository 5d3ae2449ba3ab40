//! Choice of the programs that run together.

use super::chip_part::ChipPart;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Programs of which all pairs are run.
const SQUARE: usize = 8;

/// Extent of the comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparisonExtent {
    /// Sets of [`SQUARE`] programs per ground for two.
    pub(super) squares: usize,
    /// Sets of programs per ground for more.
    pub(super) fours: usize,
    /// Grounds of each kind that are used, from the first.
    pub(super) grounds: usize,
}

/// Programs to run on one ground.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramDraw {
    /// Number of the ground.
    pub(super) ground: usize,
    /// Programs of which all pairs are run.
    pub(super) squares: Vec<Vec<usize>>,
    /// Programs that run together.
    pub(super) sets: Vec<Vec<usize>>,
}

/// Draws programs, of which there are so many, for all grounds.
pub(super) fn draw_programs(
    grounds: &[ChipPart],
    programs: usize,
    extent: ComparisonExtent,
    seed: u64,
) -> Vec<ProgramDraw> {
    let of_kind = |is_pair: bool| {
        let of = move |(_, ground): &(usize, &ChipPart)| (ground.pus.len() == 2) == is_pair;
        grounds.iter().enumerate().filter(of).take(extent.grounds)
    };
    let used = of_kind(true).chain(of_kind(false));
    used.map(|(ground, site)| {
        let mut random = Pcg64Mcg::seed_from_u64(seed.wrapping_add(ground as u64));
        match site.pus.len() {
            2 => draw_squares(ground, programs, extent.squares, &mut random),
            size => draw_sets(ground, programs, (extent.fours, size), &mut random),
        }
    })
    .collect()
}

/// Sets of programs that have none in common, as long as there are enough.
fn draw_squares(
    ground: usize,
    programs: usize,
    count: usize,
    random: &mut Pcg64Mcg,
) -> ProgramDraw {
    let order = shuffled_order(programs, random);
    let squares: Vec<Vec<usize>> = { order.chunks(SQUARE) }
        .filter(|chunk| chunk.len() == SQUARE.min(programs))
        .take(count)
        .map(<[usize]>::to_vec)
        .collect();
    let pairs = |square: &Vec<usize>| {
        let square = square.clone();
        let pairs = (0..square.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs
            .map(|(a, b)| vec![square[a], square[b]])
            .collect::<Vec<_>>()
    };
    ProgramDraw {
        ground,
        sets: squares.iter().flat_map(pairs).collect(),
        squares,
    }
}

fn draw_sets(
    ground: usize,
    programs: usize,
    (count, size): (usize, usize),
    random: &mut Pcg64Mcg,
) -> ProgramDraw {
    let set = |_| {
        shuffled_order(programs, random)
            .into_iter()
            .take(size)
            .collect()
    };
    ProgramDraw {
        ground,
        squares: Vec::new(),
        sets: (0..count).map(set).collect(),
    }
}

fn shuffled_order(n: usize, random: &mut Pcg64Mcg) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(random);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_extent_has_enough_of_both() {
        let grounds = ChipPart::all().unwrap();
        let extent = ComparisonExtent {
            squares: 3,
            fours: 20,
            grounds: 5,
        };
        let drawn = draw_programs(&grounds, 24, extent, 1);
        let count = |size: usize| -> usize {
            let sets = drawn.iter().flat_map(|draw| &draw.sets);
            sets.filter(|set| set.len() == size).count()
        };
        assert_eq!((count(2), count(4)), (5 * 3 * 28, 60));
        assert_eq!(drawn, draw_programs(&grounds, 24, extent, 1));
    }
}
