//! Owners: processes that manage others, to be killed.

use super::super::support::{
    all_pus, arg, config, family, first_two, mask, only, own_pus, say, start, tasks,
};
use consort_core::{PuSet, ThreadId};
use consort_linux::enact::{Enactor, Refusal, SignalReader, ThreadState, ThreadWish};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Moves the threads of a program and of its descendants about until a SIGTERM, then restores them.
pub fn owner(args: &[OsString]) -> ExitCode {
    let (dir, pid) = (PathBuf::from(&args[0]), arg(&args[1]));
    let signals = SignalReader::block_and_open().unwrap();
    let mut enactor = start(&dir);
    let leader = consort_linux::enact::identify("/".as_ref(), pid, pid).unwrap();
    enactor.adopt(leader, all_pus()).unwrap();
    for turn in 0u32.. {
        take_in_new(&mut enactor, leader);
        enactor.apply(&random_plan(&enactor, turn));
        if turn == 0 {
            say("ready");
        }
        if signals.next().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let report = enactor.close();
    println!("{report:?}");
    ExitCode::from(u8::from(!report.complete))
}

fn take_in_new(enactor: &mut Enactor, leader: ThreadId) {
    for pid in family(leader.pid) {
        for thread in tasks(pid) {
            // Threads exit between the listing and this at any time.
            let _ = enactor.adopt_child(thread, leader);
        }
    }
}

fn random_plan(enactor: &Enactor, turn: u32) -> Vec<(ThreadId, ThreadWish)> {
    let [a, b] = first_two();
    let wanted = |thread: ThreadId| match (thread.tid / 3 + turn / 2) % 3 {
        0 => ThreadWish::Only(only(a)),
        1 => ThreadWish::Only(only(b)),
        _ => ThreadWish::Unrestricted,
    };
    enactor.threads().map(|t| (t, wanted(t))).collect()
}

/// Nudges the threads of a program about, once its input has ended.
pub fn nudger(args: &[OsString]) -> ExitCode {
    let (dir, pid) = (PathBuf::from(&args[0]), arg(&args[1]));
    let mut enactor = start(&dir);
    let leader = consort_linux::enact::identify("/".as_ref(), pid, pid).unwrap();
    enactor.adopt(leader, all_pus()).unwrap();
    take_in_new(&mut enactor, leader);
    say("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for pu in first_two().into_iter().cycle() {
        let threads: Vec<ThreadId> = enactor.threads().collect();
        for thread in threads {
            enactor.apply(&[(thread, ThreadWish::Nudge(only(pu)))]);
        }
    }
    ExitCode::SUCCESS
}

/// Runs out of space between the first restriction and the second.
pub fn full(args: &[OsString]) -> ExitCode {
    let (dir, pids) = (PathBuf::from(&args[0]), [arg(&args[1]), arg(&args[2])]);
    let threads = pids.map(|pid| consort_linux::enact::identify("/".as_ref(), pid, pid).unwrap());
    let mut enactor = Enactor::start(&config(&dir)).unwrap();
    for thread in threads {
        enactor.adopt(thread, own_pus()).unwrap();
    }
    let one = only(first_two()[0]);
    let wanted = |i: usize| [(threads[i], ThreadWish::Only(one.clone()))];
    assert!(enactor.apply(&wanted(0)).refused.is_empty());
    fill_up(&enactor.journal_path());
    let report = enactor.apply(&wanted(1));
    let refused = matches!(&report.refused[..], [(t, Refusal::NotJournalled(why))]
        if *t == threads[1] && why.contains("journal"));
    assert!(refused, "{report:?}");
    let masks: Vec<PuSet> = pids.map(mask).to_vec();
    assert_eq!(masks, [one, own_pus()]);
    let report = enactor.close();
    assert!(report.complete && report.restored == 1, "{report:?}");
    assert_eq!(pids.map(mask).to_vec(), [own_pus(), own_pus()]);
    ExitCode::SUCCESS
}

/// Runs out of descriptors, has some again, and ends while they are short.
pub fn short(args: &[OsString]) -> ExitCode {
    let (dir, pid) = (PathBuf::from(&args[0]), arg(&args[1]));
    let thread = consort_linux::enact::identify("/".as_ref(), pid, pid).unwrap();
    let mut enactor = start(&dir);
    enactor.adopt(thread, own_pus()).unwrap();
    let [a, b] = first_two();
    let to = |pu| [(thread, ThreadWish::Only(only(pu)))];
    assert_eq!(enactor.apply(&to(a)).written.len(), 1);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let limit = |soft| setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    limit(3);
    let report = enactor.apply(&to(b));
    assert_eq!((report.gone, report.refused.len()), (0, 1), "{report:?}");
    assert_eq!(enactor.state(thread), ThreadState::Restricted);
    limit(soft);
    assert_eq!(enactor.apply(&to(b)).written, [(thread, only(b))]);
    limit(3);
    assert!(!enactor.close().complete);
    ExitCode::SUCCESS
}

/// Lets the file grow by a few bytes more, so that the next record is torn.
fn fill_up(journal: &Path) {
    let limit = journal.metadata().unwrap().len() + 5;
    // SAFETY: ignoring a signal installs no handler that could run code.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, limit, limit).unwrap();
}
