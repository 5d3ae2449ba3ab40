//! Two copies of a kernel on two PUs: alone, together, alone, run after run.
//!
//! The speed of a host may change by half between minutes, so that only slices which follow each
//! other can be compared. Speed is work over CPU time: what others take of a PU does not count as
//! slowdown.

use crate::own_thread;
use anyhow::{Context, Result};
use consort_core::PuId;
use consort_kernels::Kernel;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(super) type SharedKernel = Mutex<Box<dyn Kernel>>;

/// Time from an order to its begin, so that two threads begin together.
const NOTICE: Duration = Duration::from_micros(200);

/// Share of a slice that a thread must have had its PU for. Two such threads were together for at
/// least 0.7 of it, so that a slowdown of 1.3 still shows as 1.2.
const MOST: f64 = 0.85;
/// Runs that are tried at most for each that is wanted, and time that is taken at most for them.
const TRIES: usize = 2;
/// Slices in a run: one thread alone, both, the other alone.
pub(super) const SLICES: usize = 3;

/// Runs of one kernel on one pair.
#[derive(Debug, Default)]
pub(super) struct KernelSlowdowns {
    /// Time together over time alone for the same work, geometric mean of the two threads.
    pub(super) slowdowns: Vec<f64>,
    /// Runs that do not count, because others had the PUs while both threads should have run.
    pub(super) disturbed: usize,
}

#[derive(Clone, Copy)]
struct SliceOrder {
    kernel: usize,
    begin: Instant,
    end: Instant,
}

/// Work of a thread in a slice.
#[derive(Clone, Copy, Debug)]
struct SliceWork {
    units: u64,
    cpu_ns: u64,
    wall_ns: u64,
}

impl SliceWork {
    /// Returns units of work per ns of CPU time; none where it did no work.
    fn speed(self) -> Option<f64> {
        (self.units > 0 && self.cpu_ns > 0).then(|| self.units as f64 / self.cpu_ns as f64)
    }
}

struct SliceWorker {
    orders: Sender<SliceOrder>,
    deeds: Receiver<SliceWork>,
}

/// Runs every kernel on a pair; `kernels` has a copy for each PU.
pub(super) fn run(
    pus: [PuId; 2],
    kernels: &[[SharedKernel; 2]],
    runs: usize,
    slice: Duration,
) -> Result<Vec<KernelSlowdowns>> {
    thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut started = |slot: usize| {
            let (orders, receive) = channel();
            let (send, deeds) = channel();
            let work = move || execute_orders(pus[slot], slot, kernels, &receive, &send);
            handles.push(own_thread::start(scope, work)?);
            anyhow::Ok(SliceWorker { orders, deeds })
        };
        let workers = [started(0)?, started(1)?];
        let all = 0..kernels.len();
        let measured = all.map(|kernel| run_kernel(kernel, &workers, runs, slice));
        let measured: Result<Vec<KernelSlowdowns>> = measured.collect();
        // Without orders, threads end.
        drop(workers);
        for handle in handles {
            let ended = handle.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        measured
    })
}

fn run_kernel(
    kernel: usize,
    workers: &[SliceWorker; 2],
    runs: usize,
    slice: Duration,
) -> Result<KernelSlowdowns> {
    let mut all = KernelSlowdowns::default();
    let mut tries = 0;
    let begin = Instant::now();
    let most = slice * (TRIES * runs * SLICES) as u32;
    // Not counted: caches are cold.
    run_slice(kernel, workers, &[0, 1], slice / 2)?;
    while all.slowdowns.len() < runs && tries < TRIES * runs && begin.elapsed() < most {
        // The order changes from run to run, so that a drift hits both alike.
        let (first, second) = (tries % 2, 1 - tries % 2);
        let a = run_slice(kernel, workers, &[first], slice)?;
        let both = run_slice(kernel, workers, &[first, second], slice)?;
        let b = run_slice(kernel, workers, &[second], slice)?;
        match slowdown(&[a[0], b[0]], &both).filter(|_| have_overlapped(&both)) {
            Some(slowdown) => all.slowdowns.push(slowdown),
            None => all.disturbed += 1,
        }
        tries += 1;
    }
    Ok(all)
}

/// Returns true where threads had their PUs for most of a slice, and so at the same time.
fn have_overlapped(both: &[SliceWork]) -> bool {
    let had_pu = |deed: &SliceWork| deed.cpu_ns as f64 >= MOST * deed.wall_ns as f64;
    both.iter().all(had_pu)
}

fn slowdown(alone: &[SliceWork], together: &[SliceWork]) -> Option<f64> {
    let ratios = alone.iter().zip(together);
    let ratios = ratios.map(|(alone, together)| Some(alone.speed()? / together.speed()?));
    let product: Option<f64> = ratios.product();
    product.map(f64::sqrt)
}

/// Lets some threads work for a slice at the same time.
fn run_slice(
    kernel: usize,
    workers: &[SliceWorker; 2],
    slots: &[usize],
    slice: Duration,
) -> Result<Vec<SliceWork>> {
    let begin = Instant::now() + NOTICE;
    let end = begin + slice;
    for &slot in slots {
        let order = SliceOrder { kernel, begin, end };
        workers[slot].orders.send(order).context(ENDED)?;
    }
    let deeds = slots.iter().map(|&slot| workers[slot].deeds.recv());
    deeds.map(|deed| deed.context(ENDED)).collect()
}

const ENDED: &str = "a probing thread ended early";

fn execute_orders(
    pu: PuId,
    slot: usize,
    kernels: &[[SharedKernel; 2]],
    orders: &Receiver<SliceOrder>,
    deeds: &Sender<SliceWork>,
) -> Result<()> {
    own_thread::pin(pu)?;
    for order in orders {
        let kernel = &kernels[order.kernel][slot];
        let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let deed = work_slice(kernel.as_mut(), order)?;
        drop(kernel);
        if deeds.send(deed).is_err() {
            break;
        }
    }
    Ok(())
}

fn work_slice(kernel: &mut dyn Kernel, order: SliceOrder) -> Result<SliceWork> {
    while Instant::now() < order.begin {
        std::hint::spin_loop();
    }
    let (begin, begin_ns) = (Instant::now(), own_thread::cpu_ns()?);
    let mut units = 0;
    while Instant::now() < order.end {
        kernel.work(1);
        units += 1;
    }
    Ok(SliceWork {
        units,
        cpu_ns: own_thread::cpu_ns()? - begin_ns,
        wall_ns: begin.elapsed().as_nanos() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_in_twice_the_time_is_a_slowdown_of_two() {
        let deed = |units, cpu_ns| SliceWork {
            units,
            cpu_ns,
            wall_ns: cpu_ns,
        };
        let alone = [deed(100, 10), deed(50, 10)];
        let together = [deed(50, 10), deed(25, 10)];
        assert!((slowdown(&alone, &together).unwrap() - 2.0).abs() < 1e-12);
        // One that did not get its PU tells nothing.
        assert_eq!(slowdown(&alone, &[deed(50, 10), deed(0, 0)]), None);
    }

    #[test]
    fn threads_that_were_kept_waiting_have_not_met() {
        let deed = |cpu_ns| SliceWork {
            units: 1,
            cpu_ns,
            wall_ns: 100,
        };
        assert!(have_overlapped(&[deed(90), deed(99)]));
        assert!(!have_overlapped(&[deed(90), deed(50)]));
    }
}
