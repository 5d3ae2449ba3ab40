//! An owner that pauses a program and resumes it without end, to be killed.

use super::super::pausing::kind_named;
use super::super::support::{all_pus, arg, say, start};
use consort_core::ProgramId;
use consort_linux::pause::Pauser;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Pauses the program of the second argument by the mechanism of the third, in turn with letting
/// it run.
pub fn pauser(args: &[OsString]) -> ExitCode {
    let (dir, pid) = (PathBuf::from(&args[0]), arg(&args[1]));
    let kind = kind_named(args[2].to_str().unwrap());
    let mut enactor = start(&dir);
    let leader = consort_linux::enact::identify("/".as_ref(), pid, pid).unwrap();
    enactor.adopt(leader, all_pus()).unwrap();
    let mut pauser = Pauser::with_kinds("/".as_ref(), vec![kind]);
    for turn in 0u64.. {
        let pids = BTreeSet::from([pid]);
        pauser.pause(&mut enactor, ProgramId(pid), &pids).unwrap();
        if turn == 0 {
            say("ready");
        }
        pauser.resume(&mut enactor, ProgramId(pid)).unwrap();
    }
    ExitCode::SUCCESS
}
