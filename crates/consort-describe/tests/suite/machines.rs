//! The presets: each is what its name promises, and each number in it says where it is from.

use consort_describe::machine::{
    CoreSpec, InterconnectKind, MachineRef, MachineSource, MachineSpec, presets,
};
use std::collections::BTreeSet;
use std::path::Path;

fn preset(name: &str) -> MachineSpec {
    presets::find(name).expect("a preset is right")
}

fn text(name: &str) -> &'static str {
    presets::text(name).expect("a preset has a text")
}

#[test]
fn every_machine_file_is_registered_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines");
    let entries = std::fs::read_dir(folder).expect("the folder is in the crate");
    let stem = |path: &Path| path.file_stem()?.to_str().map(str::to_owned);
    let files: BTreeSet<_> = entries
        .filter_map(|entry| stem(&entry.ok()?.path()))
        .collect();
    let registered: BTreeSet<_> = presets::names().map(str::to_owned).collect();
    assert_eq!(files, registered);
    for name in presets::names() {
        assert_eq!(preset(name).name, name);
    }
}

#[test]
fn asymmetric_chips_differ_in_their_layout_alone() {
    let first = preset("acmp-1+3");
    for name in presets::names().filter(|name| name.starts_with("acmp-")) {
        let other = preset(name);
        assert_eq!(other.core_types, first.core_types, "{name}");
        assert_eq!(other.llc, first.llc, "{name}");
        assert_eq!(other.pmu, first.pmu, "{name}");
        assert_eq!(other.os, first.os, "{name}");
    }
}

#[test]
fn more_ways_than_a_core_has_are_refused() {
    let reference: MachineRef = "power7:smt=8".parse().expect("it is a reference");
    let error = reference
        .load(&[])
        .expect_err("POWER7 has four CPUs per core");
    let expect =
        "smt=8 for machine 'power7', whose cores have no such mode; expected one of 1, 2, 4";
    assert_eq!(error.to_string(), expect);
}

#[test]
fn unknown_machines_get_the_nearest_name() {
    let error = presets::find("pwoer8").expect_err("there is none");
    let expect = "unknown machine 'pwoer8'; did you mean 'power8'?";
    assert_eq!(error.to_string(), expect);
}

#[test]
fn paths_precede_user_files_and_presets() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let [user, system] = ["user", "system"].map(|name| folder.path().join(name));
    let both = [user.clone(), system.clone()];
    let power7 = |source: MachineSource| {
        let reference: MachineRef = "power7".parse().expect("it is a reference");
        assert_eq!(reference.source(&both), source);
        reference.load(&both).expect("it is right").spec.title
    };
    power7(MachineSource::Preset("power7".to_owned()));
    for directory in [&system, &user] {
        std::fs::create_dir(directory).expect("the folder is writable");
        let file = directory.join("power7.toml");
        let ours = text("power7").replace("IBM POWER7, one", "Ours, one");
        std::fs::write(&file, ours).expect("the folder is writable");
        assert!(power7(MachineSource::File(file)).starts_with("Ours"));
    }
    let path = user.join("power7.toml").display().to_string();
    let reference: MachineRef = path.parse().expect("it is a reference");
    assert!(reference.load(&[]).is_ok());
    let missing: MachineRef = "none/x.toml".parse().expect("it is a reference");
    let error = missing.load(&[]).expect_err("there is no such file");
    assert!(error.to_string().starts_with("none/x.toml: cannot be read"));
}

/// Whether the text, strings left out, has a number.
fn has_number(value: &str) -> bool {
    let outside: String = value.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let breaks = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    outside
        .split(breaks)
        .any(|token| token.starts_with(|c: char| c.is_ascii_digit()))
}

/// Words of a comment.
fn words(comment: &str) -> impl Iterator<Item = &str> {
    comment.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
}

/// A line outside `[sources]` before and in its comment.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut header = "";
    text.lines().filter_map(move |line| {
        if line.starts_with('[') {
            header = line;
        }
        let code = line.split_once('#').unwrap_or((line, ""));
        (header != "[sources]").then_some(code)
    })
}

