//! Time slots: gangs that never run at the same time, and slots that are too long.

use crate::endings::wait_for;
use crate::load::LoadProcess;
use crate::placing::manage;
use crate::{GuestResult, LOOK, QUANTUM, ensure, patient_config, tasks};
use consort_core::{ProgramId, PuId, Topology};
use consort_ext::{ExtConfig, ExtPlan, ExtStats, Scheduler, SchedulerState, TimeSlot};
use std::time::{Duration, Instant};

const GANG: u32 = 4;
const SECONDS: u64 = 8;
const SLOT: Duration = Duration::from_millis(100);

/// Runs two gangs of four on CPUs of their own, which without slots would run all the time.
pub(crate) fn check_gangs(scheduler: &mut Scheduler) -> GuestResult<()> {
    let before = scheduler.stats();
    let gangs = [
        LoadProcess::start_gang(GANG as usize + 1, SECONDS)?,
        LoadProcess::start_gang(GANG as usize + 1, SECONDS)?,
    ];
    let mut plan = ExtPlan::unrestricted(QUANTUM);
    for (gang, first) in gangs.iter().zip([0, GANG]) {
        manage(scheduler, &gang.threads)?;
        // The first thread only waits for the others.
        for (&thread, pu) in gang.threads[1..].iter().zip(first..) {
            plan.places.insert(thread, [PuId(pu)].into_iter().collect());
        }
        plan.slots.push(slot(gang, SLOT));
    }
    scheduler.apply(&plan)?;
    let slotted = Instant::now();
    let begun: Duration = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?.into();
    while slotted.elapsed() < Duration::from_secs(SECONDS) / 2 {
        scheduler.send_heartbeat();
        std::thread::sleep(LOOK);
    }
    let stats = scheduler.stats();
    let lasted = slotted.elapsed();
    scheduler.apply(&ExtPlan::unrestricted(QUANTUM))?;
    let [one, other] = gangs.map(|gang| stretches(gang, begun + LOOK * 5, begun + lasted));
    check_apart(&one?, &other?)?;
    check_counts(&before, &stats, lasted)
}

fn slot(load: &LoadProcess, length: Duration) -> TimeSlot {
    let programs = load.threads.iter().map(|thread| ProgramId(thread.pid));
    TimeSlot {
        length,
        programs: programs.collect(),
        ..TimeSlot::default()
    }
}

type RunStretch = (Duration, Duration);

/// Stretches in which the gang's threads ran by their own clock, within `from` and `to`.
fn stretches(gang: LoadProcess, from: Duration, to: Duration) -> GuestResult<Vec<RunStretch>> {
    let text = gang.output()?;
    let mut all = Vec::new();
    for line in text.lines() {
        let mut numbers = line.trim_start_matches("ran ").split(' ').map(str::parse);
        let mut next = || {
            numbers
                .next()
                .ok_or("a short line")
                .map(|n| n.map(Duration::from_nanos))
        };
        let (begin, end) = (next()??, next()??);
        if begin >= from && end <= to {
            all.push((begin, end));
        }
    }
    Ok(all)
}

fn check_apart(one: &[RunStretch], other: &[RunStretch]) -> GuestResult<()> {
    let meet = |a: &&RunStretch, b: &&RunStretch| a.0 <= b.1 && b.0 <= a.1;
    let met = one
        .iter()
        .find_map(|a| other.iter().find(|b| meet(&a, b)).map(|b| (a, b)));
    println!(
        "stretches {} and {}, none at the same time",
        one.len(),
        other.len()
    );
    ensure(met.is_none(), || format!("both gangs ran: {met:?}"))?;
    let enough = one.len().min(other.len()) >= 4 * GANG as usize;
    ensure(enough, || "too few stretches to tell".to_owned())
}

fn check_counts(before: &ExtStats, stats: &ExtStats, lasted: Duration) -> GuestResult<()> {
    let forced_idle = |stats: &ExtStats| -> Duration {
        stats
            .pus
            .iter()
            .take(2 * GANG as usize)
            .map(|pu| pu.forced_idle)
            .sum()
    };
    let idle = forced_idle(stats) - forced_idle(before);
    let share = idle.as_secs_f64() / lasted.as_secs_f64() / f64::from(2 * GANG);
    let slots = stats.slots_opened - before.slots_opened;
    println!(
        "slots {slots}, overlaps {}, overruns {}, forced idle {share:.2} of the gangs' CPUs",
        stats.overlaps, stats.overruns
    );
    ensure(stats.overlaps == 0 && stats.overruns == 0, || {
        format!("overlaps {}, overruns {}", stats.overlaps, stats.overruns)
    })?;
    ensure(slots >= 8, || "hardly any slot".to_owned())?;
    // Each gang's CPUs idle in the other's slots.
    ensure((0.25..=0.75).contains(&share), || {
        format!("forced idle {share}")
    })
}

/// Asserts that a slot that outlasts the watchdog's patience ends the scheduler and nothing else.
pub(crate) fn stall(topology: &Topology) -> GuestResult<()> {
    let config = ExtConfig {
        watchdog: Duration::from_secs(2),
        unchecked_slots: true,
        ..patient_config()
    };
    let mut scheduler = Scheduler::start(topology, &config)?;
    let loads = [
        LoadProcess::start_spinning(2)?,
        LoadProcess::start_spinning(2)?,
    ];
    let mut plan = ExtPlan::unrestricted(QUANTUM);
    for load in &loads {
        manage(&mut scheduler, &load.threads)?;
        plan.slots.push(slot(load, Duration::from_secs(3600)));
    }
    scheduler.apply(&plan)?;
    let started = Instant::now();
    while scheduler.state() == SchedulerState::Running
        && started.elapsed() < Duration::from_secs(30)
    {
        scheduler.send_heartbeat();
        std::thread::sleep(LOOK);
    }
    let SchedulerState::Ejected(reason) = scheduler.state() else {
        return Err("the watchdog did not bark".into());
    };
    println!("ejected: {reason}");
    ensure(reason.contains("stall"), || reason.clone())?;
    let refused = scheduler
        .apply(&plan)
        .map_or_else(|error| error.to_string(), |()| String::new());
    ensure(refused.contains("stall"), || {
        format!("apply said '{refused}'")
    })?;
    // The kernel reports the reason before it has put everything back.
    wait_for("the scheduler's end", || {
        Ok(tasks::kernel_state()? == "disabled")
    })?;
    loads
        .iter()
        .try_for_each(|load| crate::endings::assert_ungoverned(topology, &load.threads))
}
