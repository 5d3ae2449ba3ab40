//! SIGKILL at any moment, while threads and processes come and go.

use super::support::{
    Process, apart, astray, busy, files_in, has_two_pus, own_pus, part, spawn, text, wait_for,
};
use crate::skip::skipped;
use consort_linux::enact::recover_stale;
use libtest_mimic::{Failed, Trial};
use nix::sys::signal::Signal;
use nix::unistd::{Uid, chown};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// `nobody`, an ordinary user wherever there is no other.
const NOBODY: u32 = 65_534;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "kills::a_busy_program_is_restored_after_every_sigkill",
            attached,
        ),
        Trial::test("kills::so_it_is_for_an_ordinary_user", as_nobody),
        Trial::test(
            "kills::orphans_of_a_killed_run_are_found_by_their_marker",
            launched,
        ),
        Trial::test("kills::a_sigterm_restores_too", terminated),
    ]
}

/// Number of kills: `CONSORT_KILLS`, else a number that keeps tests quick.
fn kills(usually: u32) -> u32 {
    let wish = std::env::var("CONSORT_KILLS").ok();
    wish.and_then(|n| n.parse().ok()).unwrap_or(usually)
}

/// Moments spread over the first 60 ms of an owner: before its journal, while
/// the guardian starts, and in the midst of moving threads. One kill in four
/// waits for a restricted thread instead, so that there is one on any host.
fn moment(kill: u32) -> Duration {
    Duration::from_micros(u64::from(kill) * 7_919 % 60_000)
}

/// Waits for the guardian to finish; journals whose owner died before it had a
/// guardian are left to the recovery, as at the next start.
fn wait_for_restoration(dir: &Path) -> usize {
    let mut recovered = 0;
    wait_for("the guardian to finish", || {
        recovered += recover_stale(&[dir.to_owned()]).restored.len();
        files_in(dir) == 0
    });
    recovered
}

fn attached() -> Result<(), Failed> {
    if has_two_pus() {
        let dir = tempfile::tempdir()?;
        kill_owners(dir.path(), &busy(), kills(20), |command| command);
    }
    Ok(())
}

fn kill_owners(
    dir: &Path,
    program: &Process,
    count: u32,
    prepare: impl Fn(&mut Command) -> &mut Command,
) {
    let (start, mut slowest) = (Instant::now(), Duration::ZERO);
    let (mut recovered, mut restricted) = (0, 0);
    for kill in 0..count {
        let args = [dir.as_os_str(), &text(program.pid())];
        let mut owner = spawn(prepare(apart(&mut part("owner", &args))));
        if kill % 4 == 3 {
            wait_for("a restricted thread", || !astray(program.pid()).is_empty());
        } else {
            std::thread::sleep(moment(kill));
        }
        restricted += u32::from(!astray(program.pid()).is_empty());
        owner.kill();
        let dead = Instant::now();
        recovered += wait_for_restoration(dir);
        slowest = slowest.max(dead.elapsed());
        assert_eq!(astray(program.pid()), [], "after kill {kill}");
    }
    let took = start.elapsed();
    println!(
        "{count} kills in {took:.1?}, {restricted} with threads restricted just before, slowest \
         restoration {slowest:.0?}, {recovered} journals had no guardian yet"
    );
}

/// A copy of this program that everybody may execute. A process of its own makes it: one that this
/// held open for writing, another test's fork could hold open when it is executed.
fn public_copy(dir: &Path) -> std::path::PathBuf {
    let copy = dir.join("tests");
    let mut install = Command::new("install");
    install
        .args(["-m", "755"])
        .arg(std::env::current_exe().unwrap());
    assert!(install.arg(&copy).status().unwrap().success());
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

fn as_nobody() -> Result<(), Failed> {
    if !Uid::effective().is_root() {
        skipped("not root, so the other tests are those of an ordinary user");
        return Ok(());
    }
    if !has_two_pus() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    let exe = public_copy(dir.path());
    let journals = dir.path().join("journals");
    std::fs::create_dir(&journals)?;
    chown(&journals, Some(NOBODY.into()), Some(NOBODY.into()))?;
    let args = [
        "5",
        "--exact",
        "kills::a_busy_program_is_restored_after_every_sigkill",
    ];
    let output = Command::new(exe)
        .args(&args[1..])
        .env("CONSORT_KILLS", args[0])
        .env("TMPDIR", &journals)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("5 kills"),
        "{said}"
    );
    Ok(())
}

fn launched() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let dir = tempfile::tempdir()?;
    for kill in 0..kills(10).div_ceil(2) {
        let args: [&OsStr; 3] = [
            dir.path().as_os_str(),
            "/proc/self/exe".as_ref(),
            "part:busy".as_ref(),
        ];
        let mut run = spawn(apart(&mut part("run", &args)));
        assert_eq!(run.line(), "ready");
        std::thread::sleep(moment(kill));
        run.kill();
        wait_for_restoration(dir.path());
        assert_eq!(astray(run.pid()), [], "after kill {kill}");
    }
    Ok(())
}

fn terminated() -> Result<(), Failed> {
    if !has_two_pus() {
        return Ok(());
    }
    let (dir, program) = (tempfile::tempdir()?, busy());
    let args = [dir.path().as_os_str(), &text(program.pid())];
    let mut owner = spawn(apart(&mut part("owner", &args)));
    assert_eq!(owner.line(), "ready");
    owner.signal(Signal::SIGTERM);
    assert!(owner.0.wait()?.success());
    assert_eq!(files_in(dir.path()), 0);
    assert_eq!(astray(program.pid()), [], "of {}", own_pus());
    Ok(())
}
