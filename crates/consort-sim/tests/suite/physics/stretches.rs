//! Short stretches of execution: limits that take turns from one to the next.

use super::build::{alone, phase};
use consort_sim::machine::presets;
use consort_sim::program::{MixSpec, PhaseSpec, StretchSpec};

/// Half of the stretches with so many more loads than the mean, half with as many fewer; no branches.
fn in_turns(apart: f64) -> PhaseSpec {
    let stretch = |load: f64| StretchSpec {
        share: 0.5,
        operations: 1.0,
        taken: 0.0,
        mix: MixSpec {
            fp: 0.0,
            vector: 0.0,
            int: 1.0 - load,
            load,
            store: 0.0,
            branch: 0.0,
        },
        multiply: 0.0,
        moves: 0.0,
    };
    phase(|p| {
        p.ilp.a = 10.0;
        p.ilp.unevenness = Some(0.0);
        p.mix = stretch(0.4).mix;
        p.code.taken = Some(0.0);
        p.stretches = Some(vec![stretch(0.4 + apart), stretch(0.4 - apart)]);
    })
}

#[test]
fn ports_that_bind_in_half_of_the_stretches_cost_what_the_mean_hides() {
    // Two ports for loads, four instructions per cycle.
    let cpi = |apart: f64| 1.0 / alone(&presets::find("core-i7-6700").unwrap(), &in_turns(apart));
    assert!((cpi(0.0) - 0.25).abs() < 1e-3, "{}", cpi(0.0));
    assert!((cpi(0.4) - (0.4 + 0.25) / 2.0).abs() < 1e-3, "{}", cpi(0.4));
}

#[test]
fn one_port_for_multiplications_binds_where_there_are_many() {
    let multiplying = |multiply: f64| {
        let mut phase = in_turns(0.0);
        let stretches = phase.stretches.as_mut().unwrap();
        stretches.iter_mut().for_each(|s| s.multiply = multiply);
        1.0 / alone(&presets::find("bulldozer-6282se").unwrap(), &phase)
    };
    // One of two ports for integers, each multiplication for two cycles.
    assert!(
        (multiplying(0.0) - 0.3).abs() < 1e-2,
        "{}",
        multiplying(0.0)
    );
    assert!(
        (multiplying(0.25) - 0.5).abs() < 1e-2,
        "{}",
        multiplying(0.25)
    );
}
