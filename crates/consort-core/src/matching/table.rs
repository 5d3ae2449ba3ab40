//! Reduced costs as a dense table of small floats, made for fast sweeps.
//!
//! It serves the start alone, so rounding does no harm. Every sweep keeps a
//! fixed number of minima side by side, which compilers turn into vector code.

use super::scaled::Scaled;

/// Minima side by side; a row is a multiple of it long, filled up with infinity.
const LANES: usize = 32;
/// The side of the squares in which the table is mirrored.
const TILE: usize = 32;

/// Cost of each pair less the part of each thread.
pub(super) struct Table {
    threads: usize,
    stride: usize,
    values: Vec<f32>,
    /// The part of each thread, in whole costs.
    parts: Vec<f64>,
}

impl Table {
    pub(super) fn new(costs: &Scaled<'_>) -> Self {
        let threads = costs.threads();
        let stride = threads.next_multiple_of(LANES) + LANES;
        let mut table = Self {
            threads,
            stride,
            values: vec![f32::INFINITY; threads * stride],
            parts: parts(costs),
        };
        table.fill(costs);
        table.mirror();
        table
    }

    /// The upper triangle. A little noise keeps threads that are all alike from having all the same
    /// cheapest partners; it depends on the sum of their numbers, so it is symmetric.
    fn fill(&mut self, costs: &Scaled<'_>) {
        let factor = costs.factor();
        let noise = noise(2 * self.threads, self.spread(costs));
        for first in 0..self.threads {
            let start = first * self.stride;
            let row = &mut self.values[start + first + 1..start + self.threads];
            let part = self.parts[first];
            let others = self.parts[first + 1..].iter().zip(&noise[2 * first + 1..]);
            for ((value, cost), (other, noise)) in
                row.iter_mut().zip(costs.costs().row(first)).zip(others)
            {
                *value = (cost * factor - part - other) as f32 + noise;
            }
        }
    }

    /// The mean size of a reduced cost, from the first row.
    fn spread(&self, costs: &Scaled<'_>) -> f32 {
        let row = costs.costs().row(0);
        let sizes = row
            .iter()
            .zip(&self.parts[1..])
            .map(|(cost, part)| (cost * costs.factor() - part - self.parts[0]).abs())
            .filter(|size| size.is_finite());
        (sizes.sum::<f64>() / row.len().max(1) as f64) as f32
    }

    fn mirror(&mut self) {
        for rows in (0..self.threads).step_by(TILE) {
            for columns in (0..=rows).step_by(TILE) {
                self.mirror_tile(rows, columns);
            }
        }
    }

    fn mirror_tile(&mut self, rows: usize, columns: usize) {
        for row in rows..(rows + TILE).min(self.threads) {
            for column in columns..(columns + TILE).min(row) {
                self.values[row * self.stride + column] = self.values[column * self.stride + row];
            }
        }
    }

    fn row(&self, vertex: usize) -> &[f32] {
        &self.values[vertex * self.stride..(vertex + 1) * self.stride]
    }

    /// Reduced duals of zero, with room to the end of a row.
    pub(super) fn zero(&self) -> Vec<f32> {
        vec![0.0; self.stride]
    }

    /// Reduced duals for duals in units of cost.
    pub(super) fn reduced(&self, duals: &[f64], costs: &Scaled<'_>) -> Vec<f32> {
        let mut reduced = self.zero();
        for ((reduced, dual), part) in reduced.iter_mut().zip(duals).zip(&self.parts) {
            *reduced = (dual * costs.factor() - part) as f32;
        }
        reduced
    }

    /// Whole duals for reduced ones, none beyond `limit`: a warm start may be far off.
    pub(super) fn whole(&self, duals: &[f32], limit: i64) -> Vec<i64> {
        let whole =
            |(part, dual): (&f64, &f32)| ((part + f64::from(*dual)) as i64).clamp(-limit, limit);
        self.parts.iter().zip(duals).map(whole).collect()
    }

    /// Lets each dual go half the way to the largest value that the others allow it.
    pub(super) fn ascend(&self, duals: &mut [f32]) {
        let allowed: Vec<f32> = (0..self.threads)
            .map(|vertex| smallest(&self.lanes(vertex, duals)))
            .collect();
        for (dual, allowed) in duals.iter_mut().zip(allowed) {
            if allowed.is_finite() {
                *dual = 0.5 * (*dual + allowed);
            }
        }
    }

    /// A value that at least `count` edges of a vertex do not exceed, before its own dual.
    pub(super) fn limit(&self, vertex: usize, duals: &[f32], count: usize) -> f32 {
        let mut lanes = self.lanes(vertex, duals);
        *lanes.select_nth_unstable_by(count, f32::total_cmp).1
    }

    /// The least of each lane of a row, at the others' duals.
    fn lanes(&self, vertex: usize, duals: &[f32]) -> [f32; LANES] {
        let mut lanes = [f32::INFINITY; LANES];
        for (values, duals) in self
            .row(vertex)
            .chunks_exact(LANES)
            .zip(duals.chunks_exact(LANES))
        {
            for ((lane, value), dual) in lanes.iter_mut().zip(values).zip(duals) {
                let slack = value - dual;
                *lane = if slack < *lane { slack } else { *lane };
            }
        }
        lanes
    }

    /// Calls with each later vertex whose edge is within the limit of either end.
    pub(super) fn each_below(
        &self,
        first: usize,
        duals: &[f32],
        limits: &[f32],
        mut found: impl FnMut(usize),
    ) {
        let (own, limit) = (duals[first], limits[first]);
        let row = &self.row(first)[..self.threads];
        let mut start = first + 1;
        for ((values, duals), limits) in row[start..]
            .chunks(LANES)
            .zip(duals[start..].chunks(LANES))
            .zip(limits[start..].chunks(LANES))
        {
            let within = |at: usize| values[at] - own - duals[at] <= limit.max(limits[at]);
            for at in (0..values.len()).filter(|&at| within(at)) {
                found(start + at);
            }
            start += values.len();
        }
    }
}

fn smallest(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::INFINITY, f32::min)
}

/// The part of each thread in its costs: the mean of its row less half the mean of all. Costs that
/// are infinite have no part in it.
fn parts(costs: &Scaled<'_>) -> Vec<f64> {
    let threads = costs.threads();
    let mut sums = vec![(0.0, 0.0); threads];
    for first in 0..threads {
        for (offset, &cost) in costs.costs().row(first).iter().enumerate() {
            if cost < f64::INFINITY {
                for vertex in [first, first + 1 + offset] {
                    sums[vertex].0 += cost;
                    sums[vertex].1 += 1.0;
                }
            }
        }
    }
    let total = sums
        .iter()
        .fold((0.0f64, 0.0f64), |all, row| (all.0 + row.0, all.1 + row.1));
    let half = 0.5 * total.0 / total.1.max(1.0);
    sums.iter()
        .map(|(sum, count)| (sum / f64::max(*count, 1.0) - half) * costs.factor())
        .collect()
}

/// Numbers between zero and a thousandth of `size`, without a pattern (splitmix64 of Steele, Lea
/// and Flood, OOPSLA 2014).
fn noise(count: usize, size: f32) -> Vec<f32> {
    let scale = size * 1e-3 / 16_777_216.0;
    (1..=count as u64)
        .map(|index| {
            let mut mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 40) as f32 * scale
        })
        .collect()
}
