//! Promise: the probe tells for every tier whether it is there and why not, and
//! the self-test runs where it can and says why where it cannot.

mod skip;

use consort_core::{Signal, Tier};
use consort_linux::counters::EventVerdict;
use consort_linux::counters::{
    CheckKernel, CheckRow, ExpectedCounts, TierStatus, check, core_pmus, probe,
};
use consort_linux::events::{event_file_for, parse_event_file};
use consort_linux::topology::CpuIdentity;
use skip::skipped;
use std::path::Path;

fn zen4() -> CpuIdentity {
    CpuIdentity::X86 {
        vendor: "AuthenticAMD".to_owned(),
        family: 0x19,
        model: 0x11,
        stepping: 1,
    }
}

fn probed(root: &Path) -> Vec<TierStatus> {
    probe(root, &zen4()).status
}

#[test]
fn every_tier_is_told_with_a_reason() {
    let tiers = probed(Path::new("/"));
    let order: Vec<Tier> = tiers.iter().map(|t| t.tier).collect();
    assert_eq!(
        order,
        [Tier::Counters, Tier::Sampling, Tier::Software, Tier::Proc]
    );
    for status in &tiers {
        assert!(!status.reason.is_empty());
        assert_eq!(status.available, !status.signals.is_empty(), "{status:?}");
    }
    let proc = tiers.last().unwrap();
    assert!(proc.available && proc.signals.contains(&Signal::CpuTime));
}

#[test]
fn a_guest_without_a_pmu_says_so() {
    let root = tempfile::tempdir().unwrap();
    let kernel = root.path().join("proc/sys/kernel");
    std::fs::create_dir_all(&kernel).unwrap();
    std::fs::write(kernel.join("perf_event_paranoid"), "2\n").unwrap();
    std::fs::write(
        root.path().join("proc/cpuinfo"),
        "processor : 0\nflags : fpu hypervisor\n",
    )
    .unwrap();
    let tiers = probed(root.path());
    let expect = "no hardware PMU on this host (unknown guest); perf_event_paranoid=2";
    assert_eq!(tiers[0].reason, expect);
    assert!(!tiers[3].available, "no /proc/self below this root");
}

#[test]
fn an_unknown_cpu_says_so() {
    let root = tempfile::tempdir().unwrap();
    let pmu = root.path().join("sys/bus/event_source/devices/cpu");
    std::fs::create_dir_all(&pmu).unwrap();
    std::fs::write(pmu.join("type"), "4\n").unwrap();
    let tiers = probe(root.path(), &CpuIdentity::Unknown).status;
    assert_eq!(tiers[0].reason, "there is no event file for this CPU");
}

fn rows() -> Vec<CheckRow> {
    let file = event_file_for(&zen4()).expect("the built-in files are well formed");
    let run = |n: u64| {
        std::hint::black_box((0..n).fold(0, |sum, i| std::hint::black_box(sum ^ i)));
    };
    let counts = |n: u64| ExpectedCounts {
        instructions: n,
        ..ExpectedCounts::default()
    };
    let kernel = CheckKernel {
        name: "xor",
        run: &run,
        counts: &counts,
    };
    check(Path::new("/"), file.as_ref(), &[kernel])
}

#[test]
fn software_rows_run_and_hardware_rows_say_why_not() {
    let rows = rows();
    let software = ["page-faults", "context-switches", "task-clock"];
    for name in software {
        let row = rows.iter().find(|r| r.event == name).unwrap();
        println!("{row:?}");
        assert!(!matches!(row.verdict, EventVerdict::Wrong(_)), "{row:?}");
    }
    if !core_pmus(Path::new("/")).is_empty() {
        skipped("this host has a PMU; its rows depend on the CPU");
        return;
    }
    let hardware: Vec<&CheckRow> = rows.iter().skip(software.len()).collect();
    assert!(hardware.iter().any(|r| r.event == "fp_flops"));
    for row in hardware {
        let expect = EventVerdict::Skipped("no PMU cpu on this host".to_owned());
        assert_eq!(row.verdict, expect);
    }
}

/// Software events dressed as a PMU take the way of hardware events: page faults
/// stand for floating-point operations.
const DRESSED: &str = r#"
name = "dressed"
title = "Software events as a PMU"
sources = ["include/uapi/linux/perf_event.h"]

[[match]]
architecture = "power"
name = "NONE"

[[pmu]]
names = ["cpu"]
programmable = 4
fixed = 0
formula = []

[[pmu.event]]
name = "cycles"
config = 1
unit = "cycles"

[[pmu.event]]
name = "instructions"
config = 0
unit = "instructions"

[[pmu.event]]
name = "faults"
config = 2
unit = "fp-operations"
"#;

/// A thousandth of the iterations as fresh pages; the memory is not given back,
/// so that the next run gets other pages.
fn touch_pages(iterations: u64) {
    let pages = usize::try_from(iterations / 1000).unwrap_or(0);
    let mut block = vec![0_u8; (pages + 64) * 4096];
    for page in 0..pages {
        block[page * 4096] = 1;
    }
    std::mem::forget(std::hint::black_box(block));
}

/// Huge pages make one fault of hundreds.
fn huge_pages() -> bool {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    std::fs::read_to_string(path).is_ok_and(|text| text.contains("[always]"))
}

fn dressed_verdict(faults_per_page: u64) -> Option<EventVerdict> {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    let pmu = root.path().join("sys/bus/event_source/devices/cpu");
    std::fs::create_dir_all(&pmu).expect("a folder can be made");
    std::fs::write(pmu.join("type"), "1\n").expect("a file can be written");
    let file = parse_event_file("dressed.toml", DRESSED).expect("the file is well formed");
    let counts = |n: u64| ExpectedCounts {
        fp_ops: faults_per_page * (n / 1000),
        ..ExpectedCounts::default()
    };
    let kernel = CheckKernel {
        name: "touch",
        run: &touch_pages,
        counts: &counts,
    };
    let rows = check(root.path(), Some(&file), &[kernel]);
    let row = rows.into_iter().find(|r| r.event == "cpu/faults/")?;
    println!("{row:?}");
    Some(row.verdict)
}

#[test]
fn a_halved_count_is_found() {
    if huge_pages() {
        skipped("every mapping gets huge pages here");
        return;
    }
    let right = dressed_verdict(1);
    if matches!(right, Some(EventVerdict::Skipped(_))) {
        skipped("software events cannot be counted");
        return;
    }
    assert_eq!(right, Some(EventVerdict::Ok));
    let halved = dressed_verdict(2);
    assert!(matches!(halved, Some(EventVerdict::Wrong(what)) if what.contains("half")));
}
