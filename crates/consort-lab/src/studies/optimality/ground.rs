//! Grounds on which exact search is possible: small machines with a thread for every PU.

use super::placements::PlacementSymmetry;

/// A machine, the policies on it, and the measure by which a placement is the best.
pub(super) struct OptimalityCase {
    /// Key of its rows.
    pub key: &'static str,
    /// Description in a few words.
    pub title: &'static str,
    /// The machine, for example `power7:smt=2`.
    pub machine: &'static str,
    /// Cores in use by number; all when empty.
    pub cores: &'static [usize],
    /// Kind of parts in which threads meet.
    pub meeting: PlacementSymmetry,
    /// The policies.
    pub policies: &'static [&'static str],
    /// Drawn workloads, at the quick and the full scale.
    pub mixes: [usize; 2],
    /// Time of a program's work alone, s.
    pub alone_s: [f64; 2],
}

/// All grounds, in the order of rows.
pub(super) const GROUNDS: &[OptimalityCase] = &[
    OptimalityCase {
        key: "bulldozer",
        title: "Bulldozer, 8 programs on 4 modules",
        machine: "bulldozer-6282se",
        cores: &[],
        meeting: PlacementSymmetry::Core,
        policies: &[
            "linux",
            "random",
            "aggregate:margin=0,numa=false",
            "workover:margin=0,numa=false",
            "oracle",
        ],
        mixes: [2, 6],
        alone_s: [2.0, 5.0],
    },
    // One NUMA node, so that all cores are alike.
    OptimalityCase {
        key: "power8",
        title: "POWER8 in SMT2, 8 programs on 4 cores",
        machine: "power8:smt=2",
        cores: &[0, 1, 2, 3],
        meeting: PlacementSymmetry::Core,
        policies: &["linux", "random", "l1-bandwidth", "symbiotic", "oracle"],
        mixes: [2, 6],
        alone_s: [2.0, 5.0],
    },
    OptimalityCase {
        key: "core2",
        title: "Core 2 Quad, 4 programs on two pairs of cores",
        machine: "core2-q9550",
        cores: &[],
        meeting: PlacementSymmetry::Llc,
        policies: &["linux", "random", "spread"],
        mixes: [8, 20],
        alone_s: [2.0, 5.0],
    },
    OptimalityCase {
        key: LARGE,
        title: "One large and three small cores, 4 programs",
        machine: "acmp-1+3",
        cores: &[],
        meeting: PlacementSymmetry::Large,
        policies: &[
            "linux",
            "hrrs:form=hardware",
            "kuths:form=hardware",
            "pie",
            "fair-progress:form=hardware",
        ],
        mixes: [8, 20],
        alone_s: [0.05, 0.2],
    },
];

/// Key of the ground whose large core can also be shared by time.
pub(super) const LARGE: &str = "acmp";
