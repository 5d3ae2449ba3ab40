//! What is told of a core's inside that cannot be.

use consort_describe::machine::{parse, presets};

/// The message for a preset in which a text is replaced.
fn reported(name: &str, old: &str, new: &str) -> String {
    let text = presets::text(name).expect("it is a preset");
    assert!(text.contains(old), "{old}");
    let error = parse("x.toml", &text.replacen(old, new, 1));
    error.expect_err("it is refused").to_string()
}

#[test]
fn impossible_core_parts_are_reported_with_key() {
    let check = |name: &str, old: &str, new: &str, expect: &str| {
        let reported = reported(name, old, new);
        assert!(reported.contains(expect), "{reported}");
        assert!(reported.starts_with("x.toml:"), "{reported}");
    };
    let intel = "xeon-silver-4110";
    check(
        intel,
        "entries = 56, sharing",
        "entries = 0, sharing",
        "core_type.core.buffers.store_queue.entries: is 0; expected 1 to 8192",
    );
    check(
        intel,
        "takes = [\"store-data\"]",
        "takes = []",
        "ports[6].takes: is empty; expected the work that this port takes",
    );
    check(
        intel,
        "\"multiply\", \"fp-add\"",
        "\"fp-add\"",
        "core_type.core.ports: have none that takes 'multiply'; expected one",
    );
    check(
        intel,
        "row_hit_saves_ns = 14",
        "row_hit_saves_ns = 90",
        "memory.dram.row_hit_saves_ns: is 90; expected 0 to less than latency_ns, 60",
    );
    check(
        "power8",
        "slots = 8, branches = 2",
        "slots = 2, branches = 2",
        "buffers.group.branches: is 2; expected fewer than slots, 2",
    );
    check(intel, "fetch_bytes", "fetch_byte", "fetch_byte");
}
