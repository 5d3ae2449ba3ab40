//! The process that runs the kernels: `consort __train PLAN`, the plan as JSON; what each thread
//! did goes to stdout, one JSON document per line.

use super::plan::{KernelPlan, KernelRun};
use crate::own_thread;
use anyhow::{Context, Result, bail};
use consort_core::PuId;
use consort_kernels::caches::CacheSizes;
use consort_kernels::{Kernel, KernelSetup, kernels};
use nix::unistd::gettid;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Hidden first argument of the worker process.
pub(crate) const WORKER: &str = "__train";

type LockedKernel = Mutex<Box<dyn Kernel>>;

/// Carries out the plan in the second argument.
pub(crate) fn run_plan_argument() -> ExitCode {
    let plan = std::env::args().nth(2).unwrap_or_default();
    let run = serde_json::from_str(&plan).map_err(anyhow::Error::from);
    match run.and_then(|plan| run_all(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => crate::failure::report(&error),
    }
}

fn run_all(plan: &KernelPlan) -> Result<()> {
    // Kernels are built here, so their memory is near the PUs that run them.
    own_thread::pin(plan.pus[0])?;
    let slots = [build(plan)?, build(plan)?];
    let mut out = std::io::stdout().lock();
    for (number, pair) in plan.pairs().into_iter().enumerate() {
        let members = [&slots[0][pair[0]], &slots[1][pair[1]]];
        for deed in run_pair(plan, number, pair, members)? {
            serde_json::to_writer(&mut out, &deed)?;
            writeln!(out)?;
        }
    }
    slots
        .iter()
        .flatten()
        .zip(plan.programs.iter().cycle())
        .try_for_each(check)
}

/// One kernel of every program.
fn build(plan: &KernelPlan) -> Result<Vec<LockedKernel>> {
    let setup = KernelSetup {
        caches: CacheSizes::read(Path::new("/")),
        ..KernelSetup::default()
    };
    let build = |name: &String| {
        let entry = kernels::find(name).with_context(|| format!("unknown kernel '{name}'"))?;
        let kernel = entry.build_one(&setup);
        Ok(Mutex::new(
            kernel.with_context(|| format!("kernel {name}"))?,
        ))
    };
    plan.programs.iter().map(build).collect()
}

/// A kernel whose result is wrong has not done what its units say.
fn check((kernel, name): (&LockedKernel, &String)) -> Result<()> {
    let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
    if kernel.work(0) != kernel.expected() {
        bail!("kernel {name} computed a wrong result");
    }
    Ok(())
}

/// A thread that waits for orders: a time until which to work.
struct WorkerThread {
    orders: Sender<Instant>,
    done: Receiver<()>,
}

/// Each member alone in turn, then both, round after round.
fn run_pair(
    plan: &KernelPlan,
    number: usize,
    pair: [usize; 2],
    members: [&LockedKernel; 2],
) -> Result<Vec<KernelRun>> {
    let slice = Duration::from_millis(plan.slice_ms);
    thread::scope(|scope| {
        let mut roles = Vec::new();
        let mut handles = Vec::new();
        for (slot, together) in [(0, false), (1, false), (0, true), (1, true)] {
            let (orders, receive) = channel();
            let (finished, done) = channel();
            roles.push(WorkerThread { orders, done });
            let name = |slot: usize| plan.programs[pair[slot]].clone();
            let deed = KernelRun {
                tid: 0,
                pair: number,
                slot,
                together,
                program: name(slot),
                co_runner: name(1 - slot),
                units: 0,
                cpu_ns: 0,
            };
            let (kernel, pu) = (members[slot], plan.pus[slot]);
            let work = move || execute_orders(deed, kernel, pu, &receive, &finished);
            handles.push(own_thread::start(scope, work)?);
        }
        for _ in 0..plan.rounds {
            run_slice(&roles[0..1], slice)?;
            run_slice(&roles[1..2], slice)?;
            run_slice(&roles[2..4], slice)?;
        }
        // Without orders, threads end.
        drop(roles);
        handles.into_iter().map(join_thread).collect()
    })
}

fn join_thread(handle: thread::ScopedJoinHandle<'_, Result<KernelRun>>) -> Result<KernelRun> {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Lets threads work for a slice, and waits for their end.
fn run_slice(roles: &[WorkerThread], slice: Duration) -> Result<()> {
    let end = Instant::now() + slice;
    for role in roles {
        role.orders
            .send(end)
            .context("a training thread ended early")?;
    }
    for role in roles {
        role.done.recv().context("a training thread ended early")?;
    }
    Ok(())
}

/// Works whenever told to; what was done in all.
fn execute_orders(
    mut deed: KernelRun,
    kernel: &LockedKernel,
    pu: PuId,
    orders: &Receiver<Instant>,
    done: &Sender<()>,
) -> Result<KernelRun> {
    own_thread::pin(pu)?;
    deed.tid = u32::try_from(gettid().as_raw())?;
    for end in orders {
        let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let begin_ns = own_thread::cpu_ns()?;
        while Instant::now() < end {
            kernel.work(1);
            deed.units += 1;
        }
        deed.cpu_ns += own_thread::cpu_ns()? - begin_ns;
        drop(kernel);
        if done.send(()).is_err() {
            break;
        }
    }
    Ok(deed)
}
