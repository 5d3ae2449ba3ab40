//! Threads of this process, each pinned to a CPU, that run kernels in slices.

use anyhow::{Context, Result, bail};
use consort_core::PuId;
use consort_kernels::{Kernel, KernelSetup, kernels};
use consort_linux::enact::bind_calling_thread;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// A kernel that several threads run by turns.
pub(crate) type SharedKernel = Mutex<Box<dyn Kernel>>;

/// A thread to be started: its CPU, and the kernels that it may be ordered to run.
pub(crate) struct KernelSeat<'a> {
    pub(crate) pu: PuId,
    pub(crate) kernels: Vec<&'a SharedKernel>,
}

#[derive(Clone, Copy)]
struct SliceOrder {
    /// Index among the kernels of the seat.
    kernel: usize,
    begin: Instant,
    end: Instant,
}

/// Work of a thread in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceWork {
    pub(crate) tid: u32,
    pub(crate) units: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) wall_ns: u64,
}

impl SliceWork {
    /// Units of work per ns of CPU time, so that time that others took of the CPU does not count;
    /// `None` if no work was done.
    pub(crate) fn speed(self) -> Option<f64> {
        (self.units > 0 && self.cpu_ns > 0).then(|| self.units as f64 / self.cpu_ns as f64)
    }
}

/// Threads that wait for orders, by seat.
pub(crate) struct KernelThreads(Vec<(Sender<SliceOrder>, Receiver<SliceWork>)>);

impl KernelThreads {
    /// Starts a thread per seat, lets `control` give orders, and ends the threads.
    pub(crate) fn run<T>(
        seats: &[KernelSeat<'_>],
        control: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        thread::scope(|scope| {
            let mut threads = Self(Vec::new());
            let mut handles = Vec::new();
            for seat in seats {
                let (orders, receive) = channel();
                let (send, works) = channel();
                let execute = move || execute_orders(seat, &receive, &send);
                handles.push(start_thread(scope, execute)?);
                threads.0.push((orders, works));
            }
            let result = control(&threads);
            // Threads end when their orders are closed; without this, the scope would wait forever.
            drop(threads);
            // Before the result: a thread that failed says why, its caller only that it ended.
            for handle in handles {
                join_thread(handle)?;
            }
            result
        })
    }

    /// Lets the threads of some seats run a kernel for a slice at the same time. `notice` is the
    /// time from the order to the begin; it lets all of them wake up and begin together.
    pub(crate) fn run_slice(
        &self,
        seats: &[usize],
        kernel: usize,
        slice: Duration,
        notice: Duration,
    ) -> Result<Vec<SliceWork>> {
        const ENDED: &str = "a worker thread ended early";
        let begin = Instant::now() + notice;
        let end = begin + slice;
        for &seat in seats {
            let order = SliceOrder { kernel, begin, end };
            self.0[seat].0.send(order).context(ENDED)?;
        }
        let mut works = Vec::with_capacity(seats.len());
        for &seat in seats {
            works.push(self.0[seat].1.recv().context(ENDED)?);
        }
        Ok(works)
    }
}

fn execute_orders(
    seat: &KernelSeat<'_>,
    orders: &Receiver<SliceOrder>,
    works: &Sender<SliceWork>,
) -> Result<()> {
    pin_thread(seat.pu)?;
    let tid = u32::try_from(gettid().as_raw())?;
    for order in orders {
        // A kernel whose thread panicked fails its check later, so the lock may be taken over.
        let kernel = seat.kernels[order.kernel].lock();
        let mut kernel = kernel.unwrap_or_else(PoisonError::into_inner);
        while Instant::now() < order.begin {
            std::hint::spin_loop();
        }
        let (begin, begin_ns) = (Instant::now(), thread_cpu_ns()?);
        let mut units = 0;
        while Instant::now() < order.end {
            kernel.work(1);
            units += 1;
        }
        let work = SliceWork {
            tid,
            units,
            cpu_ns: thread_cpu_ns()? - begin_ns,
            wall_ns: begin.elapsed().as_nanos() as u64,
        };
        // The next thread may run the kernel as soon as this slice is reported.
        drop(kernel);
        if works.send(work).is_err() {
            break;
        }
    }
    Ok(())
}

/// Builds a kernel by its name.
pub(crate) fn build_kernel(name: &str, setup: &KernelSetup) -> Result<SharedKernel> {
    let entry = kernels::find(name).with_context(|| format!("unknown kernel '{name}'"))?;
    let kernel = entry.build_one(setup);
    Ok(Mutex::new(
        kernel.with_context(|| format!("kernel {name}"))?,
    ))
}

/// Fails if a kernel computed a wrong result: it has then not done what its units say.
pub(crate) fn check_kernel(name: &str, kernel: &SharedKernel) -> Result<()> {
    let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
    if kernel.work(0) != kernel.expected() {
        bail!("kernel {name} computed a wrong result");
    }
    Ok(())
}

/// Starts a thread; fails, instead of panicking, if the user may have no more of them.
pub(crate) fn start_thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.context("cannot start a thread")
}

/// Waits for a thread; a panic in it is passed on.
pub(crate) fn join_thread<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    let ended = handle.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Binds the calling thread to one CPU.
pub(crate) fn pin_thread(pu: PuId) -> Result<()> {
    bind_calling_thread(pu).with_context(|| format!("cannot run on CPU {pu}"))
}

fn thread_cpu_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(u64::try_from(Duration::from(now).as_nanos())?)
}
