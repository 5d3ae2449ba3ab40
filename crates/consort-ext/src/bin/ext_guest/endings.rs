//! Ends of the scheduler: after each of them everything runs as without it.

use crate::load::LoadProcess;
use crate::placing::{cores_of, manage};
use crate::{GuestResult, LOOK, QUANTUM, ensure, start, tasks};
use consort_core::{ThreadId, Topology};
use consort_ext::{ExtPlan, Scheduler, probe};
use nix::libc;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Asserts that no thread is governed, every one runs, and every mask is whole.
pub(crate) fn assert_ungoverned(topology: &Topology, threads: &[ThreadId]) -> GuestResult<()> {
    let all = topology.pus().to_string();
    for &thread in threads {
        ensure(!tasks::is_governed(thread)?, || {
            format!("{thread} is still governed")
        })?;
        let mask = tasks::mask(thread)?;
        ensure(mask == all, || {
            format!("{thread} may run on {mask}, not {all}")
        })?;
        wait_for("running on", || {
            let before = tasks::run_ticks(thread)?;
            std::thread::sleep(2 * LOOK);
            Ok(tasks::run_ticks(thread)? > before)
        })?;
    }
    println!(
        "{} threads run on, none governed, masks {all}",
        threads.len()
    );
    Ok(())
}

pub(crate) fn wait_for(
    what: &str,
    mut holds: impl FnMut() -> GuestResult<bool>,
) -> GuestResult<()> {
    let started = Instant::now();
    while !holds()? {
        ensure(started.elapsed() < PATIENCE, || {
            format!("waited in vain for {what}")
        })?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Kills the owner while its plan holds every thread on one core.
pub(crate) fn kill_owner(topology: &Topology) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(4)?;
    let size = [topology.cores().len(), topology.smt()].map(|number| number.to_string());
    let mut owner = Command::new(std::env::current_exe()?)
        .args(size)
        .arg("owner")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut words = owner.stdin.take().ok_or("no stdin")?;
    writeln!(words, "{}", load.threads[0].pid)?;
    let mut said = String::new();
    BufReader::new(owner.stdout.take().ok_or("no stdout")?).read_line(&mut said)?;
    ensure(said == "holding\n", || format!("the owner said '{said}'"))?;
    let other = probe("/".as_ref())
        .check_ready()
        .map_or_else(|o| o.to_string(), |()| "ready".into());
    ensure(other.contains("'consort' is enabled"), || other.clone())?;
    owner.kill()?;
    owner.wait()?;
    wait_for("the scheduler's end", || {
        Ok(tasks::kernel_state()? == "disabled")
    })?;
    assert_ungoverned(topology, &load.threads)
}

/// Holds a program's threads until it is killed. The first line of stdin is the process id.
pub(crate) fn own_forever(topology: &Topology) -> GuestResult<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let mut scheduler = start(topology)?;
    hold(
        &mut scheduler,
        topology,
        &tasks::wait_for_threads(line.trim().parse()?, 4)?,
    )?;
    println!("holding");
    loop {
        scheduler.send_heartbeat();
        std::thread::sleep(LOOK);
    }
}

fn hold(scheduler: &mut Scheduler, topology: &Topology, threads: &[ThreadId]) -> GuestResult<()> {
    manage(scheduler, threads)?;
    let core = cores_of(topology).remove(0);
    scheduler.apply(&ExtPlan {
        places: threads
            .iter()
            .map(|&thread| (thread, core.clone()))
            .collect(),
        ..ExtPlan::unrestricted(QUANTUM)
    })?;
    Ok(())
}

/// Takes threads back one by one, then drops the scheduler; a new one can follow.
pub(crate) fn drop_scheduler(topology: &Topology) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(4)?;
    for _ in 0..2 {
        let mut scheduler = start(topology)?;
        hold(&mut scheduler, topology, &load.threads)?;
        scheduler.release(load.threads[0])?;
        assert_ungoverned(topology, &load.threads[..1])?;
        drop(scheduler);
        wait_for("the scheduler's end", || {
            Ok(tasks::kernel_state()? == "disabled")
        })?;
        assert_ungoverned(topology, &load.threads)?;
    }
    Ok(())
}

/// Asserts that refusals name the obstacle: a policy that was chosen on purpose, a machine too
/// large, no privilege.
pub(crate) fn provoke_refusals(topology: &Topology) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(1)?;
    let thread = load.threads[0];
    make_batch(thread)?;
    let refused = words(start(topology)?.manage(thread).map_err(Into::into));
    ensure(refused.contains("policy 3"), || {
        format!("manage said '{refused}'")
    })?;
    let large = Topology::uniform(600, 2)?;
    let refused = words(start(&large).map(drop));
    ensure(refused.contains("at most 1024"), || {
        format!("start said '{refused}'")
    })?;
    drop(load);
    nix::unistd::setuid(1000.into())?;
    let refused = words(start(topology).map(drop));
    println!("{refused}");
    ensure(refused.contains("needs root"), || {
        format!("start said '{refused}'")
    })
}

fn words(result: GuestResult<()>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "well done".to_owned())
}

fn make_batch(thread: ThreadId) -> GuestResult<()> {
    let none = libc::sched_param { sched_priority: 0 };
    let tid = i32::try_from(thread.tid)?;
    // SAFETY: the kernel reads `none`, which lives until the call returns.
    let result = unsafe { libc::sched_setscheduler(tid, libc::SCHED_BATCH, &raw const none) };
    ensure(result == 0, || std::io::Error::last_os_error().to_string())
}
