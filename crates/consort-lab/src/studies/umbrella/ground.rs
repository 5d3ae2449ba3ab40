//! The grounds on which single-purpose policies were proposed. To add one takes an entry in
//! [`GROUNDS`].

use super::super::load::Programs;

/// A machine, a workload, and the policies that were proposed for such.
pub(super) struct Ground {
    /// Key of its rows.
    pub key: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The machine, for example `power7:smt=2`.
    pub machine: &'static str,
    /// What runs.
    pub load: &'static [Programs],
    /// Whether serial sections come in frames: see [`consort_experiment::slots::framed`].
    pub framed: bool,
    /// The system's own scheduler first, then the policies.
    pub policies: &'static [&'static str],
    /// What the source is after.
    pub aim: Aim,
    /// Time of a program's work alone, s, at the quick and the full scale.
    pub alone_s: [f64; 2],
    /// Runs of each policy, at the quick and the full scale; without runs it is left out.
    pub runs: [usize; 2],
}

/// What a ground's source is after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// System throughput.
    Throughput,
    /// Time until all programs are done.
    Makespan,
}

impl Aim {
    /// The measure that is larger where a run is better.
    pub fn measure(self) -> &'static str {
        match self {
            Self::Throughput => "stp",
            Self::Makespan => "speed_hz",
        }
    }

    /// The umbrella policy, asked for this.
    pub fn umbrella(self) -> &'static str {
        match self {
            Self::Throughput => "holistic",
            Self::Makespan => "holistic:objective=fairness",
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Makespan => "speed until all are done",
        }
    }
}

/// Runs of each policy.
const RUNS: [usize; 2] = [2, 4];

const FPU: &[&str] = &[
    "linux",
    "aggregate:margin=0,numa=false",
    "workover:margin=0,numa=false",
];

/// All of CINT2006 and the first eight of CFP2006 by the alphabet.
const TWENTY: &[Programs] = &[
    Programs(1, "perlbench", 1),
    Programs(1, "bzip2", 1),
    Programs(1, "gcc", 1),
    Programs(1, "mcf", 1),
    Programs(1, "gobmk", 1),
    Programs(1, "hmmer", 1),
    Programs(1, "sjeng", 1),
    Programs(1, "libquantum", 1),
    Programs(1, "h264ref", 1),
    Programs(1, "omnetpp", 1),
    Programs(1, "astar", 1),
    Programs(1, "xalancbmk", 1),
    Programs(1, "bwaves", 1),
    Programs(1, "cactusADM", 1),
    Programs(1, "calculix", 1),
    Programs(1, "dealII", 1),
    Programs(1, "gamess", 1),
    Programs(1, "GemsFDTD", 1),
    Programs(1, "gromacs", 1),
    Programs(1, "lbm", 1),
];

const BULLDOZER: Ground = Ground {
    key: "bulldozer",
    title: "Bulldozer, four integer and four floating-point programs",
    machine: "bulldozer-6282se",
    load: &[Programs(4, "hmmer", 1), Programs(4, "povray", 1)],
    framed: false,
    policies: FPU,
    aim: Aim::Throughput,
    alone_s: [2.0, 15.0],
    runs: RUNS,
};

const SPEC_ON_ONE_LARGE: Ground = Ground {
    key: "acmp-programs",
    title: "One large and three small cores, four programs",
    machine: "acmp-1+3",
    load: &[
        Programs(1, "hmmer", 1),
        Programs(1, "mcf", 1),
        Programs(1, "povray", 1),
        Programs(1, "sphinx3", 1),
    ],
    framed: false,
    policies: &[
        "linux",
        "hrrs",
        "tcs",
        "fair-time",
        "fair-progress",
        "pie",
        "mem-dominance",
        "mlp-ratio",
    ],
    aim: Aim::Makespan,
    alone_s: [0.05, 0.3],
    runs: RUNS,
};

const PAIR: Ground = Ground {
    key: "core2/canneal+blackscholes",
    title: "Core 2 Quad, canneal beside blackscholes",
    machine: "core2-q9550",
    load: &[Programs(1, "canneal", 4), Programs(1, "blackscholes", 4)],
    framed: false,
    policies: &[
        "linux",
        "mapping:map=iso",
        "mapping:map=int",
        "mapping:map=spr",
    ],
    aim: Aim::Throughput,
    alone_s: [1.0, 4.0],
    runs: [2, 4],
};

/// The grounds, in the order of rows.
pub(super) const GROUNDS: &[Ground] = &[
    BULLDOZER,
    Ground {
        key: "power7",
        title: "POWER7 in SMT2, integer and floating-point programs",
        machine: "power7:smt=2",
        load: &[Programs(8, "h264ref", 1), Programs(8, "povray", 1)],
        ..BULLDOZER
    },
    Ground {
        key: "power8",
        title: "POWER8 in SMT2, twenty programs on ten cores",
        machine: "power8:smt=2",
        load: TWENTY,
        policies: &["linux", "random", "l1-bandwidth", "sampling", "symbiotic"],
        alone_s: [1.0, 5.0],
        ..BULLDOZER
    },
    SPEC_ON_ONE_LARGE,
    Ground {
        key: "acmp-threads",
        title: "One large and three small cores, a program of four threads with locks",
        load: &[Programs(1, "radiosity", 4)],
        policies: &[
            "linux",
            "hrrs",
            "kuths",
            "tcs",
            "criticality",
            "bottleneck",
            "utility",
        ],
        ..SPEC_ON_ONE_LARGE
    },
    Ground {
        key: "acmp-barriers",
        title: "One large and three small cores, a program of four threads with barriers",
        load: &[Programs(1, "splash-fft", 4)],
        policies: &["linux", "hrrs", "kuths", "tcs", "criticality", "utility"],
        ..SPEC_ON_ONE_LARGE
    },
    // Serial sections that are longer than quanta would mislead all that sample.
    Ground {
        key: "xeon",
        title: "Xeon E5320, four programs of eight threads",
        machine: "xeon-e5320",
        load: &[
            Programs(1, "streamcluster", 8),
            Programs(1, "blackscholes", 8),
            Programs(1, "canneal", 8),
            Programs(1, "bodytrack", 8),
        ],
        framed: true,
        policies: &["gang", "fair-mis", "fair-com", "greedy", "pdpa"],
        aim: Aim::Throughput,
        alone_s: [30.0, 30.0],
        runs: [0, 2],
    },
    PAIR,
    Ground {
        key: "core2/streamcluster+facesim",
        title: "Core 2 Quad, streamcluster beside facesim",
        load: &[Programs(1, "streamcluster", 4), Programs(1, "facesim", 4)],
        ..PAIR
    },
    Ground {
        key: "core2/bodytrack+fluidanimate",
        title: "Core 2 Quad, bodytrack beside fluidanimate",
        load: &[Programs(1, "bodytrack", 4), Programs(1, "fluidanimate", 4)],
        ..PAIR
    },
];
