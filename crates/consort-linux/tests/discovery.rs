//! Thread discovery on the live host, without records: the `/proc` scan.

mod skip;

use consort_linux::discovery::{
    ProcReader, ThreadEvent, ThreadTracker, UnmanageableReason, threads_of,
};
use consort_linux::sampling::RecordBatch;
use skip::skipped;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

fn root() -> &'static Path {
    Path::new("/")
}

fn appeared(events: &[ThreadEvent]) -> Vec<String> {
    let name = |event: &ThreadEvent| match event {
        ThreadEvent::Appeared { name, .. } => Some(name.to_string()),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

fn shell(script: &str) -> Child {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    command.stdin(Stdio::piped()).spawn().expect("a shell")
}

#[test]
fn threads_are_found_named_and_missed() {
    let mut discovery = ThreadTracker::new(root(), &[std::process::id()]).unwrap();
    discovery.scan();
    let (done, wait) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let named = thread::Builder::new().name("a) (b c\td".into());
    let thread = named.spawn(move || {
        ready.send(()).unwrap();
        wait.recv().unwrap_err();
    });
    is_ready.recv().unwrap();
    let names = appeared(&discovery.scan());
    assert!(names.contains(&"a) (b c\td".to_owned()), "{names:?}");
    drop(done);
    thread.unwrap().join().unwrap();
    let mut exits = Vec::new();
    // The kernel may list a joined thread for a moment longer.
    while exits.is_empty() {
        exits = discovery.scan();
        exits.retain(|event| matches!(event, ThreadEvent::Exited { .. }));
    }
}

#[test]
fn child_processes_are_found_by_their_parents() {
    let mut child = shell("sleep 1000 & echo $!; read end; kill $!");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let grandchild: u32 = line.trim().parse().unwrap();
    let mut discovery = ThreadTracker::new(root(), &[child.id()]).unwrap();
    discovery.apply(&RecordBatch::default());
    assert!(discovery.id_of(child.id()).is_some());
    assert_eq!(
        discovery.id_of(grandchild).map(|id| id.pid),
        Some(grandchild)
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(threads_of(root(), child.id()).is_err());
}

#[test]
fn kernel_threads_are_let_alone() {
    const KTHREADD: u32 = 2;
    let comm = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if comm.trim() != "kthreadd" {
        skipped("no kernel threads in this PID namespace");
        return;
    }
    let mut discovery = ThreadTracker::new(root(), &[KTHREADD]).unwrap();
    let events = discovery.scan();
    let reason = events.iter().find_map(|event| match event {
        ThreadEvent::Appeared {
            id, unmanageable, ..
        } if id.tid == KTHREADD => *unmanageable,
        _ => None,
    });
    assert_eq!(reason, Some(UnmanageableReason::KernelThread));
}

#[test]
fn consumed_time_grows_and_ends_with_the_thread() {
    let mut child = shell("while :; do :; done");
    let mut discovery = ThreadTracker::new(root(), &[child.id()]).unwrap();
    discovery.scan();
    let id = discovery.id_of(child.id()).unwrap();
    let mut reader = ProcReader::new(root(), 16);
    let first = reader.sample(id).unwrap();
    while reader.sample(id).unwrap().cpu_ns == first.cpu_ns {}
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reader.sample(id).is_err());
    assert_eq!(reader.open_fds(), 0);
}
