//! Broken machine files: one line that names file, line, key and what would be right.

mod detail;
mod schema;

use consort_describe::describe::DescribeError;
use consort_describe::machine::{self, presets};

const FILE: &str = "mine.toml";

fn base() -> &'static str {
    presets::text("acmp-1+3").expect("it is a preset")
}

/// The error of the base with its first `from` replaced.
fn broken(from: &str, to: &str) -> DescribeError {
    assert!(base().contains(from), "{from}");
    let text = base().replacen(from, to, 1);
    machine::parse(FILE, &text).expect_err("it is wrong")
}

/// The error's text without file and line; the line must be the one that begins with `anchor`.
fn reported(anchor: &str, from: &str, to: &str) -> String {
    let error = broken(from, to);
    let text = base().replacen(from, to, 1);
    let before = text.split(anchor).next().expect("there is text before it");
    let line = 1 + before.matches('\n').count();
    assert_eq!(error.line, line, "{error}");
    let text = error.to_string();
    let rest = text.strip_prefix(&format!("{FILE}:{line}: "));
    rest.expect("file and line come first").to_owned()
}

fn check(from: &str, to: &str, expect: &str) {
    assert_eq!(reported(to, from, to), expect);
}

fn check_at(anchor: &str, from: &str, to: &str, expect: &str) {
    assert_eq!(reported(anchor, from, to), expect);
}

#[test]
fn keys_that_are_unknown_or_missing() {
    check(
        "rob_entries = 128",
        "rob_entires = 128",
        "core_type.big.rob_entires: is not a known key; did you mean 'rob_entries'?",
    );
    check(
        "{ ways = 1, thread_dispatch_width",
        "{ wasy = 1, thread_dispatch_width",
        "core_type.big.smt[0].wasy: is not a known key; did you mean 'ways'?",
    );
    check(
        "[memory]\nlatency_ns = 45 # markovic\n",
        "[memory]\n",
        "memory.latency_ns: is missing; expected the latency from the LLC's miss to data in an idle system, ns",
    );
    check_at(
        "frequency_mhz",
        "[core_type.small]\npipeline",
        "[core_type.small]\nfrequency_mhz = 1\npipeline",
        "core_type.small.frequency_mhz: is not a known key; did you mean 'frequency_ghz'?",
    );
}

#[test]
fn values_of_the_wrong_kind() {
    check(
        "controllers_per_node = 1",
        "controllers_per_node = \"one\"",
        "memory.controllers_per_node: is string \"one\"; expected a whole number from 0 to 4294967295",
    );
    check(
        "kind = \"ring\"",
        "kind = \"torus\"",
        "interconnect.kind: is 'torus'; expected front-side-bus, ring, mesh, crossbar",
    );
    check(
        "counts = \"fp-operations\"",
        "counts = 7",
        "pmu.events[2].counts: is no string; expected one of the format's words in quotes",
    );
}

#[test]
fn values_out_of_range() {
    check(
        "frequency_ghz = 2.66",
        "frequency_ghz = 2660",
        "core_type.big.frequency_ghz: is 2660; expected 0.01 to 20",
    );
    check(
        "l2 = { size_kib = 256",
        "l2 = { size_kib = 16",
        "core_type.big.l2.size_kib: is 16; expected at least the L1D's, 32",
    );
    check(
        "idle_fraction = 0.3",
        "idle_fraction = nan",
        "core_type.big.power.idle_fraction: is NaN; expected 0 to 1",
    );
    check(
        "bandwidth_gb_s = 7.6",
        "bandwidth_gb_s = inf",
        "memory.bandwidth_gb_s: is inf; expected 0.01 to 100000",
    );
}

#[test]
fn impossible_topologies() {
    check(
        "cores_per_l2 = 1 }, # markovic\n    { core",
        "cores_per_l2 = 0 }, # markovic\n    { core",
        "layout.cluster[0].cores_per_l2: is 0; expected 1 to 4096",
    );
    check(
        "core_type = \"small\"",
        "core_type = \"smal\"",
        "layout.cluster[1].core_type: 'smal' is no [core_type]; did you mean 'small'? (and 1 more)",
    );
    check_at(
        "[layout]",
        "packages = 1",
        "packages = 2",
        "layout: makes 2 nodes; expected [numa] to say what lies between them",
    );
    let error = broken("l2_domains = 3", "l2_domains = 4000000000");
    assert_eq!(error.more, 1);
    check_at(
        "[layout]",
        "llc_domains_per_node = 1",
        "llc_domains_per_node = 1025",
        "layout: makes 4100 CPUs; expected at most 4096",
    );
}

