//! `symbiotic` where a kernel shows SMT, where it shows none, and where a file tells of it.

use crate::support::{boot, check_ended, check_free, check_topology, guest, json, masks};
use consort_core::topology::Topology;
use consort_vmtest::{GuestOutput, GuestTopology, Scenario, ScenarioKind, ThreadMask, Vm};
use std::collections::BTreeSet;

const MODEL: &str = include_str!("../../scenarios/estimated-stack.toml");
/// Two cores of two ways, whatever the kernel tells.
const TWO_CORES: &str = "cores = [\"0-1\", \"2-3\"]\n";
const POLICY: &str = "symbiotic:model=/model.toml,estimated=true,active=0.002";

/// A guest with a model, a topology file, and commands that show what is chosen and refused.
fn prepared(topology: GuestTopology) -> Vm {
    guest(topology)
        .file("/model.toml", MODEL)
        .file("/cores.toml", TWO_CORES)
        .command("asked", &report("--policy symbiotic:model=/model.toml"))
        .command("auto", &report(""))
        .command("named", &report("--model /model.toml"))
        .command("found", &in_folder())
        .command(
            "told",
            &report("--topology /cores.toml --model /model.toml"),
        )
}

/// A short run's report, or why there is none; quietly, since the console is a terminal.
fn report(options: &str) -> String {
    format!("consort run --quiet --format json {options} -- true || echo \"status $?\"")
}

/// Command with a folder that also has a file that is no model, and a model for another machine.
fn in_folder() -> String {
    format!(
        "folder=/etc/consort/models\n\
         mkdir -p $folder\n\
         echo nonsense > $folder/a.toml\n\
         sed s/GenuineIntel/Other/ /model.toml > $folder/b.toml\n\
         cp /model.toml $folder/c.toml\n\
         {}\n\
         rm -r $folder",
        report("")
    )
}

fn story() -> Scenario {
    Scenario::new("symbiotic", ScenarioKind::Brief, POLICY, 2, 2)
}

fn check_choice(outcome: &GuestOutput, section: &str, policy: &str, reason: &str) {
    let report = json(outcome, section);
    assert_eq!(report["policy"], policy, "{section}: {report}");
    let why = report["policy_reason"].as_str().unwrap();
    assert!(why.contains(reason), "{section}: {why}");
}

/// Asserts that every thread has a CPU of its own, and every core two threads.
fn check_seated(masks: &[ThreadMask], topology: &Topology) {
    let pus: BTreeSet<_> = masks
        .iter()
        .filter_map(|thread| thread.mask.first())
        .collect();
    assert!(
        masks.iter().all(|thread| thread.mask.len() == 1),
        "{masks:?}"
    );
    assert_eq!(pus.len(), masks.len(), "{masks:?}");
    for core in topology.cores() {
        let here = core.pus.iter().filter(|pu| pus.contains(pu)).count();
        assert_eq!(here, 2, "{masks:?}");
    }
}

/// The report of a story: the policy, a pair on both CPUs of a core, no more moves than plans could
/// want.
fn check_report(outcome: &GuestOutput) {
    let report = json(outcome, "symbiotic-report");
    assert_eq!(report["policy"], "symbiotic", "{report}");
    let number = |key: &str| report[key].as_u64().unwrap();
    assert!(number("moves") >= 4, "{report}");
    assert!(number("moves") <= 4 * number("plans"), "{report}");
    let threads = report["threads"].as_array().unwrap();
    let paired = threads
        .iter()
        .filter(|thread| thread["reason"].to_string().contains("next to"));
    // Reasons are those of the last plan, for which a thread may have had no turn on a busy host;
    // that all four have a place is seen in their masks.
    assert!(paired.count() >= 2, "{report}");
}

#[test]
fn pairs_get_the_two_pus_of_a_core() {
    let smt = GuestTopology::smt(2, 2);
    let Some(outcome) = boot(&story().add_to(prepared(smt))) else {
        return;
    };
    let topology = smt.topology().unwrap();
    check_topology(&outcome, &topology);
    check_choice(&outcome, "asked", "symbiotic", "as requested");
    check_choice(&outcome, "auto", "workover", "2 CPUs share a core");
    check_choice(&outcome, "named", "symbiotic", "model /model.toml fits");
    check_choice(
        &outcome,
        "found",
        "symbiotic",
        "/etc/consort/models/c.toml fits",
    );
    check_seated(&masks(&outcome, "symbiotic-during"), &topology);
    check_report(&outcome);
    check_ended(&outcome, "symbiotic");
    check_free(&outcome, "symbiotic-after", 4, "0-3");
}

#[test]
fn without_smt_it_is_refused_unless_a_file_tells_of_cores() {
    let flat = GuestTopology::smt(4, 1);
    let Some(outcome) = boot(&prepared(flat)) else {
        return;
    };
    let refused = outcome.output("asked").unwrap();
    assert!(
        refused.contains("no CPUs share one here; use 'spread'"),
        "{refused}"
    );
    assert!(refused.ends_with("status 2"), "{refused}");
    for section in ["auto", "named", "found"] {
        check_choice(&outcome, section, "none", "no gain to be expected here");
    }
    check_choice(&outcome, "told", "symbiotic", "2 CPUs share a core");
}
