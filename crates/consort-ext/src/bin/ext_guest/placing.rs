//! Scenarios of placement: threads are where the plan has them, for as long as they may be.

use crate::load::LoadProcess;
use crate::{GuestResult, LOOK, QUANTUM, ensure, tasks};
use consort_core::{PuId, PuSet, ThreadId, Topology};
use consort_ext::{ExtPlan, Scheduler};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const WATCHED: Duration = Duration::from_secs(4);

/// Places `per_pu` threads per CPU, dealt to the cores in turn; asserts that all are in their
/// places.
pub(crate) fn check_adherence(
    scheduler: &mut Scheduler,
    topology: &Topology,
    per_pu: usize,
) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(topology.pus().len() * per_pu)?;
    manage(scheduler, &load.threads)?;
    let cores: Vec<PuSet> = cores_of(topology);
    let places = load
        .threads
        .iter()
        .copied()
        .zip(cores.iter().cloned().cycle());
    let plan = ExtPlan {
        places: places.collect(),
        ..ExtPlan::unrestricted(QUANTUM)
    };
    scheduler.apply(&plan)?;
    settle(scheduler, &plan)?;
    let before = scheduler.stats().total();
    let seen = watch(scheduler, &plan)?;
    let counted = scheduler.stats().total().since(&before).adherence();
    let counted = counted.ok_or("no planned running time")?;
    check_untouched(&load.threads)?;
    let stats = scheduler.stats();
    println!(
        "threads {} adherence {counted:.5} of running time, {seen:.5} of looks; reliefs {}",
        load.threads.len(),
        stats.reliefs
    );
    ensure(counted >= 0.99, || {
        format!("adherence {counted}: {:?}", stats.total())
    })?;
    ensure(seen >= 0.99, || format!("seen in place {seen}"))?;
    check_all_ran(scheduler, &load.threads)?;
    check_together(scheduler, &load.threads, cores.len())
}

pub(crate) fn cores_of(topology: &Topology) -> Vec<PuSet> {
    let pus = topology.cores().iter().map(|core| core.pus.iter().copied());
    pus.map(Iterator::collect).collect()
}

pub(crate) fn manage(scheduler: &mut Scheduler, threads: &[ThreadId]) -> GuestResult<()> {
    for &thread in threads {
        scheduler.manage(thread)?;
        ensure(tasks::is_governed(thread)?, || {
            format!("{thread} is not governed")
        })?;
    }
    Ok(())
}

/// Waits until every thread has left the CPU where it ran before the plan. An emulated CPU's next
/// tick can take seconds to come.
fn settle(scheduler: &mut Scheduler, plan: &ExtPlan) -> GuestResult<()> {
    let started = Instant::now();
    while !all_in_place(plan)? {
        scheduler.send_heartbeat();
        std::thread::sleep(LOOK);
        let waited = started.elapsed();
        ensure(waited < 10 * WATCHED, || {
            "threads do not go where planned".to_owned()
        })?;
    }
    Ok(())
}

