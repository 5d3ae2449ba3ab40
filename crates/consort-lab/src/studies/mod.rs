//! The studies: `studies/NAME.toml` each, and the analysis that some of them need.
//!
//! To add one: a file there and its name in `FILES`. Analysis is a function here, which files
//! name; see `ANALYSES`. Headings of the tables and figures that it fills are the file's.

mod alone;
pub(crate) mod asymmetry;
mod coscheduling;
mod load;
mod mapping;
mod occupancy;
mod optimality;
mod output;
mod sensitivity;
mod symbiosis;
mod umbrella;

pub use asymmetry::ideal::IdealRoundRobin;
pub use asymmetry::migration::ExchangePath;
pub use sensitivity::hypercube;

use crate::frame::CellQuery;
use crate::simulate::ExperimentSpec;
use crate::study::Analyses;
use consort_sim::engine::{RunMode, SimulationSettings};

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$((
            concat!($name, ".toml"),
            include_str!(concat!("../../studies/", $folder, $name, ".toml")),
        )),*]
    };
}

/// The files of the studies, in the order of the list.
pub(crate) const FILES: &[(&str, &str)] = files![
    "": "w1", "w2", "w3", "w4", "w5", "w6", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12", "a13", "a14", "a15", "h1", "h2", "h3", "h4", "h5", "h6", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14", "m15", "x1", "x3", "x5",
];

/// Experiments on which several studies stand.
const EXPERIMENTS: &[(&str, &str)] = files![
    "experiments/": "acmp-mixes-of-2", "acmp-mixes-of-4", "acmp-spec", "acmp-splash", "symbiosis",
];

/// Analysis by the names that study files have for it.
pub(crate) const ANALYSES: Analyses = Analyses {
    experiments: &[
        ("closed-form", asymmetry::closed_form),
        ("cores-alone", asymmetry::cores_alone),
        ("programs-alone", asymmetry::programs_alone),
        ("exchanges-with-small", asymmetry::exchange_with_small),
        ("exchanges-with-large", asymmetry::exchange_with_large),
        (
            "exchanges-of-working-sets",
            asymmetry::exchange_working_sets,
        ),
        ("ideal-at-ratios", asymmetry::ideal_at_ratios),
        ("ideal-beside-hrrs", asymmetry::ideal_next_to_hrrs),
        ("counted-places", alone::count_places),
        ("counted-programs", alone::count_programs),
        ("occupancy-equal", occupancy::equal),
        ("occupancy-lengths", occupancy::lengths),
        ("occupancy-once", occupancy::once),
        ("occupancy-shortened", occupancy::shortened),
        ("occupancy-single-process", occupancy::single_process),
        ("symbiosis-near", symbiosis::frames::near),
        ("symbiosis-even", symbiosis::frames::even),
        ("symbiosis-learnt", symbiosis::frames::learnt),
    ],
    tables: &[
        ("limits-of-decisions", symbiosis::views::limits),
        ("readings-of-tcs", asymmetry::readings),
        ("time-alone", symbiosis::views::time_alone),
        ("workloads-of-machines", symbiosis::views::machine_workloads),
        ("learnt-of-cores", symbiosis::views::learnt),
    ],
    notes: &[
        ("readings-of-tcs", asymmetry::note_verdict),
        ("ceiling-of-mixes", asymmetry::note_ceiling),
        ("changes-of-cycles", symbiosis::views::changes),
        ("limits-of-decisions", symbiosis::views::limit_note),
        ("occupancy", occupancy::notes),
        ("saved-cycles", asymmetry::note_saved_cycles),
        ("sharing-of-cores", alone::sharing),
    ],
    studies: &[
        ("s1", symbiosis::training::run),
        ("s2", symbiosis::errors::forward),
        ("s3", symbiosis::errors::inverse),
        ("s7", symbiosis::co_runners::run),
        ("h1", coscheduling::h1),
        ("h2", |c, f| coscheduling::run(c, f, coscheduling::h2)),
        ("h3", |c, f| coscheduling::run(c, f, coscheduling::h3)),
        ("h4", coscheduling::h4),
        ("h5", |c, f| coscheduling::run(c, f, coscheduling::h5)),
        ("h6", |c, f| coscheduling::run(c, f, coscheduling::h6)),
        ("measure-of-programs", mapping::measure_of_programs),
        ("pair-of-programs", mapping::pair_of_programs),
        ("m6", |c, f| mapping::run(c, f, mapping::m6)),
        ("m7", |c, f| mapping::run(c, f, mapping::m7)),
        ("m8", |c, f| mapping::run(c, f, mapping::m8)),
        ("m9", |c, f| mapping::run(c, f, mapping::m9)),
        ("m11", |c, f| mapping::run(c, f, mapping::m11)),
        ("m13", |c, f| mapping::run(c, f, mapping::m13)),
        ("m14", |c, f| mapping::run(c, f, mapping::m14)),
        ("m15", mapping::m15),
        ("x1", umbrella::run),
        ("x3", sensitivity::run),
        ("x5", optimality::run),
    ],
};

/// Settings of a run of programs that stay where they start and do their work once.
fn pinned_settings(seed: u64) -> SimulationSettings {
    SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: "pinned".to_owned(),
        logical_cores: false,
        free_migration: false,
    }
}

/// A cell's ratio of a measure under two policies, run by run.
fn ratio<'a>(measure: &'a str, policy: &'a str, over: &'a str) -> CellQuery<'a> {
    CellQuery {
        measure,
        policy,
        over: Some(over),
        ..CellQuery::default()
    }
}

/// The shared experiment of that name.
pub(crate) fn experiment(name: &str) -> Option<ExperimentSpec> {
    let file = format!("{name}.toml");
    let found = EXPERIMENTS.iter().find(|(known, _)| *known == file);
    found.and_then(|(_, text)| toml::from_str(text).ok())
}

/// Names of the shared experiments.
pub(crate) fn experiment_names() -> impl Iterator<Item = &'static str> + Clone {
    let names = EXPERIMENTS.iter();
    names.filter_map(|(name, _)| name.strip_suffix(".toml"))
}
