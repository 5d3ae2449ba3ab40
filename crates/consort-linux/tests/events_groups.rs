//! Promise: groups count what threads do, for real, with the events that every
//! kernel has; what may not be counted is not offered.

mod skip;

use consort_core::{Sample, Signal, ThreadId};
use consort_linux::counters::{Notice, SoftwareEvents, ThreadGroups};
use consort_linux::perf::{CounterGroup, PerfError, PerfEventSpec, PerfTarget, paranoid_level};
use skip::skipped;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

const TASK_CLOCK: u32 = 1;
const PAGE_FAULTS: u32 = 2;
const SELF: PerfTarget = PerfTarget::Thread { tid: 0 };

fn busy() {
    let sum = (0_u64..5_000_000).fold(0, |sum, i| std::hint::black_box(sum ^ i));
    std::hint::black_box(sum);
}

fn software() -> Option<SoftwareEvents> {
    match SoftwareEvents::probe(Path::new("/")) {
        Ok(events) => Some(events),
        Err(error) => {
            skipped(error);
            None
        }
    }
}

#[test]
fn reads_are_deltas_and_times_are_whole() {
    let specs = [TASK_CLOCK, PAGE_FAULTS].map(|c| PerfEventSpec::software(c, true));
    let mut group = match CounterGroup::open(&specs, SELF) {
        Ok(group) => group,
        Err(error) => return skipped(error),
    };
    group.read().unwrap();
    busy();
    let first = group.read().unwrap();
    assert!(first.counts[0] > 0, "the task clock runs");
    assert!(first.enabled_ns > 0);
    assert_eq!(
        first.enabled_ns, first.running_ns,
        "software events are never multiplexed"
    );
    let second = group.read().unwrap();
    assert!(
        second.counts[0] < first.counts[0],
        "only what came since: {second:?}"
    );
    assert_eq!(group.fd_count(), 2);
}

#[test]
fn refusals_are_told_apart() {
    let spec = PerfEventSpec::software(TASK_CLOCK, true);
    let gone = CounterGroup::open(&[spec], PerfTarget::Thread { tid: 0x3fff_fff0 });
    assert!(
        matches!(gone, Err(PerfError::Gone | PerfError::NotPermitted)),
        "{gone:?}"
    );
    let nothing = PerfEventSpec {
        kind: 0x7fff_0000,
        ..spec
    };
    let none = CounterGroup::open(&[nothing], SELF);
    assert!(
        matches!(none, Err(PerfError::NoSuchEvent | PerfError::NotPermitted)),
        "{none:?}"
    );
}

fn this_thread(tid: u32) -> ThreadId {
    ThreadId {
        pid: std::process::id(),
        tid,
        start_ticks: 0,
    }
}

/// Starts a thread that works when told to and ends when the sender is dropped.
fn worker() -> (
    ThreadId,
    mpsc::Sender<()>,
    mpsc::Receiver<()>,
    std::thread::JoinHandle<()>,
) {
    let (tell, reported) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel::<()>();
    let (tid, has_tid) = mpsc::channel();
    let handle = std::thread::spawn(move || {
        let me = nix::unistd::gettid().as_raw();
        tid.send(u32::try_from(me).unwrap_or(0)).ok();
        while reported.recv().is_ok() {
            busy();
            done.send(()).ok();
        }
    });
    let tid = has_tid.recv().expect("the thread has started");
    (this_thread(tid), tell, is_done, handle)
}

#[test]
fn each_thread_has_its_own_counts_and_the_last_ones_survive_it() {
    let Some(events) = software() else { return };
    let mut set = ThreadGroups::new(events.layout(), 100);
    let (one, tell, done, handle) = worker();
    let (idle, _keep, _unused, _other) = worker();
    set.enqueue_thread(one);
    set.enqueue_thread(idle);
    assert_eq!(set.attach_queued(), []);
    assert_eq!((set.attached_count(), set.waiting_count()), (2, 0));
    tell.send(()).unwrap();
    done.recv().unwrap();
    let mut samples = [one, idle].map(|id| {
        let mut sample = Sample::default();
        events.fill(&mut sample, &set.read(id).unwrap()[0]);
        sample
    });
    let (worked, waited) = (samples[0].cpu_time_ns(), samples[1].cpu_time_ns());
    assert!(
        worked > 10.0 * waited,
        "{worked} ns of work, {waited} ns of waiting"
    );
    tell.send(()).unwrap();
    drop(tell);
    handle.join().unwrap();
    events.fill(&mut samples[0], &set.read(one).unwrap()[0]);
    assert!(
        samples[0].cpu_time_ns() > 0.0,
        "what it did before it exited"
    );
    set.forget(one);
    assert!(set.read(one).is_none());
}

#[test]
fn attaching_keeps_to_the_budget() {
    let Some(events) = software() else { return };
    let per_thread = events.layout()[0].len();
    let mut set = ThreadGroups::new(events.layout(), 2 * per_thread);
    let workers: Vec<_> = (0..5).map(|_| worker()).collect();
    workers.iter().for_each(|w| set.enqueue_thread(w.0));
    let attached: Vec<usize> = (0..4)
        .map(|_| {
            set.attach_queued();
            set.attached_count()
        })
        .collect();
    assert_eq!(attached, [2, 4, 5, 5]);
}

