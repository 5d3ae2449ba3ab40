//! Promise: every built-in event file is well formed, cites its sources, and is
//! chosen for the CPUs it is for and no others.

use consort_core::Signal;
use consort_linux::events::{EMBEDDED, event_file_for, event_files, parse_event_file};
use consort_linux::topology::CpuIdentity;
use proptest::prelude::*;

fn x86(vendor: &str, family: u32, model: u32) -> CpuIdentity {
    CpuIdentity::X86 {
        vendor: vendor.to_owned(),
        family,
        model,
        stepping: 1,
    }
}

fn arm(part: u32) -> CpuIdentity {
    CpuIdentity::Arm {
        implementer: 0x41,
        part,
        variant: 0,
        revision: 1,
    }
}

fn power(name: &str) -> CpuIdentity {
    CpuIdentity::Power {
        name: name.to_owned(),
        pvr: None,
    }
}

fn check(identity: &CpuIdentity, expect: Option<&str>) {
    let file = event_file_for(identity).expect("the built-in files are well formed");
    assert_eq!(
        file.as_ref().map(|f| f.name.as_str()),
        expect,
        "{identity:?}"
    );
}

#[test]
fn real_cpus_get_their_file() {
    let (intel, amd) = ("GenuineIntel", "AuthenticAMD");
    check(&x86(intel, 6, 0x6a), Some("intel-ice-lake")); // Xeon 8380
    check(&x86(intel, 6, 0x8f), Some("intel-ice-lake")); // Xeon 8480+
    check(&x86(intel, 6, 0xcf), Some("intel-ice-lake")); // Xeon 8592+
    check(&x86(intel, 6, 0x8c), Some("intel-ice-lake")); // Core i7-1165G7
    check(&x86(intel, 6, 0x97), Some("intel-alder-lake")); // Core i9-12900K
    check(&x86(intel, 6, 0xb7), Some("intel-alder-lake")); // Core i9-13900K
    check(&x86(intel, 6, 0xaa), Some("intel-meteor-lake")); // Core Ultra 7 155H
    check(&x86(intel, 6, 0xc6), Some("intel-arrow-lake")); // Core Ultra 9 285K
    check(&x86(intel, 6, 0x55), Some("intel-skylake")); // Xeon 6130, Gold 6230
    check(&x86(intel, 6, 0x3f), None); // Haswell-EP
    check(&x86(amd, 0x17, 0x31), Some("amd-zen2")); // EPYC 7742
    check(&x86(amd, 0x17, 0x71), Some("amd-zen2")); // Ryzen 9 3950X
    check(&x86(amd, 0x17, 0x01), None); // EPYC 7601: Zen 1
    check(&x86(amd, 0x19, 0x01), Some("amd-zen3")); // EPYC 7763
    check(&x86(amd, 0x19, 0x21), Some("amd-zen3")); // Ryzen 9 5950X
    check(&x86(amd, 0x19, 0x11), Some("amd-zen4")); // EPYC 9654
    check(&x86(amd, 0x19, 0x61), Some("amd-zen4")); // Ryzen 9 7950X
    check(&x86(amd, 0x1a, 0x02), Some("amd-zen5")); // EPYC 9755
    check(&x86(amd, 0x1a, 0x44), Some("amd-zen5")); // Ryzen 9 9950X
    check(&x86(amd, 0x15, 0x01), Some("amd-bulldozer")); // Opteron 6282 SE
    check(&arm(0xd0c), Some("arm-neoverse-n1")); // Graviton 2, Ampere Altra
    check(&arm(0xd40), Some("arm-neoverse-v1")); // Graviton 3
    check(&arm(0xd49), Some("arm-neoverse-n2")); // Cobalt 100
    check(&arm(0xd4f), Some("arm-neoverse-v2")); // Graviton 4, Grace
    check(&arm(0xd08), None); // Cortex-A72
    check(&power("POWER7"), Some("power7"));
    check(&power("POWER7+"), Some("power7"));
    check(&power("POWER8"), Some("power8"));
    check(&power("POWER8E"), Some("power8"));
    check(&power("POWER8NVL"), Some("power8"));
    check(&power("POWER9"), Some("power9"));
    check(&power("POWER10"), Some("power10"));
    check(&CpuIdentity::Unknown, None);
}