#[test]
fn llc_domains_that_cannot_be() {
    let listed = |domain: &str| {
        let cores = "{ core_type = \"big\", l2_domains = 1, cores_per_l2 = 1 }";
        let text = base().replacen("llc_domains_per_node = 1", "", 1);
        let (before, after) = text.split_once("cluster = [").expect("it is there");
        let (_, after) = after.split_once("]\n").expect("it ends");
        let all = "[[layout.llc_domain]]\ncluster = [{ core_type = \"small\", l2_domains = 1, cores_per_l2 = 1 }]";
        let text = format!("{before}\n{all}\n[[layout.llc_domain]]\n{domain}\n{after}");
        let text = text.replace("CORES", cores);
        let error = machine::parse(FILE, &text).map(|_| ()).err();
        error.map_or_else(String::new, |error| {
            format!("{}: {} (and {} more)", error.key, error.message, error.more)
        })
    };
    assert_eq!(listed("size_kib = 16384\ncluster = [CORES]"), "");
    assert_eq!(listed("size_kib = 0\ncluster = [CORES]"), "");
    assert_eq!(
        listed("size_kb = 16384\ncluster = [CORES]"),
        "layout.llc_domain[1].size_kb: is not a known key; did you mean 'size_kib'? (and 0 more)"
    );
    assert_eq!(
        listed("size_kib = 64\ncluster = [CORES]"),
        "layout.llc_domain[1].size_kib: is 64; expected at least that of the cache before it, 256 \
         in core_type.big (and 0 more)"
    );
    assert_eq!(
        listed("size_kib = -1\ncluster = [CORES]"),
        "layout.llc_domain[1].size_kib: is -1; expected 0.5 to 8388608 (and 1 more)"
    );
    assert_eq!(
        listed("size_kib = 0\ncluster = [CORES, CORES]"),
        "layout.llc_domain[1].size_kib: is 0 with several L2 domains; expected an LLC domain for \
         each of them (and 0 more)"
    );
    assert!(listed("cluster = []").starts_with("layout.llc_domain[1].cluster: is empty"));
    let both = broken(
        "llc_domains_per_node = 1",
        "llc_domain = [{ cluster = [{ core_type = \"big\", l2_domains = 1, cores_per_l2 = 1 }] }]",
    );
    assert_eq!(both.key, "layout.cluster");
    assert!(
        both.message.starts_with("is there with layout.llc_domain"),
        "{both}"
    );
}

#[test]
fn cores_that_cannot_be() {
    check_at(
        "[core_type.big]",
        "rob_entries = 128 # markovic\n",
        "",
        "core_type.big.rob_entries: is missing; an out-of-order core needs it, expected 4 to 8192",
    );
    check_at(
        "smt = [",
        "ways = 1, thread_dispatch_width = 4",
        "ways = 2, thread_dispatch_width = 4",
        "core_type.big.smt: does not start with alone; expected a first mode with ways = 1",
    );
    check(
        "    { ways = 1, thread_dispatch_width = 4 },",
        "    { ways = 1, thread_dispatch_width = 4 }, { ways = 1, thread_dispatch_width = 4 },",
        "core_type.big.smt[1].ways: is 1 after 1; expected ascending ways",
    );
    check(
        "latency_ns = 11.28",
        "remote_latency_ns = 30\nlatency_ns = 11.28",
        "llc.remote_latency_ns: is there with one LLC domain per package; expected no such key",
    );
}

#[test]
fn counters_that_do_not_count_time() {
    let reported = reported(
        "events = [",
        "events = [\n    { name = \"CYCLES\", counts = \"cycles\", fixed = true },",
        "events = [",
    );
    assert_eq!(
        reported,
        "pmu.events: has none that counts cycles; expected one"
    );
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let error = machine::parse(FILE, "name = \"x\"\ntitle = = 3\n").expect_err("no TOML");
    assert_eq!(error.line, 2);
    assert!(
        error.to_string().starts_with("mine.toml:2: title: "),
        "{error}"
    );
    let error = machine::parse(FILE, "name = \"x\"\n").expect_err("no title");
    assert!(
        error
            .to_string()
            .starts_with("mine.toml:1: title: is missing"),
        "{error}"
    );
    let error = machine::parse(FILE, "").expect_err("nothing there");
    assert!(
        error
            .to_string()
            .starts_with("mine.toml:1: name: is missing")
    );
}

#[test]
fn memory_on_nodes_that_cannot_have_it() {
    let reported = |nodes: &str| {
        let link = "link_bandwidth_gb_s = 32";
        let text = presets::text("power8").expect("it is a preset");
        assert!(text.contains(link));
        let text = text.replacen(link, &format!("memory_nodes = {nodes}\n{link}"), 1);
        let parsed = machine::parse(FILE, &text);
        parsed.map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(reported("[1]"), "");
    let check = |nodes: &str, expect: &str| {
        let text = reported(nodes);
        assert!(text.starts_with("mine.toml:"), "{text}");
        assert!(text.ends_with(expect), "{text}");
    };
    check(
        "[]",
        "numa.memory_nodes: is empty; expected at least one node, or no such key where all have memory",
    );
    check("[0, 2]", "numa.memory_nodes: names node 2; expected 0 to 1");
    check(
        "[1, 1]",
        "numa.memory_nodes: names node 1 twice; expected each node once",
    );
}
