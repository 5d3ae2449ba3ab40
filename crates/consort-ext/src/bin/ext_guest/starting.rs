//! Children of governed programs, the masks that programs see, and the cost of being governed.

use crate::load::LoadProcess;
use crate::placing::{cores_of, manage};
use crate::{GuestResult, LOOK, QUANTUM, ensure, tasks};
use consort_core::{ThreadId, Topology};
use consort_ext::{ExtPlan, Scheduler};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

const CHILDREN: usize = 200;
const LOOKS: usize = 10_000;
const ROUNDS: usize = 1000;
const TURNS: usize = 5;

/// Shell script that waits for a line, then starts children that print whether they are governed
/// and which CPUs they see.
const FORKS: &str = "read go; i=0; while [ $i -lt $0 ]; do \
    echo $(nproc) $(grep ext.enabled /proc/self/sched); i=$((i+1)); done";

/// Asserts that every one of hundreds of children is governed from its start and sees all CPUs.
pub(crate) fn check_forks(scheduler: &mut Scheduler, topology: &Topology) -> GuestResult<()> {
    let mut shell = Command::new("/bin/sh")
        .args(["-c", FORKS, &CHILDREN.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let threads = tasks::wait_for_threads(shell.id(), 1)?;
    manage(scheduler, &threads)?;
    scheduler.apply(&plan_on_one_core(topology, &threads))?;
    shell.stdin.take().ok_or("no stdin")?.write_all(b"go\n")?;
    let said = run_with_heartbeats(|| output(&mut shell), || scheduler.send_heartbeat())?;
    let pus = topology.pus().len().to_string();
    let good = |line: &&str| {
        let mut words = line.split_whitespace();
        words.next() == Some(pus.as_str()) && words.last() == Some("1")
    };
    let governed = said.lines().filter(good).count();
    println!("children {governed} of {CHILDREN} governed and with all CPUs in sight");
    ensure(governed == CHILDREN, || said.clone())
}

fn plan_on_one_core(topology: &Topology, threads: &[ThreadId]) -> ExtPlan {
    let core = cores_of(topology).remove(0);
    ExtPlan {
        places: threads
            .iter()
            .map(|&thread| (thread, core.clone()))
            .collect(),
        ..ExtPlan::unrestricted(QUANTUM)
    }
}

fn output(child: &mut Child) -> std::io::Result<String> {
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut said)?;
    }
    child.wait()?;
    Ok(said)
}

fn run_with_heartbeats<T: Send>(
    work: impl FnOnce() -> std::io::Result<T> + Send,
    mut beat: impl FnMut(),
) -> GuestResult<T> {
    std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            beat();
            std::thread::sleep(LOOK);
        }
        working
            .join()
            .map_err(|_| "the work panicked")?
            .map_err(Into::into)
    })
}

/// Asserts that a program that reads its own mask ten thousand times while plans move it never sees
/// a narrower one.
pub(crate) fn check_looks(scheduler: &mut Scheduler, topology: &Topology) -> GuestResult<()> {
    let load = LoadProcess::start(&["looks", &LOOKS.to_string()], 1)?;
    let thread = load.threads[0];
    scheduler.manage(thread)?;
    let cores = cores_of(topology);
    let mut round = 0;
    let beat = || {
        let places = [(thread, cores[round % cores.len()].clone())].into();
        round += 1;
        let plan = ExtPlan {
            places,
            ..ExtPlan::unrestricted(QUANTUM)
        };
        // A plan that cannot be applied is not counted.
        scheduler.apply(&plan).is_ok()
    };
    let (said, plans) = wait_under_plans(load, beat)?;
    println!("{}, under {plans} plans", said.trim());
    ensure(said.starts_with("0 of "), || said.clone())?;
    ensure(plans > 0, || "no plan was applied".to_owned())
}

fn wait_under_plans(
    load: LoadProcess,
    mut apply: impl FnMut() -> bool,
) -> GuestResult<(String, usize)> {
    let mut plans = 0;
    let said = run_with_heartbeats(
        || {
            load.output()
                .map_err(|error| std::io::Error::other(error.to_string()))
        },
        || plans += usize::from(apply()),
    )?;
    Ok((said, plans))
}

/// Measures rounds of a ping-pong through pipes on one core, held by the plan and by the mask in
/// turn; prints the ratio.
pub(crate) fn measure_cost(scheduler: &mut Scheduler, topology: &Topology) -> GuestResult<()> {
    let (mut governed, mut free) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        free.push(ping(|threads| confine(topology, threads))?);
        governed.push(ping(|threads| {
            manage(scheduler, threads)?;
            Ok(scheduler.apply(&plan_on_one_core(topology, threads))?)
        })?);
        scheduler.send_heartbeat();
    }
    let (governed, free) = (median(&mut governed), median(&mut free));
    println!(
        "round trip {:.1} us governed, {:.1} us not: ratio {:.2}",
        governed / 1e3,
        free / 1e3,
        governed / free
    );
    ensure(governed > 0.0 && free > 0.0, || {
        "nothing was measured".to_owned()
    })
}

fn confine(topology: &Topology, threads: &[ThreadId]) -> GuestResult<()> {
    let mut mask = CpuSet::new();
    for pu in cores_of(topology).remove(0).iter() {
        mask.set(pu.0 as usize)?;
    }
    for thread in threads {
        sched_setaffinity(Pid::from_raw(i32::try_from(thread.tid)?), &mask)?;
    }
    Ok(())
}

/// Time of a round trip of two threads after `prepare`, ns.
fn ping(prepare: impl FnOnce(&[ThreadId]) -> GuestResult<()>) -> GuestResult<f64> {
    let load = LoadProcess::start(&["ping", &ROUNDS.to_string()], 2)?;
    prepare(&load.threads)?;
    let ns: f64 = load.output()?.trim().parse()?;
    Ok(ns / ROUNDS as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
