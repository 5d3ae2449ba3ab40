//! Journals that are torn, full, unwritable, or not alone.

use super::support::{
    apart, config, files_in, first_two, has_two_pus, only, own_pus, part, sleeper, spawn, start,
    text, wait_for,
};
use consort_linux::enact::{
    AdoptError, EnactConfig, EnactError, Enactor, ThreadWish, recover_stale,
};
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("journals::a_torn_journal_restores_what_is_whole", torn),
        Trial::test("journals::without_a_folder_nothing_starts", unwritable),
        Trial::test(
            "journals::a_full_disk_refuses_further_threads_and_loses_none",
            full,
        ),
        Trial::test("journals::two_runs_keep_apart", two_runs),
        Trial::test("journals::a_program_has_one_run_at_a_time", one_run),
    ]
}

fn torn() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, sleeper());
    let mut enactor = start(dir.path());
    enactor.adopt(program.thread(), own_pus())?;
    enactor.apply(&[(program.thread(), ThreadWish::Only(only(first_two()[0])))]);
    let mut journal = std::fs::File::options()
        .append(true)
        .open(enactor.journal_path())?;
    kill(
        Pid::from_raw(enactor.guardian_pid().cast_signed()),
        Signal::SIGKILL,
    )?;
    drop(enactor);
    journal.write_all(b"thread 1 \xff\xfe\0\nthread 1 1 1 open")?;
    drop(journal);
    let dirs = [dir.path().to_owned()];
    wait_for("the lock", || recover_stale(&dirs).restored.len() == 1);
    assert_eq!((program.mask(), files_in(dir.path())), (own_pus(), 0));
    Ok(())
}

fn unwritable() -> Result<(), Failed> {
    // Nobody, not even root, makes folders in /proc.
    let error = Enactor::start(&config(Path::new("/proc/consort"))).unwrap_err();
    assert!(matches!(error, EnactError::Journal(_)));
    let said = error.to_string();
    assert!(
        said.starts_with("no journal, so no thread may be restricted: "),
        "{said}"
    );
    assert!(said.contains("/proc/consort"), "{said}");
    Ok(())
}

fn full() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, programs) = (tempfile::tempdir()?, [sleeper(), sleeper()]);
    let args = [
        dir.path().as_os_str(),
        &text(programs[0].pid()),
        &text(programs[1].pid()),
    ];
    let mut owner = spawn(apart(&mut part("full", &args)));
    assert!(owner.0.wait()?.success());
    Ok(())
}

fn two_runs() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, programs) = (tempfile::tempdir()?, [sleeper(), sleeper()]);
    let mut runs = [start(dir.path()), start(dir.path())];
    let one = only(first_two()[0]);
    for (run, program) in runs.iter_mut().zip(&programs) {
        run.adopt(program.thread(), own_pus())?;
        run.apply(&[(program.thread(), ThreadWish::Only(one.clone()))]);
    }
    let [first, second] = runs;
    drop(first);
    wait_for("the first guardian", || files_in(dir.path()) == 1);
    assert_eq!((programs[0].mask(), programs[1].mask()), (own_pus(), one));
    assert!(second.close().complete);
    assert_eq!((programs[1].mask(), files_in(dir.path())), (own_pus(), 0));
    Ok(())
}

fn one_run() -> Result<(), Failed> {
    let program = sleeper();
    let dirs = [tempfile::tempdir()?, tempfile::tempdir()?];
    let [a, b] = dirs.each_ref().map(|dir| dir.path().to_owned());
    // As a service and a login have them: one folder in common, and another one first.
    let of_login = EnactConfig {
        runtime_dirs: vec![b, a.clone()],
        ..config(&a)
    };
    let (mut first, mut second) = (start(&a), Enactor::start(&of_login)?);
    first.adopt(program.thread(), own_pus())?;
    let error = second.adopt(program.thread(), own_pus()).unwrap_err();
    let own = std::process::id();
    assert!(
        matches!(error, AdoptError::ManagedElsewhere { owner, .. } if owner == own),
        "{error}"
    );
    assert!(first.close().complete);
    second.adopt(program.thread(), own_pus())?;
    assert!(second.close().complete);
    Ok(())
}
