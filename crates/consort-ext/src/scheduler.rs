//! The scheduler as its owner sees it.

use crate::encode::{MAX_SLOTS, SetNumbers, SlotLimits, encode};
use crate::error::ExtError;
use crate::kernel::Kernel;
use crate::layout::{MachineLayout, check_at_most};
use crate::plan::ExtConfig;
use crate::plan::ExtPlan;
use crate::probe::probe;
use crate::stats::{ExtStats, RunningTimes, SchedulerState};
use crate::sys::{self, SchedulingPolicy};
use consort_core::{ThreadId, Topology};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The kernel's greatest limit.
const LONGEST_WATCHDOG: Duration = Duration::from_secs(30);

/// A sched_ext scheduler that follows this process's plans.
///
/// It governs the threads that were [handed over](Self::manage), and what they start. It ends when
/// it is dropped or the process ends in any way; every thread then continues under the kernel's
/// ordinary scheduler.
#[derive(Debug)]
pub struct Scheduler {
    kernel: Kernel,
    layout: MachineLayout,
    limits: SlotLimits,
    version: u64,
    /// The numbers of the sets of the plan in force.
    sets: SetNumbers,
    /// The threads that were handed over, with the policies that they get back.
    managed: BTreeMap<ThreadId, SchedulingPolicy>,
}

impl Scheduler {
    /// Starts the scheduler; no thread is governed yet.
    ///
    /// # Errors
    /// [`ExtError::Unavailable`] if [`probe()`] finds an obstacle, [`ExtError::TooLarge`] if the
    /// machine or the number of slots is too large, [`ExtError::Refused`] if the kernel refuses it.
    pub fn start(topology: &Topology, config: &ExtConfig) -> Result<Self, ExtError> {
        let layout = MachineLayout::new(topology)?;
        check_at_most("the time slots are", config.slots, MAX_SLOTS)?;
        let longest = LONGEST_WATCHDOG.as_secs() as usize;
        check_at_most(
            "the watchdog's seconds are",
            config.watchdog.as_secs() as usize,
            longest,
        )?;
        probe(Path::new("/")).check_ready()?;
        let limits = SlotLimits {
            number: config.slots,
            total: (!config.unchecked_slots).then_some(config.watchdog / 2),
        };
        Ok(Self {
            kernel: Kernel::start(&layout, config)?,
            layout,
            limits,
            version: 0,
            sets: SetNumbers::new(),
            managed: BTreeMap::new(),
        })
    }

    /// Hands a thread over. Nice value and mask stay. Threads and processes that it starts from now
    /// on are governed from their first instruction, and run anywhere until a plan names them.
    ///
    /// Hand over such threads too, once they are known: it costs nothing and gives them their
    /// policy back at the end.
    ///
    /// # Errors
    /// [`ExtError::Cookie`] and [`ExtError::Policy`] if the thread must not be taken,
    /// [`ExtError::Thread`] if it is gone or belongs to another user.
    pub fn manage(&mut self, thread: ThreadId) -> Result<(), ExtError> {
        if self.managed.contains_key(&thread) {
            return Ok(());
        }
        let failed = |source| thread_error("hand over", thread, source);
        let fd = sys::open(thread).map_err(failed)?;
        let policy = sys::policy(thread).map_err(failed)?;
        if sys::cookie(thread) != 0 {
            return Err(ExtError::Cookie(thread));
        }
        match policy.number {
            sys::ORDINARY => {
                self.kernel.adopt(sys::key(&fd)).map_err(failed)?;
                let governed = policy.with_number(sys::SCHED_EXT);
                sys::set_policy(thread, governed).map_err(failed)?;
            }
            sys::SCHED_EXT => {}
            number => {
                let policy = number;
                return Err(ExtError::Policy { thread, policy });
            }
        }
        self.managed
            .insert(thread, policy.with_number(sys::ORDINARY));
        Ok(())
    }

