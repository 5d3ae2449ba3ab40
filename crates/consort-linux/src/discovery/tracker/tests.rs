use super::*;
use crate::proc::process;
use std::fs;
use tempfile::TempDir;

fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("proc/self")).unwrap();
    let status = "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n";
    fs::write(dir.path().join("proc/self/status"), status).unwrap();
    process(dir.path(), 10, 1, &[(10, "main", 1)]);
    dir
}

fn task(tid: u32, time_ns: u64) -> TaskRecord {
    TaskRecord {
        pid: 10,
        tid,
        parent_pid: 10,
        parent_tid: 10,
        time_ns,
    }
}

fn batch(records: Vec<PerfRecord>) -> RecordBatch {
    RecordBatch {
        records,
        ..RecordBatch::default()
    }
}

fn appeared(events: &[ThreadEvent]) -> Vec<(u32, &str)> {
    let pick = |event: &ThreadEvent| match event {
        ThreadEvent::Appeared { id, .. } => Some(id.tid),
        _ => None,
    };
    let name = |event: &ThreadEvent| match event {
        ThreadEvent::Appeared { name, .. } => Some(Box::leak(name.to_string().into_boxed_str())),
        _ => None,
    };
    let pair = |e| Some((pick(e)?, &*name(e)?));
    events.iter().filter_map(pair).collect()
}

fn exited(events: &[ThreadEvent]) -> Vec<u32> {
    let pick = |event: &ThreadEvent| match event {
        ThreadEvent::Exited { id } => Some(id.tid),
        _ => None,
    };
    events.iter().filter_map(pick).collect()
}

#[test]
fn a_started_thread_appears_and_exits() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    assert_eq!(
        appeared(&discovery.apply(&RecordBatch::default())),
        [(10, "main")]
    );
    process(dir.path(), 10, 1, &[(11, "odd) name", 4)]);
    let events = discovery.apply(&batch(vec![PerfRecord::Fork(task(11, 5))]));
    assert_eq!(appeared(&events), [(11, "odd) name")]);
    assert_eq!(discovery.id_of(11).unwrap().start_ticks, 4);
    let events = discovery.apply(&batch(vec![PerfRecord::Exit(task(11, 6))]));
    assert_eq!(exited(&events), [11]);
    assert_eq!(discovery.short_lived_count(), 0);
}

#[test]
fn short_lives_are_counted_and_not_listed() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    discovery.apply(&RecordBatch::default());
    let both = vec![PerfRecord::Fork(task(11, 5)), PerfRecord::Exit(task(11, 6))];
    let end_first = vec![PerfRecord::Exit(task(12, 9))];
    let then_begin = vec![PerfRecord::Fork(task(12, 8))];
    let vanished = vec![PerfRecord::Fork(task(13, 10))];
    for records in [both, end_first, then_begin, vanished] {
        assert_eq!(discovery.apply(&batch(records)), []);
    }
    assert_eq!(discovery.short_lived_count(), 3);
}

#[test]
fn lost_records_are_made_good_by_a_scan() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    discovery.apply(&RecordBatch::default());
    process(dir.path(), 10, 1, &[(11, "a", 4)]);
    process(dir.path(), 20, 10, &[(20, "child", 7)]);
    let lossy = RecordBatch {
        lost: 1,
        ..RecordBatch::default()
    };
    assert_eq!(
        appeared(&discovery.apply(&lossy)),
        [(11, "a"), (20, "child")]
    );
    fs::remove_dir_all(dir.path().join("proc/10/task/11")).unwrap();
    assert_eq!(exited(&discovery.apply(&lossy)), [11]);
}

#[test]
fn a_scan_that_is_ahead_of_the_records_counts_nobody_twice() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    process(dir.path(), 10, 1, &[(11, "a", 4)]);
    discovery.apply(&RecordBatch::default());
    let late = vec![PerfRecord::Fork(task(11, 5)), PerfRecord::Exit(task(11, 6))];
    let events = discovery.apply(&batch(late));
    assert_eq!((exited(&events), appeared(&events)), (vec![11], vec![]));
    assert_eq!(discovery.short_lived_count(), 0);
}

#[test]
fn a_reused_tid_is_another_thread() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    process(dir.path(), 10, 1, &[(11, "a", 4)]);
    discovery.apply(&RecordBatch::default());
    process(dir.path(), 10, 1, &[(11, "b", 9)]);
    let events = discovery.apply(&batch(vec![PerfRecord::Fork(task(11, 5))]));
    assert_eq!(
        (exited(&events), appeared(&events)),
        (vec![11], vec![(11, "b")])
    );
    assert_eq!(discovery.id_of(11).unwrap().start_ticks, 9);
}

#[test]
fn exec_renames_the_leader_and_ends_the_others() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    process(dir.path(), 10, 1, &[(11, "a", 4)]);
    discovery.apply(&RecordBatch::default());
    let exec = PerfRecord::Comm {
        pid: 10,
        tid: 10,
        exec: true,
        name: "new".into(),
        time_ns: 5,
    };
    let id = discovery.id_of(10).unwrap();
    let renamed = ThreadEvent::Renamed {
        id,
        name: "new".into(),
    };
    let events = discovery.apply(&batch(vec![exec]));
    assert_eq!(exited(&events), [11]);
    assert!(events.contains(&renamed));
}

#[test]
fn a_fork_bomb_is_looked_up_in_portions() {
    let dir = tree();
    let mut discovery = ThreadTracker::new(dir.path(), &[10]).unwrap();
    discovery.apply(&RecordBatch::default());
    let names: Vec<u32> = (100..100 + LOOK_UPS_PER_ROUND as u32 + 5).collect();
    for &tid in &names {
        process(dir.path(), 10, 1, &[(tid, "x", 1)]);
    }
    let forks = names
        .iter()
        .map(|&tid| PerfRecord::Fork(task(tid, 1)))
        .collect();
    assert_eq!(discovery.apply(&batch(forks)).len(), LOOK_UPS_PER_ROUND);
    assert_eq!(discovery.apply(&RecordBatch::default()).len(), 5);
}