#[test]
fn a_refusal_is_told_once() {
    let nothing = PerfEventSpec {
        kind: 0x7fff_0000,
        ..PerfEventSpec::software(0, true)
    };
    let mut set = ThreadGroups::new(vec![vec![nothing]], 100);
    let workers: Vec<_> = (0..3).map(|_| worker()).collect();
    workers.iter().for_each(|w| set.enqueue_thread(w.0));
    let notices = set.attach_queued();
    assert!(matches!(notices[..], [Notice::Refused(_)]), "{notices:?}");
    assert_eq!((set.attached_count(), set.waiting_count()), (0, 0));
}

/// Runs one test of this file again, differently, and shows what it said.
fn again(mut command: Command, test: &str, mark: &str) {
    command
        .args(["--exact", test, "--nocapture"])
        .env(mark, "1");
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success(),
                "{text}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            println!("{text}");
        }
        Err(error) => skipped(format!("cannot start the test again: {error}")),
    }
}

fn own_path() -> std::path::PathBuf {
    std::env::current_exe().expect("a running program has a path")
}

/// Checks `perf_event_paranoid` 2: an ordinary user may count user mode only, so events that would
/// be 0 for ever must not be offered.
#[test]
fn an_ordinary_user_gets_what_can_be_counted() {
    if std::env::var_os("CONSORT_TEST_AS_USER").is_some() {
        return check_offer();
    }
    check_offer();
    if !nix::unistd::geteuid().is_root() {
        return skipped("already an ordinary user");
    }
    let mut command = Command::new(own_path());
    command.uid(65534).gid(65534);
    again(
        command,
        "an_ordinary_user_gets_what_can_be_counted",
        "CONSORT_TEST_AS_USER",
    );
}

fn check_offer() {
    let Some(mut events) = software() else { return };
    let offered = events.signals();
    let plain = events.layout()[0].len();
    let refused = events.count_calls();
    assert!(!events.has_uncounted_calls());
    assert_eq!(refused, Vec::<String>::new(), "what is offered is counted");
    assert_eq!(events.signals(), offered, "counted or not");
    let calls = [Signal::FutexReturns, Signal::BlockingReturns];
    let calls = offered.iter().filter(|s| calls.contains(s)).count();
    assert_eq!(events.layout()[0].len(), plain + calls, "only on request");
    let mut group = events.open(SELF).expect("what is offered can be opened");
    group.read().expect("an open group can be read");
    busy();
    std::thread::sleep(Duration::from_millis(1));
    let mut sample = Sample::default();
    events.fill(
        &mut sample,
        &group.read().expect("an open group can be read"),
    );
    assert!(sample.cpu_time_ns() > 0.0);
    let switches = sample.get(Signal::ContextSwitches);
    assert!(
        switches.is_none_or(|n| n >= 1.0),
        "offered, and a sleep is a switch: {switches:?}"
    );
    let open_to_all = nix::unistd::geteuid().is_root()
        || paranoid_level(Path::new("/")).is_some_and(|level| level < 2);
    assert_eq!(switches.is_some(), open_to_all);
    assert_eq!(
        events.notes.is_empty(),
        sample.get(Signal::FutexReturns).is_some()
    );
}

/// Counts futex returns with tracefs mounted in a mount namespace of its own, so that the host is
/// left as it is.
#[test]
fn futex_returns_are_counted() {
    if std::env::var_os("CONSORT_TEST_WITH_TRACEFS").is_some() {
        return count_futex_returns();
    }
    if !nix::unistd::geteuid().is_root() {
        return skipped("mounting tracefs needs root");
    }
    let script = "mount -t tracefs nodev /sys/kernel/tracing || mount -t tracefs nodev \
                  /sys/kernel/debug/tracing; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(own_path());
    again(
        command,
        "futex_returns_are_counted",
        "CONSORT_TEST_WITH_TRACEFS",
    );
}

fn count_futex_returns() {
    let Some(mut events) = software() else { return };
    if !events.signals().contains(&Signal::FutexReturns) {
        return skipped(events.notes.join("; "));
    }
    events.count_calls();
    let mut group = events.open(SELF).expect("what is offered can be opened");
    group.read().expect("an open group can be read");
    let (never, wait) = mpsc::channel::<()>();
    for _ in 0..20 {
        wait.recv_timeout(Duration::from_micros(100)).ok();
    }
    drop(never);
    let mut sample = Sample::default();
    let delta = group.read().expect("an open group can be read");
    let sleeps = events.fill(&mut sample, &delta).unwrap_or(0);
    let returns = sample.get(Signal::FutexReturns).unwrap_or(0.0);
    assert!(returns >= 10.0, "twenty waits with a time limit: {returns}");
    assert!((10..=25).contains(&sleeps), "as many sleeps: {sleeps}");
    let sum = (0..3_000_000_u64).fold(0, |sum: u64, n| std::hint::black_box(sum ^ n));
    let delta = group.read().expect("an open group can be read");
    let sleeps = events.fill(&mut sample, &delta);
    assert_eq!(
        sleeps,
        Some(0),
        "work is no sleep, nor is preemption ({sum})"
    );
}
