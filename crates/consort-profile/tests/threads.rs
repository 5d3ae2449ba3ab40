//! Programs of several threads of which everything is known, and what is measured of them.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use consort_ops::trace::TraceSampling;
use consort_profile::recorder::{OutputDestination, RecordedPart, WindowChoice, record};
use consort_profile::{ProgramFileHeader, ProgramProfile, ProgramProfiler, ThreadRelations};
use consort_sim::program::ProgramSpec;

/// The compiled program, where it can be built and profiled; says so where not.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let folder = PROGRAM.get_or_init(compiled).as_ref();
    let path: Option<&'static Path> = folder.map(tempfile::TempDir::path);
    if path.is_none() {
        println!("skipped: cc or qemu-x86_64 is not installed (.ci/install-profile)");
    }
    path
}

fn compiled() -> Option<tempfile::TempDir> {
    Command::new("qemu-x86_64").arg("--version").output().ok()?;
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/team.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", source, "-o"]);
    let built = compiler.arg(folder.path().join("team")).status().ok()?;
    assert!(built.success(), "cc cannot build {source}");
    Some(folder)
}

/// Measurements of a mode of the program, and its file as the simulator takes it.
fn profiled(mode: [&str; 4], extent: RecordedPart) -> Option<(ProgramProfile, ProgramSpec)> {
    let mut command = vec![program()?.join("team").into_os_string()];
    command.extend(mode.map(Into::into));
    let mut profiler = ProgramProfiler::new(extent, false);
    let ended = record(&command, extent, OutputDestination::Aside, &mut profiler).unwrap();
    assert!(ended.status.success());
    let profile = profiler.finish_profile();
    let reported = ProgramFileHeader {
        name: "team",
        command: "team",
        executed: ended.executed,
        end: None,
    };
    let text = profile.to_program_file(&reported);
    let spec = consort_sim::program::parse("team.toml", &text);
    assert!(spec.is_ok(), "{spec:?}\n{text}");
    Some((profile, spec.unwrap()))
}

fn measured(mode: [&str; 4]) -> Option<(ThreadRelations, ProgramSpec)> {
    let (profile, spec) = profiled(mode, RecordedPart::default())?;
    Some((profile.threads.unwrap(), spec))
}

fn within(share: f64, measured: f64, known: f64) {
    let error = (measured - known).abs() / known;
    println!("{measured} measured, {known} known");
    assert!(error <= share, "{measured} measured, {known} known");
}

/// Two integer threads of a role, and two floating-point ones that do twice the work.
fn check_roles(threads: &ThreadRelations, spec: &ProgramSpec) {
    // Threads are counted as they begin, which is in any order.
    let mut work: Vec<_> = threads.working_roles().collect();
    work.sort_by(|a, b| a.figures.shares().fp.total_cmp(&b.figures.shares().fp));
    assert_eq!(work.len(), 2, "{:?}", threads.roles);
    assert_eq!((work[0].threads.len(), work[1].threads.len()), (2, 2));
    assert!(work[0].figures.shares().fp < 0.01);
    within(0.05, work[1].figures.shares().fp, 0.5);
    let team = spec.threads.as_ref().unwrap();
    assert_eq!((team.default, team.max, team.stages.len()), (4, 4, 2));
    let works: Vec<_> = team.stages.iter().map(|stage| stage.work).collect();
    let ratio = works[1] / works[0];
    within(0.05, f64::max(ratio, 1.0 / ratio), 2.0);
}

#[test]
fn unlike_roles_are_told_apart() {
    let Some((threads, spec)) = measured(["roles", "4000000", "8000000", "0"]) else {
        return;
    };
    assert_eq!(threads.count, 5);
    check_roles(&threads, &spec);
    // Each thread does a quarter of what all do, on average, besides the beginning.
    let length: f64 = spec.phases.iter().map(|p| p.length_ginstr).sum();
    within(0.1, length, 0.006);
}