#[test]
fn every_number_has_source_or_estimate_mark() {
    for name in presets::names() {
        let spec = preset(name);
        let known = |word: &str| word == "estimated" || spec.sources.contains_key(word);
        for (code, comment) in lines(text(name)) {
            let value = code.split_once('=').map_or("", |(_, value)| value);
            let cited = words(comment).any(known);
            assert!(!has_number(value) || cited, "machines/{name}.toml: {code}");
        }
    }
}

#[test]
fn every_source_is_cited() {
    for name in presets::names() {
        let cited: BTreeSet<_> = lines(text(name)).flat_map(|(_, c)| words(c)).collect();
        for source in preset(name).sources.keys() {
            assert!(cited.contains(source.as_str()), "{name}: {source}");
        }
    }
}

#[test]
fn memory_bandwidth_fits_the_interconnect() {
    for name in presets::names() {
        let spec = preset(name);
        let controllers = spec.layout.nodes_per_package * spec.memory.controllers_per_node;
        let memory = f64::from(controllers) * spec.memory.bandwidth_gb_s;
        // Channels of memory may be faster than the front-side bus before them.
        let is_bus = spec.interconnect.kind == InterconnectKind::FrontSideBus;
        assert!(
            is_bus || memory <= spec.interconnect.bandwidth_gb_s,
            "{name}"
        );
    }
}

/// Watts of a core that completes `ipc` instructions per cycle of a common mix out of its L1.
fn core_w(core: &CoreSpec, ipc: f64) -> f64 {
    let nj = &core.power.instruction_nj;
    let per_instruction = 0.4 * nj.int
        + 0.1 * nj.fp
        + 0.25 * nj.load
        + 0.1 * nj.store
        + 0.15 * nj.branch
        + 0.48 * core.power.l1_nj;
    core.power.static_w + core.frequency_ghz * ipc * per_instruction
}

/// Instructions per cycle by core type.
type Ipc = &'static [(&'static str, f64)];

/// Watts of a package whose cores all complete what their file supposes.
fn package_w(name: &str, ipc: Ipc) -> f64 {
    let spec = preset(name);
    let layout = &spec.layout;
    let nodes = f64::from(layout.nodes_per_package);
    let group = |group: &consort_describe::machine::L2Group| {
        let cores = f64::from(group.l2_domains * group.cores_per_l2);
        let (_, ipc) = ipc
            .iter()
            .find(|(kind, _)| *kind == group.core_type)
            .expect("listed");
        cores * core_w(&spec.core_types[&group.core_type], *ipc)
    };
    let groups = layout.domains().flat_map(|(_, groups)| groups);
    let cores: f64 = groups.map(group).sum();
    spec.uncore_power.static_w + nodes * cores
}

#[test]
fn busy_chips_draw_about_published_power() {
    let chips: [(&str, Ipc, f64); 13] = [
        // The thermal design power of the chip, of half of it, or of the package.
        ("bulldozer-6282se", &[("module", 2.0)], 70.0),
        ("power7", &[("core", 2.0)], 200.0),
        ("power8", &[("core", 1.7)], 190.0),
        ("core2-q9550", &[("core", 1.3)], 95.0),
        ("core-i9-12900k", &[("p-core", 2.0), ("e-core", 1.5)], 241.0),
        ("epyc-7763", &[("zen3", 1.3)], 280.0),
        ("ryzen-9-7950x3d", &[("zen4", 1.3)], 120.0),
        ("xeon-silver-4110", &[("core", 2.0)], 85.0),
        ("xeon-5120", &[("core", 2.0)], 105.0),
        ("core-i7-6700", &[("core", 2.0)], 65.0),
        ("xeon-e5-2630v4", &[("core", 2.0)], 85.0),
        // Measured: the whole system with eight cores at work, the whole module.
        ("xeon-e5320", &[("core", 1.0)], 300.0),
        ("rk3588", &[("a76", 1.5), ("a55", 0.8)], 11.0),
    ];
    for (name, ipc, expect) in chips {
        let watts = package_w(name, ipc);
        let off = (watts / expect - 1.0).abs();
        assert!(off < 0.1, "{name}: {watts:.1} W instead of {expect} W");
    }
}
