//! Figures of each program in the source's tables.

/// A program of the suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) struct PublishedProgram {
    pub name: &'static str,
    /// Rank by contention for the bus; 1 is the least.
    pub bus_rank: u32,
    /// Misses over accesses of the last-level cache with eight threads.
    pub miss_rate: f64,
    /// Number of threads with the lowest energy-delay alone.
    pub best_threads: u32,
    /// True where it is within 10 percent of linear scaling at eight threads.
    pub near_linear: bool,
}

/// Bhadauria and McKee, ICS 2010, tables 1 to 3 and section 6.
pub(in crate::studies) const PUBLISHED: [PublishedProgram; 12] = [
    published_program("blackscholes", 1, 0.02, 8, true),
    published_program("swaptions", 2, 0.03, 8, true),
    published_program("bodytrack", 3, 0.01, 5, false),
    published_program("vips", 4, 0.01, 8, true),
    published_program("x264", 5, 0.04, 8, false),
    published_program("freqmine", 6, 0.06, 8, true),
    published_program("fluidanimate", 7, 0.38, 8, false),
    published_program("dedup", 8, 0.09, 2, false),
    published_program("ferret", 9, 0.10, 8, true),
    published_program("facesim", 10, 0.03, 4, false),
    published_program("canneal", 11, 0.50, 3, false),
    published_program("streamcluster", 12, 0.21, 2, false),
];

const fn published_program(
    name: &'static str,
    bus_rank: u32,
    miss_rate: f64,
    best_threads: u32,
    near_linear: bool,
) -> PublishedProgram {
    PublishedProgram {
        name,
        bus_rank,
        miss_rate,
        best_threads,
        near_linear,
    }
}