#[test]
fn roles_are_told_apart_by_samples() {
    let sampling = TraceSampling {
        every: 2_000_000,
        warm: 200_000,
        window: 200_000,
    };
    let extent = RecordedPart {
        windows: WindowChoice::Fixed(sampling),
        ..RecordedPart::default()
    };
    let mode = ["roles", "20000000", "40000000", "0"];
    let Some((profile, spec)) = profiled(mode, extent) else {
        return;
    };
    check_roles(profile.threads.as_ref().unwrap(), &spec);
    // Of 120 million instructions, a window every 2 million.
    within(0.1, profile.windows as f64, 60.0);
    within(0.1, profile.figures.mix.instructions as f64, 12e6);
}

#[test]
fn the_share_of_data_in_common_is_measured() {
    for (own, common) in [("6000", "2000"), ("1500", "6000")] {
        let Some((threads, spec)) = measured(["share", own, common, "0"]) else {
            return;
        };
        let known = |text: &str| text.parse::<f64>().unwrap();
        let (own, common) = (known(own), known(common));
        let share = common / (own + common);
        within(0.05, spec.threads.unwrap().shared_data, share);
        within(0.05, threads.data.by_several as f64, common);
        within(0.05, threads.data.lines as f64, 3.0 * own + common);
        // Common data are only read; stacks and what adds up are written, and more of it where threads wait.
        let data = &threads.data;
        assert!((data.written as f64) < 0.05 * common, "{data:?}");
    }
}

#[test]
fn barriers_and_how_uneven_they_are_is_measured() {
    for (uneven, imbalance) in [("0", 0.0), ("20000", 0.2)] {
        let Some((threads, spec)) = measured(["barriers", "50", "100000", uneven]) else {
            return;
        };
        assert_eq!(threads.barriers.unwrap().opened, 50, "{threads:?}");
        let barrier = spec.threads.unwrap().barrier.unwrap();
        within(0.05, barrier.spacing_minstr, 0.1);
        assert!((barrier.imbalance - imbalance).abs() < 0.02, "{barrier:?}");
    }
}

/// Each of three threads takes the mutex so often, holds it and then leaves it so long.
fn check_locks(mode: &str, times: u64, hold: u64, gap: u64) -> Option<ThreadRelations> {
    let texts = [times, hold, gap].map(|number| number.to_string());
    let (threads, spec) = measured([mode, &texts[0], &texts[1], &texts[2]])?;
    let locks = threads.locks.unwrap();
    within(0.1, locks.taken as f64, 3.0 * times as f64);
    let spec = spec.threads.unwrap().lock.unwrap();
    within(0.1, spec.per_minstr, 1e6 / (hold + gap) as f64);
    within(0.1, spec.hold_instr, hold as f64);
    assert_eq!(spec.count, 1);
    Some(threads)
}

#[test]
fn a_mutex_that_nobody_waits_for_is_measured() {
    let Some(threads) = check_locks("turns", 500, 1000, 4000) else {
        return;
    };
    assert_eq!(threads.locks.unwrap().waits, 0);
}

#[test]
fn a_mutex_that_threads_wait_for_is_measured() {
    let Some(threads) = check_locks("mutex", 2000, 3000, 1000) else {
        return;
    };
    // Three threads that want it for three quarters of their time.
    assert!(threads.locks.unwrap().waits > 0, "{threads:?}");
}

#[test]
fn threads_that_end_early_and_begin_late_are_all_heard() {
    let Some((threads, spec)) = measured(["lives", "3000000", "0", "0"]) else {
        return;
    };
    // The first, one before, and three at a time of which another one begins the third.
    assert_eq!(threads.count, 5, "{threads:?}");
    let at_work: u64 = threads.working_roles().map(|role| role.executed).sum();
    within(0.05, at_work as f64, 4.0 * 3e6);
    assert_eq!(threads.at_once, 3);
    // What the first one does between, and in the beginning.
    within(0.1, threads.serial as f64, 3e6);
    let (serial, each) = (threads.serial as f64, 4e6);
    within(
        0.05,
        spec.threads.unwrap().serial_share,
        serial / (serial + each),
    );
}

#[test]
fn one_thread_has_none_to_share_with() {
    let Some((profile, spec)) = profiled(["work", "2000000", "0", "0"], RecordedPart::default())
    else {
        return;
    };
    assert!(profile.threads.is_none() && spec.threads.is_none());
    let length: f64 = spec.phases.iter().map(|p| p.length_ginstr).sum();
    within(0.1, length, 0.0021);
}