#[test]
fn file_names_agree_and_sources_are_given() {
    for (file, (name, _)) in event_files().unwrap().iter().zip(EMBEDDED) {
        assert_eq!(&file.name, name);
        assert!(file.sources.iter().all(|s| s.len() > 10), "{name}");
    }
}

#[test]
fn every_first_pmu_gives_cycles_instructions_and_more() {
    for file in event_files().unwrap() {
        for signal in [Signal::Cycles, Signal::Instructions] {
            let all = file.pmus.iter().all(|p| p.formula(signal).is_some());
            assert!(all, "{} {signal}", file.name);
        }
        let more = [Signal::FpUsage, Signal::CycleStack];
        let rich = more.iter().any(|&s| file.pmus[0].formula(s).is_some());
        assert!(rich, "{}", file.name);
    }
}

#[test]
fn every_file_on_disk_is_embedded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/events");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut embedded: Vec<String> = EMBEDDED.iter().map(|(n, _)| format!("{n}.toml")).collect();
    embedded.sort();
    assert_eq!(names, embedded);
}

fn bulldozer() -> &'static str {
    EMBEDDED
        .iter()
        .find(|(n, _)| *n == "amd-bulldozer")
        .expect("the file is built in")
        .1
}

/// Replaces text in a good file and expects an error with these words, on the
/// line of the replacement unless the words say otherwise.
fn check_error(from: &str, to: &str, words: &[&str]) {
    let text = bulldozer().replacen(from, to, 1);
    assert_ne!(text, bulldozer(), "{from} is not in the file");
    let error = parse_event_file("x.toml", &text)
        .expect_err("the file is bad")
        .to_string();
    for word in words {
        assert!(error.contains(word), "{error:?} lacks {word:?}");
    }
    let at = text.find(to).expect("it was put in");
    let line = text[..at].matches('\n').count() + 1;
    assert!(
        error.contains(&format!("x.toml, line {line}:")),
        "{error}, expected line {line}"
    );
}

#[test]
fn errors_name_file_line_and_key() {
    check_error("fixed = 0", "fixd = 0", &["fixd"]);
    check_error(
        "programmable = 6",
        "programmable = 99",
        &["programmable", "1 to 32"],
    );
    check_error("programmable = 6", "programmable = -1", &["programmable"]);
    check_error(
        "counters = [3, 4, 5]",
        "counters = [3, 4, 6]",
        &["counters", "0 to 5"],
    );
    check_error("counters = [3, 4, 5]", "slots = 3", &["slots", "1 or 2"]);
    check_error(
        "counters = [3, 4, 5]",
        "leader = \"nobody\"",
        &["leader", "nobody"],
    );
    check_error(
        "unit = \"cycles\"",
        "unit = \"bicycles\"",
        &["unit", "bicycles"],
    );
    check_error(
        "\"1 - fpu_empty / cycles\"",
        "\"1 - fpu_empty / cycle\"",
        &["cycle"],
    );
    check_error(
        "\"1 - fpu_empty / cycles\"",
        "\"1 - fpu_empty /\"",
        &["value", "column 16"],
    );
    check_error(
        "signal = \"fp-usage\"",
        "signal = \"fp-use\"",
        &["signal", "fp-use"],
    );
    check_error(
        "signal = \"fp-usage\"",
        "signal = \"cpu-time\"",
        &["cpu-time"],
    );
    check_error(
        "signal = \"fp-usage\"",
        "signal = \"cycle-stack\"",
        &["components"],
    );
    check_error("\"fpu_empty\"", "\"cycles\" # again", &["name", "twice"]);
    check_error("\"fpu_empty\"", "\"FPU\"", &["name", "a-z"]);
}

proptest! {
    #[test]
    fn damaged_files_never_panic(at in 0_usize..1500, with in "\\PC{0,8}", cut in 0_usize..40) {
        let text = bulldozer();
        let start = (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap();
        let end = (start + cut).min(text.len());
        let end = (start..=end).rev().find(|&i| text.is_char_boundary(i)).unwrap();
        let damaged = format!("{}{with}{}", &text[..start], &text[end..]);
        let _ = parse_event_file("x.toml", &damaged);
    }
}
