//! Recordings there and back; damaged, unfinished and foreign ones.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use consort_core::trial::Arm;
use consort_core::{
    ControlTurn, EnactmentReport, LeaveReason, Mix, Observation, Placement, Plan, ProgramId, PuId,
    Reading, Sample, Signal, SignalOffers, ThreadId, ThreadObservation, Throttle, Tier, Topology,
};
use consort_data::recording::{
    Recording, RecordingError, RecordingInfo, RecordingWriter, parts_folder,
};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn about() -> RecordingInfo {
    let mut offers = SignalOffers::default();
    offers.add(Signal::CpuTime, Tier::Proc);
    RecordingInfo {
        version: "0".to_owned(),
        started_s: 7,
        command: "x \"y\"".to_owned(),
        policy: "spread".to_owned(),
        interval_ms: 1e3,
        topology: Topology::uniform(2, 2).unwrap(),
        offers,
        machine: "somecore".to_owned(),
        stack: vec!["base".into(), "memory".into()],
    }
}

fn thread(tid: u32, cpu_ns: f64) -> ThreadObservation {
    let mut sample = Sample::default();
    sample.set(
        Signal::CpuTime,
        Reading::fully_counted(cpu_ns, Tier::Proc, 1_000_000_000),
    );
    sample.mix = Some(Mix {
        fp: 0.25,
        ..Mix::default()
    });
    ThreadObservation {
        id: ThreadId {
            pid: 10,
            tid,
            start_ticks: 99,
        },
        name: Arc::from(format!("t\n{tid}")),
        original: Arc::new("0-3".parse().unwrap()),
        managed: true,
        last_pu: Some(PuId(tid % 4)),
        sample,
    }
}

fn turn(number: u64, threads: u32) -> ControlTurn {
    let threads: Vec<_> = (0..threads)
        .map(|t| thread(20 + t, 1e6 * f64::from(t)))
        .collect();
    let mut plan = Plan {
        generation: number,
        quantum_ns: number.is_multiple_of(2).then_some(5),
        ..Plan::default()
    };
    for thread in threads.iter().skip(1) {
        let pus = Placement::Restricted("2-3".parse().unwrap());
        plan.placements.insert(thread.id, pus);
    }
    plan.paused.insert(ProgramId(10));
    let throttle = Throttle {
        group: "/box".into(),
        cpus: 0.5,
        share: 0.25,
    };
    let first = threads.first().map(|thread| thread.id);
    ControlTurn {
        observation: Observation {
            time_ns: number * 1_000_000_000,
            interval_ns: 1_000_000_000,
            throttled: first.map(|id| (id, throttle.clone())).into_iter().collect(),
            left: first
                .map(|id| (id, LeaveReason::Throttled(throttle)))
                .into_iter()
                .collect(),
            idle_pus: Some(1.5),
            threads,
            ..Observation::default()
        },
        plan,
        changed: Vec::new(),
        findings: Vec::new(),
        enacted: EnactmentReport::default(),
        arm: Arm::Managed,
    }
}

/// Records so many quanta with so many threads each.
fn recorded(path: &Path, quanta: &[u32]) {
    let mut recorder = RecordingWriter::create(path, &about(), false).unwrap();
    for (number, threads) in quanta.iter().enumerate() {
        recorder.add(&turn(number as u64 + 1, *threads)).unwrap();
    }
    assert_eq!(recorder.finish().unwrap().is_some(), !quanta.is_empty());
}

fn check(path: &Path, quanta: &[u32]) {
    let recording = Recording::open(path).unwrap();
    assert_eq!(recording.info().topology, about().topology);
    assert_eq!(recording.info().all_offers().machine(), "somecore");
    let read: Vec<_> = recording.quanta().map(Result::unwrap).collect();
    assert_eq!(read.len(), quanta.len());
    for (number, (quantum, threads)) in read.iter().zip(quanta).enumerate() {
        let turn = turn(number as u64 + 1, *threads);
        assert_eq!(quantum.observation, turn.observation);
        assert_eq!(quantum.plan.placements, turn.plan.placements);
        assert_eq!(quantum.plan.quantum_ns, turn.plan.quantum_ns);
        assert_eq!(quantum.plan.paused, turn.plan.paused);
    }
}

#[test]
fn recording_of_several_parts_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let quanta: Vec<u32> = (0..23).map(|n| n % 5).collect();
    recorded(&path, &quanta);
    check(&path, &quanta);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn unfinished_recording_is_read_to_last_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    let mut recorder = RecordingWriter::create(&path, &about(), false).unwrap();
    for number in 1..=13 {
        recorder.add(&turn(number, 2)).unwrap();
    }
    std::mem::forget(recorder);
    // Parts span five seconds from their first quantum on.
    check(&parts_folder(&path), &[2; 12]);
    let again = RecordingWriter::create(&path, &about(), false).unwrap_err();
    assert!(matches!(again, RecordingError::Left { .. }), "{again}");
}

#[test]
fn nothing_to_record_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    recorded(&folder.path().join("r.parquet"), &[]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn other_files_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let error = Recording::open(path).err().unwrap().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let absent = folder.path().join("absent");
    assert!(refused(&absent).contains("cannot read"));
    let text = folder.path().join("text");
    std::fs::write(&text, "no parquet").unwrap();
    assert!(refused(&text).contains("text"));
    assert!(refused(folder.path()).contains("there are no parts"));
    assert!(refused(Path::new("/dev/null")).contains("no ordinary file"));
}

#[test]
fn another_version_of_the_schema_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    recorded(&path, &[1]);
    let mut bytes = std::fs::read(&path).unwrap();
    let key = b"consort.schema";
    let at = bytes.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    let digit = at + bytes[at..].iter().position(|&b| b == b'1').unwrap();
    bytes[digit] = b'7';
    std::fs::write(&path, bytes).unwrap();
    let error = Recording::open(&path).err().unwrap().to_string();
    assert!(
        error.contains("has version 7") && error.contains("reads version 1"),
        "{error}"
    );
}

/// Bytes of a small recording.
fn bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    recorded(&path, &[2, 0, 3]);
    std::fs::read(path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn damage_is_an_error_or_harmless(
        cut in 0.0..1.0f64,
        flips in prop::collection::vec((0.0..1.0f64, any::<u8>()), 0..4),
    ) {
        let mut bytes = bytes();
        for (at, with) in flips {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] ^= with;
        }
        if cut < 0.3 {
            bytes.truncate((cut * bytes.len() as f64) as usize);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.parquet");
        std::fs::write(&path, bytes).unwrap();
        if let Ok(recording) = Recording::open(&path) {
            let _ = recording.quanta().take(100).count();
        }
    }
}

/// Error of reading a recording to its end; none where it can be read.
fn error_of(bytes: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.parquet");
    std::fs::write(&path, bytes).unwrap();
    let recording = match Recording::open(&path) {
        Ok(recording) => recording,
        Err(error) => return Some(error.to_string()),
    };
    let mut quanta = recording.quanta();
    quanta.find_map(|quantum| quantum.err().map(|error| error.to_string()))
}

#[test]
fn damaged_pages_are_an_error() {
    let whole = bytes();
    let flipped = (0..1_000).filter_map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        error_of(&bytes)
    });
    let held = flipped.filter(|error| error.ends_with("its pages are damaged"));
    assert!(held.count() > 0, "none of them would have been a panic");
}