    /// Takes a thread back; it continues under the ordinary scheduler at once. What it has started
    /// stays governed. A thread that is gone, or was not handed over, is no error.
    ///
    /// # Errors
    /// [`ExtError::Thread`] if the kernel refuses.
    pub fn release(&mut self, thread: ThreadId) -> Result<(), ExtError> {
        let Some(policy) = self.managed.remove(&thread) else {
            return Ok(());
        };
        match give_back(thread, policy) {
            Err(error) if !is_gone(&error) => Err(thread_error("take back", thread, error)),
            _ => Ok(()),
        }
    }

    /// The threads that were handed over and not taken back; some may be gone.
    pub fn managed_threads(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.managed.keys().copied()
    }

    /// Replaces the plan as a whole, between two decisions of the kernel.
    ///
    /// # Errors
    /// The plan is not possible or not safe, or [`ExtError::Ejected`]; the earlier plan then stays
    /// in force.
    pub fn apply(&mut self, plan: &ExtPlan) -> Result<(), ExtError> {
        if let SchedulerState::Ejected(reason) = self.state() {
            return Err(ExtError::Ejected(reason));
        }
        let version = self.version + 1;
        let encoded = encode(plan, version, &self.sets, &self.layout, self.limits)?;
        self.kernel.write(&encoded, version)?;
        self.version = version;
        self.sets = encoded.sets;
        Ok(())
    }

    /// Confirms that the plan still holds.
    pub fn send_heartbeat(&mut self) {
        self.kernel.send_heartbeat();
    }

    /// A thread's running time since it was handed over or started; `None` if it is not governed.
    ///
    /// # Errors
    /// [`ExtError::Thread`] if it is gone.
    pub fn times(&self, thread: ThreadId) -> Result<Option<RunningTimes>, ExtError> {
        let failed = |source| thread_error("read times of", thread, source);
        let fd = sys::open(thread).map_err(failed)?;
        self.kernel.times(sys::key(&fd)).map_err(failed)
    }

    /// The share of a thread's planned running time that it spent where the plan had it, 0 to 1;
    /// `None` if it had none.
    ///
    /// # Errors
    /// As for [`Self::times`].
    pub fn adherence(&self, thread: ThreadId) -> Result<Option<f64>, ExtError> {
        let times = self.times(thread)?;
        Ok(times.and_then(|times| times.adherence()))
    }

    /// Time that two threads ran at once on different CPUs of one core, both in their places. A
    /// pair that has not done so for long may have been forgotten.
    ///
    /// # Errors
    /// [`ExtError::Refused`] if the table cannot be read.
    pub fn time_together(&self, one: ThreadId, other: ThreadId) -> Result<Duration, ExtError> {
        let (low, high) = (one.tid.min(other.tid), one.tid.max(other.tid));
        self.kernel.time_together(low, high)
    }

    /// Counts of the scheduler since its start.
    #[must_use]
    pub fn stats(&self) -> ExtStats {
        self.kernel.stats(self.layout.end())
    }

    /// State of the scheduler: plans are followed, or the kernel has ended it.
    #[must_use]
    pub fn state(&self) -> SchedulerState {
        self.kernel
            .ending()
            .map_or(SchedulerState::Running, SchedulerState::Ejected)
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        for (&thread, &policy) in &self.managed {
            // A thread that is gone needs nothing back, and one that refuses runs on as well.
            let _ = give_back(thread, policy);
        }
    }
}

/// Restores a thread's policy, unless it has chosen another one meanwhile.
fn give_back(thread: ThreadId, policy: SchedulingPolicy) -> io::Result<()> {
    let _same = sys::open(thread)?;
    if sys::policy(thread)?.number == sys::SCHED_EXT {
        sys::set_policy(thread, policy)?;
    }
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

fn thread_error(what: &'static str, thread: ThreadId, source: io::Error) -> ExtError {
    ExtError::Thread {
        what,
        thread,
        source,
    }
}
