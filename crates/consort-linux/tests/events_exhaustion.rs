//! Promise: without file descriptors the rest goes on, it is said once, and threads get their turn
//! when others are gone. In a file of its own because it lowers the limit of the whole process.

mod skip;

use consort_core::ThreadId;
use consort_linux::counters::{Notice, SoftwareEvents, ThreadGroups};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use skip::skipped;
use std::path::Path;

fn descriptors_in_use() -> u64 {
    let list = std::fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    list.count() as u64
}

#[test]
fn exhaustion_is_told_once_and_passes() {
    let Ok(events) = SoftwareEvents::probe(Path::new("/")) else {
        skipped("software events cannot be counted");
        return;
    };
    let per_thread = events.layout()[0].len();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let room = per_thread as u64 * 2 + 1;
    setrlimit(Resource::RLIMIT_NOFILE, descriptors_in_use() + room, hard).unwrap();

    // The caller may be counted under several identities; the kernel does not mind.
    let id = |n: u64| ThreadId {
        pid: std::process::id(),
        tid: std::process::id(),
        start_ticks: n,
    };
    let mut set = ThreadGroups::new(events.layout(), 100);
    (0..5).for_each(|n| set.enqueue_thread(id(n)));
    let notices = set.attach_queued();
    let attached = set.attached_count();
    assert!((1..=3).contains(&attached), "{attached} fit");
    let waiting = 5 - attached;
    assert_eq!(notices, [Notice::FdsExhausted { attached, waiting }]);
    assert_eq!(set.attach_queued(), [], "told once");
    assert!(set.read(id(0)).is_some(), "the attached are still counted");
    set.forget(id(0));
    set.attach_queued();
    assert_eq!(
        set.attached_count(),
        attached,
        "a waiting thread took the place"
    );
}