fn all_in_place(plan: &ExtPlan) -> GuestResult<bool> {
    for (&thread, pus) in &plan.places {
        if !pus.contains(PuId(tasks::processor(thread)?)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The share of observations at which a thread was on a CPU of its place.
fn watch(scheduler: &mut Scheduler, plan: &ExtPlan) -> GuestResult<f64> {
    let (mut looks, mut in_place) = (0u32, 0u32);
    let started = Instant::now();
    while started.elapsed() < WATCHED {
        scheduler.send_heartbeat();
        for (&thread, pus) in &plan.places {
            looks += 1;
            in_place += u32::from(pus.contains(PuId(tasks::processor(thread)?)));
        }
        std::thread::sleep(LOOK);
    }
    Ok(f64::from(in_place) / f64::from(looks))
}

/// Asserts that this program and the first process were never handed over.
fn check_untouched(managed: &[ThreadId]) -> GuestResult<()> {
    for pid in [1, std::process::id()] {
        for thread in tasks::wait_for_threads(pid, 1)? {
            ensure(!tasks::is_governed(thread)?, || {
                format!("{thread} is governed")
            })?;
        }
    }
    for &thread in managed {
        ensure(tasks::is_governed(thread)?, || {
            format!("{thread} is no longer governed")
        })?;
    }
    Ok(())
}

fn check_all_ran(scheduler: &Scheduler, threads: &[ThreadId]) -> GuestResult<()> {
    for &thread in threads {
        let times = scheduler.times(thread)?.ok_or("a thread without times")?;
        ensure(!times.in_place.is_zero(), || {
            format!("{thread} never ran: {times:?}")
        })?;
    }
    Ok(())
}

/// Asserts that the first two threads of a core ran there together, and those of different cores
/// never did.
fn check_together(scheduler: &Scheduler, threads: &[ThreadId], cores: usize) -> GuestResult<()> {
    let with = |other: usize| scheduler.time_together(threads[0], threads[other]);
    let (same, different) = (with(cores)?, with(1)?);
    let alone = scheduler.times(threads[0])?.ok_or("no times")?.in_place;
    println!("together {same:?} of {alone:?}, with a thread of another core {different:?}");
    ensure(different.is_zero(), || format!("{different:?} on one core"))?;
    // The amount depends on when the CPUs are emulated; the upper bound does not.
    let most = alone.min(scheduler.times(threads[cores])?.ok_or("no times")?.in_place);
    // The two are accounted for at different moments, hence the tolerance.
    let possible = !same.is_zero() && same.as_secs_f64() <= 1.02 * most.as_secs_f64();
    ensure(possible, || format!("together {same:?} of {most:?}"))
}

/// Asserts that a thread that may only run on CPU 2 is there, although the plan has it on CPU 5.
pub(crate) fn check_own_mask(scheduler: &mut Scheduler) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(1)?;
    let mut own = CpuSet::new();
    own.set(2)?;
    for thread in &load.threads {
        sched_setaffinity(Pid::from_raw(i32::try_from(thread.tid)?), &own)?;
    }
    manage(scheduler, &load.threads)?;
    scheduler.apply(&plan_on_pus(&load.threads, &"5".parse()?))?;
    settle(scheduler, &plan_on_pus(&load.threads, &"2".parse()?))?;
    let seen = observe_pus(scheduler, &load.threads, true)?;
    ensure(seen == BTreeSet::from([2]), || format!("seen on {seen:?}"))?;
    println!("only on CPU 2");
    Ok(())
}

fn plan_on_pus(threads: &[ThreadId], pus: &PuSet) -> ExtPlan {
    ExtPlan {
        places: threads
            .iter()
            .map(|&thread| (thread, pus.clone()))
            .collect(),
        ..ExtPlan::unrestricted(QUANTUM)
    }
}

/// The CPUs on which the threads were observed for a second.
fn observe_pus(
    scheduler: &mut Scheduler,
    threads: &[ThreadId],
    beat: bool,
) -> GuestResult<BTreeSet<u32>> {
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        if beat {
            scheduler.send_heartbeat();
        }
        for &thread in threads {
            seen.insert(tasks::processor(thread)?);
        }
        std::thread::sleep(LOOK);
    }
    Ok(seen)
}

/// Asserts that threads whose CPU a foreign thread occupies run elsewhere after a while.
pub(crate) fn check_relief(scheduler: &mut Scheduler) -> GuestResult<()> {
    let (foreign, load) = (
        LoadProcess::start_spinning(1)?,
        LoadProcess::start_spinning(1)?,
    );
    let mut first = CpuSet::new();
    first.set(0)?;
    for thread in &foreign.threads {
        sched_setaffinity(Pid::from_raw(i32::try_from(thread.tid)?), &first)?;
    }
    manage(scheduler, &load.threads)?;
    scheduler.apply(&plan_on_pus(&load.threads, &"0".parse()?))?;
    let started = Instant::now();
    let before = scheduler.stats().reliefs;
    while scheduler.stats().reliefs == before && started.elapsed() < 5 * WATCHED {
        scheduler.send_heartbeat();
        std::thread::sleep(LOOK);
    }
    let seen = observe_pus(scheduler, &load.threads, true)?;
    let reliefs = scheduler.stats().reliefs - before;
    println!("reliefs {reliefs}, seen on CPUs {seen:?}");
    ensure(reliefs > 0, || "never relieved".to_owned())?;
    ensure(seen.iter().any(|&pu| pu != 0), || {
        format!("only on {seen:?}")
    })
}

/// Asserts that a plan holds no thread if its author is silent, and holds them again after a
/// heartbeat.
pub(crate) fn check_stale_plan(scheduler: &mut Scheduler) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(3)?;
    manage(scheduler, &load.threads)?;
    let plan = ExtPlan {
        quantum: Duration::from_secs(1),
        ..plan_on_pus(&load.threads, &"3".parse()?)
    };
    scheduler.apply(&plan)?;
    settle(scheduler, &plan)?;
    let held = observe_pus(scheduler, &load.threads, true)?;
    ensure(held == BTreeSet::from([3]), || format!("held on {held:?}"))?;
    std::thread::sleep(Duration::from_millis(4500));
    let free = observe_pus(scheduler, &load.threads, false)?;
    ensure(free.len() > 2, || format!("stale, and still on {free:?}"))?;
    settle(scheduler, &plan)?;
    let again = observe_pus(scheduler, &load.threads, true)?;
    ensure(again == BTreeSet::from([3]), || {
        format!("again held on {again:?}")
    })?;
    println!("held on {held:?}, stale on {free:?}, again on {again:?}");
    Ok(())
}

/// Asserts that plans that follow each other fast are each followed, including places that are not
/// cores.
pub(crate) fn check_moves(scheduler: &mut Scheduler) -> GuestResult<()> {
    let load = LoadProcess::start_spinning(2)?;
    manage(scheduler, &load.threads)?;
    for round in 0..200 {
        let pus = ["1", "2-3", "0,3-4", "5-6"][round % 4].parse()?;
        scheduler.apply(&plan_on_pus(&load.threads, &pus))?;
    }
    for pus in ["0,3-4", "6", "1-2,5"] {
        let pus: PuSet = pus.parse()?;
        let plan = plan_on_pus(&load.threads, &pus);
        scheduler.apply(&plan)?;
        settle(scheduler, &plan)?;
        let seen = observe_pus(scheduler, &load.threads, true)?;
        let inside = seen.iter().all(|&pu| pus.contains(PuId(pu)));
        ensure(inside, || format!("on {seen:?}, planned {pus}"))?;
        println!("planned {pus}, seen on {seen:?}");
    }
    Ok(())
}
