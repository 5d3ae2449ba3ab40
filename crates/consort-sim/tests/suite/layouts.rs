//! The presets, laid out: each is what its name promises.

use consort_sim::chip::{Chip, Domains};
use consort_sim::machine::{MachineRef, presets};

fn chip(name: &str) -> Chip {
    let spec = presets::find(name).expect("a preset is right");
    Chip::new(&spec, None).expect("a preset has CPUs")
}

/// Cores, CPUs, L2 domains, LLC domains, nodes, packages.
fn shape(name: &str) -> [usize; 6] {
    let chip = chip(name);
    let Domains {
        cores,
        l2s,
        llcs,
        nodes,
        packages,
    } = chip.domains();
    [cores, chip.places().len(), l2s, llcs, nodes, packages]
}

#[test]
fn presets_have_the_topology_that_their_names_promise() {
    let shapes = [
        ("bulldozer-6282se", [4, 8, 4, 1, 1, 1]),
        ("power7", [8, 32, 8, 8, 1, 1]),
        ("power8", [10, 80, 10, 10, 2, 1]),
        ("acmp-1+1", [2, 2, 2, 1, 1, 1]),
        ("acmp-1+3", [4, 4, 4, 1, 1, 1]),
        ("acmp-1+7", [8, 8, 8, 1, 1, 1]),
        ("acmp-1+15", [16, 16, 16, 1, 1, 1]),
        ("acmp-2+6", [8, 8, 8, 2, 1, 1]),
        ("acmp-4+12", [16, 16, 16, 4, 1, 1]),
        ("acmp-8+24", [32, 32, 32, 8, 1, 1]),
        ("xeon-e5320", [8, 8, 8, 4, 1, 1]),
        ("core2-q9550", [4, 4, 4, 2, 1, 1]),
        ("core-i9-12900k", [16, 24, 10, 1, 1, 1]),
        ("epyc-7763", [128, 256, 128, 16, 8, 2]),
        ("rk3588", [8, 8, 8, 1, 1, 1]),
        ("xeon-silver-4110", [8, 16, 8, 1, 1, 1]),
        ("xeon-5120", [14, 28, 14, 1, 1, 1]),
        ("core-i7-6700", [4, 8, 4, 1, 1, 1]),
        ("xeon-e5-2630v4", [10, 20, 10, 1, 1, 1]),
        ("odroid-xu3", [8, 8, 5, 1, 1, 1]),
        ("jetson-tx2", [6, 6, 6, 1, 1, 1]),
        ("apple-m1", [8, 8, 2, 1, 1, 1]),
        ("ryzen-9-7950x3d", [16, 32, 16, 2, 1, 1]),
    ];
    assert_eq!(shapes.len(), presets::names().count());
    for (name, expect) in shapes {
        assert_eq!(shape(name), expect, "{name}");
    }
}

#[test]
fn asymmetric_chips_have_as_many_big_and_small_cores_as_their_names_say() {
    for name in presets::names().filter(|name| name.starts_with("acmp-")) {
        let chip = chip(name);
        let names: Vec<_> = chip.spec().core_types.keys().collect();
        let count = |kind: &str| {
            let places = chip.places().iter();
            places.filter(|p| names[p.core_type] == kind).count()
        };
        assert_eq!(name, format!("acmp-{}+{}", count("big"), count("small")));
    }
}

#[test]
fn smt_modes_are_limited_by_the_reference() {
    for (text, pus) in [
        ("power7:smt=2", 16),
        ("power8:smt=2", 20),
        ("power7:smt=1", 8),
    ] {
        let reference: MachineRef = text.parse().expect("it is a reference");
        let loaded = reference.load(&[]).expect("it is a preset");
        let chip = Chip::new(&loaded.spec, loaded.smt).expect("it has CPUs");
        assert_eq!(chip.places().len(), pus, "{text}");
    }
}
