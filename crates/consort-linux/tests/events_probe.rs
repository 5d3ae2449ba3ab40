//! Promise: the probe tells for every tier whether it is there and why not, and
//! the self-test runs where it can and says why where it cannot.

use consort_core::{Signal, Tier};
use consort_linux::counters::Verdict;
use consort_linux::counters::{
    CheckKernel, CheckRow, ExpectedCounts, ProbeInput, TierStatus, check, core_pmus, probe,
};
use consort_linux::events::{Identity, event_file_for};
use std::path::Path;

fn zen4() -> Identity {
    Identity::X86 {
        vendor: "AuthenticAMD".to_owned(),
        family: 0x19,
        model: 0x11,
    }
}

fn probed(root: &Path) -> Vec<TierStatus> {
    let identity = zen4();
    probe(ProbeInput {
        root,
        identity: &identity,
        hypervisor: Some("KVM"),
    })
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
    let tiers = probed(root.path());
    let expect = "no hardware PMU on this host (KVM guest); perf_event_paranoid=2";
    assert_eq!(tiers[0].reason, expect);
    assert!(!tiers[3].available, "no /proc/self below this root");
}

#[test]
fn an_unknown_cpu_says_so() {
    let root = tempfile::tempdir().unwrap();
    let pmu = root.path().join("sys/bus/event_source/devices/cpu");
    std::fs::create_dir_all(&pmu).unwrap();
    std::fs::write(pmu.join("type"), "4\n").unwrap();
    let tiers = probe(ProbeInput {
        root: root.path(),
        identity: &Identity::Unknown,
        hypervisor: None,
    });
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
        assert!(!matches!(row.verdict, Verdict::Wrong(_)), "{row:?}");
    }
    if !core_pmus(Path::new("/")).is_empty() {
        println!("skipped: this host has a PMU; its rows depend on the CPU");
        return;
    }
    let hardware: Vec<&CheckRow> = rows.iter().skip(software.len()).collect();
    assert!(hardware.iter().any(|r| r.event == "fp_flops"));
    for row in hardware {
        let expect = Verdict::Skipped("no PMU cpu on this host".to_owned());
        assert_eq!(row.verdict, expect);
    }
}
