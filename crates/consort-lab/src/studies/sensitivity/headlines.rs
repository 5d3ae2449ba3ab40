//! The conclusions that are put to the test. Workloads are those that the sources or studies have
//! on such ground, chosen before their outcome was known or in spite of it; what does not hold to
//! begin with stays, and is said. To add one takes an entry in [`HEADLINES`].

use super::super::load::Programs;
use crate::simulate::Outcome;

/// What of two policies' runs is compared, as a ratio that is above 1 where ours is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// System throughput, ours over theirs.
    Throughput,
    /// Time until the last program is done, theirs over ours.
    Speed,
    /// Largest over smallest slowdown, theirs over ours.
    Fairness,
}

/// A conclusion: a policy is better than another at something.
pub(super) struct Headline {
    /// Key of its tables and figures.
    pub key: &'static str,
    /// The conclusion in words.
    pub sentence: &'static str,
    /// The machine, for example `power7:smt=2`.
    pub machine: &'static str,
    /// Cores in use by number; all when empty.
    pub cores: &'static [usize],
    /// What runs.
    pub load: &'static [Programs],
    /// The policy that is said to be better.
    pub policy: &'static str,
    /// The one that it is better than.
    pub over: &'static str,
    /// At what.
    pub metric: Metric,
    /// Time of a program's work alone, s, at the quick and the full scale.
    pub alone_s: [f64; 2],
    /// Runs of each policy in each trial; a conclusion with none is not put to the test.
    pub runs: [usize; 2],
}

/// A ratio above this is the conclusion, below it its opposite.
pub(super) const THRESHOLD: f64 = 1.0;

impl Metric {
    /// The ratio of two runs of one seed.
    pub fn ratio(self, ours: &Outcome, theirs: &Outcome) -> f64 {
        match self {
            Self::Throughput => ours.stp / theirs.stp,
            Self::Speed => theirs.makespan_s / ours.makespan_s,
            Self::Fairness => theirs.unfairness / ours.unfairness,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Speed => "speed",
            Self::Fairness => "fairness",
        }
    }
}

impl Headline {
    /// Whether both stand on the same runs.
    pub fn has_runs_of(&self, other: &Self) -> bool {
        let ground = |h: &Self| (h.machine, h.cores, h.load, h.policy, h.over);
        ground(self) == ground(other)
    }

    /// What the axis of its ratio says.
    pub fn axis(&self) -> String {
        format!(
            "{} of {} over {}",
            self.metric.name(),
            short(self.policy),
            short(self.over)
        )
    }
}

/// A policy without its options.
fn short(policy: &str) -> &str {
    policy.split(':').next().unwrap_or(policy)
}

/// Runs of each policy, at the quick and the full scale.
const RUNS: [usize; 2] = [2, 4];

const WORKOVER: Headline = Headline {
    key: "workover-throughput",
    sentence: "With four integer and four floating-point programs on Bulldozer, WorkOver has more \
               throughput than linux",
    machine: "bulldozer-6282se",
    cores: &[],
    load: &[Programs(4, "hmmer", 1), Programs(4, "povray", 1)],
    policy: "workover:margin=0,numa=false",
    over: "linux",
    metric: Metric::Throughput,
    alone_s: [2.0, 15.0],
    runs: RUNS,
};

const HRRS: Headline = Headline {
    key: "hrrs-speed",
    sentence: "With four programs on one large and three small cores, the last is done sooner \
               under hardware round robin than under linux",
    machine: "acmp-1+3",
    cores: &[],
    load: &[
        Programs(1, "hmmer", 1),
        Programs(1, "mcf", 1),
        Programs(1, "povray", 1),
        Programs(1, "sphinx3", 1),
    ],
    policy: "hrrs:form=hardware",
    over: "linux",
    metric: Metric::Speed,
    alone_s: [0.05, 0.2],
    runs: RUNS,
};

/// The conclusions, those that stand on the same runs next to each other.
pub(super) const HEADLINES: &[Headline] = &[
    WORKOVER,
    Headline {
        key: "workover-fairness",
        sentence: "With four integer and four floating-point programs on Bulldozer, WorkOver \
                   slows programs down more alike than linux",
        metric: Metric::Fairness,
        ..WORKOVER
    },
    // Eight draws from the programs of S4; cores of both nodes.
    Headline {
        key: "symbiotic-throughput",
        sentence: "With eight programs on four cores of a POWER8 in SMT2, symbiotic scheduling \
                   has more throughput than linux",
        machine: "power8:smt=2",
        cores: &[0, 1, 5, 6],
        load: &[
            Programs(1, "tonto", 1),
            Programs(2, "leslie3d", 1),
            Programs(1, "gamess", 1),
            Programs(1, "soplex", 1),
            Programs(1, "calculix", 1),
            Programs(1, "h264ref", 1),
            Programs(1, "gromacs", 1),
        ],
        policy: "symbiotic",
        over: "linux",
        metric: Metric::Throughput,
        alone_s: [1.0, 5.0],
        runs: RUNS,
    },
    HRRS,
    Headline {
        key: "kuths-speed",
        sentence: "With a program of four threads that meet at locks on one large and three small \
                   cores, kuths is faster than hardware round robin",
        load: &[Programs(1, "radiosity", 4)],
        policy: "kuths:form=hardware",
        over: "hrrs:form=hardware",
        alone_s: [0.02, 0.1],
        ..HRRS
    },
    Headline {
        key: "fair-com-throughput",
        sentence: "With the program that misses the LLC most and the one that loads the bus least, \
                   of eight threads each, on eight cores of a Xeon E5320, fair-com has more \
                   throughput than a gang",
        machine: "xeon-e5320",
        cores: &[],
        load: &[Programs(1, "canneal", 8), Programs(1, "blackscholes", 8)],
        policy: "fair-com",
        over: "gang",
        metric: Metric::Throughput,
        // It takes several quanta of 2 s to know two programs, which is no quick trial.
        alone_s: [40.0, 40.0],
        runs: [0, 3],
    },
    Headline {
        key: "interleaved-throughput",
        sentence: "With two threads of a program that misses caches and two of one that does not \
                   on a Core 2 Quad, interleaving them over both L2 has more throughput than \
                   giving each program an L2",
        machine: "core2-q9550",
        cores: &[],
        load: &[Programs(1, "canneal", 2), Programs(1, "blackscholes", 2)],
        policy: "mapping:map=int",
        over: "mapping:map=iso",
        metric: Metric::Throughput,
        alone_s: [1.0, 5.0],
        runs: RUNS,
    },
];
