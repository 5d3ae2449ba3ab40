//! The actuators of a run: all that changes threads, by masks, cookies, pausing and a scheduler in the
//! kernel. They put back what they change.

mod carry_out;
mod cookies;
mod kernel_scheduler;
mod pause_controller;

pub(super) use carry_out::ActuationContext;

use super::LiveSettings;
use super::thread_table::ThreadTable;
use super::warnings::Warnings;
use super::{AdherenceSummary, LiveError, clock};
use crate::enact::{AdoptError, ChildStatus, Enactor, ThreadWish, current_mask};
use crate::enforce::{EnactChoice, Enforcement};
use crate::sampling::RecordBatch;
use consort_core::{Plan, PuId, PuSet, Reading, Sample, Signal, ThreadId, Topology};
use cookies::CoreCookies;
use kernel_scheduler::KernelScheduler;
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use pause_controller::PauseController;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Everything that a run changes threads with.
pub(super) struct Actuators {
    /// True if plans are made and not carried out.
    dry_run: bool,
    /// True if threads are managed although their affinity was set on purpose.
    override_affinity: bool,
    pub(super) enactor: Enactor,
    pub(super) enforcement: Enforcement,
    in_kernel: KernelScheduler,
    cookies: CoreCookies,
    pub(super) pausing: PauseController,
    /// Processes that would have threads pinned, each with the time of the last look at it, and true if
    /// pins would do it harm.
    suffering: BTreeMap<u32, (Instant, bool)>,
    /// Generation of the last plan that was carried out.
    generation: u64,
}

/// Least time between two looks at the mask of a thread that is where it is wanted: a change by
/// another program is noticed within this time, or within a quantum if that is longer.
const LOOKS_EVERY: Duration = Duration::from_millis(450);

impl Actuators {
    /// Actuators with the means that the user allows. Starts the scheduler in the kernel if the user
    /// wants that.
    pub(super) fn new(
        mut enactor: Enactor,
        settings: &LiveSettings,
        topology: &Topology,
        warnings: &mut Warnings,
    ) -> Self {
        let wanted = if settings.dry_run {
            EnactChoice::Auto
        } else {
            settings.enactors
        };
        let (in_kernel, refused) = KernelScheduler::start(wanted, topology);
        let enactors = match refused {
            None => settings.enactors,
            Some(error) => {
                warnings.insert(format!("nudges are used instead of ext: {error}"));
                EnactChoice::Auto
            }
        };
        enactor.set_mask_check_interval(LOOKS_EVERY);
        if settings.override_affinity {
            enactor.allow_exclusive_cpusets();
        }
        Self {
            dry_run: settings.dry_run,
            override_affinity: settings.override_affinity,
            enactor,
            enforcement: Enforcement::new(enactors),
            in_kernel,
            cookies: CoreCookies::new(settings.cookies && !settings.dry_run),
            pausing: PauseController::new(settings.pausing.clone()),
            suffering: BTreeMap::new(),
            generation: 0,
        }
    }

    /// Accepts a plan to be carried out.
    ///
    /// # Errors
    /// [`LiveError::StalePlan`] when it is not newer than the last one.
    pub(super) fn accept(&mut self, plan: &Plan) -> Result<(), LiveError> {
        if plan.generation <= self.generation {
            return Err(LiveError::StalePlan {
                generation: plan.generation,
                last: self.generation,
            });
        }
        self.generation = plan.generation;
        Ok(())
    }

    /// Shows the guardian that this run makes turns, and takes up again what the guardian has undone
    /// while there were none; returns warnings.
    pub(super) fn send_guardian_heartbeat(&mut self) -> Vec<String> {
        self.enactor.send_heartbeat();
        // The guardian restores masks and resumes programs if it sees no heartbeat for some
        // seconds.
        if !self.enactor.take_interruption() {
            return Vec::new();
        }
        // The programs run again, which the pauser does not know yet.
        let mut warnings = self.pausing.wake_all(&mut self.enactor);
        warnings.push(
            "no turn was made for some seconds, so the guardian put masks back meanwhile: Consort was \
             stopped, or waited in the kernel"
                .to_owned(),
        );
        warnings
    }

    /// Shows the scheduler in the kernel that Consort lives, and changes to nudges if that scheduler is
    /// gone; returns a warning about that.
    pub(super) fn send_kernel_heartbeat(&mut self) -> Option<String> {
        let why = self.in_kernel.send_heartbeat()?;
        self.enforcement.choose(EnactChoice::Auto);
        Some(format!(
            "the kernel has ended the sched_ext scheduler ({why}); nudges are used from now on"
        ))
    }

    /// Takes records in: threads that started others or became another program must not be pinned.
    pub(super) fn note_records(
        &mut self,
        batch: &RecordBatch,
        id_of: impl Fn(u32) -> Option<ThreadId>,
        table: &ThreadTable,
    ) -> Vec<String> {
        let freed = self.enforcement.apply_records(batch, id_of, Instant::now());
        self.unrestrict_threads(&freed, table)
    }

    /// Notes that these threads may have started others; returns warnings.
    pub(super) fn note_starters(
        &mut self,
        threads: Vec<ThreadId>,
        table: &ThreadTable,
    ) -> Vec<String> {
        let now = Instant::now();
        let mut freed = Vec::new();
        for id in threads {
            freed.extend(self.enforcement.note_clone(id, now));
        }
        self.unrestrict_threads(&freed, table)
    }

    /// Gives threads their original masks at once.
    fn unrestrict_threads(&mut self, threads: &[ThreadId], table: &ThreadTable) -> Vec<String> {
        if threads.is_empty() || self.dry_run {
            return Vec::new();
        }
        let free = threads.iter().map(|&id| (id, ThreadWish::Unrestricted));
        let report = self.enactor.apply(&free.collect::<Vec<_>>());
        let mut warnings = Vec::new();
        for (id, refusal) in report.refused {
            let name = table.name(id);
            warnings.push(format!("thread {id} ({name}) was not moved: {refusal}"));
        }
        warnings
    }

    /// Reads again the CPUs that threads may run on, and enters them in the table.
    pub(super) fn recheck(&mut self, threads: &[ThreadId], table: &mut ThreadTable) {
        if threads.is_empty() {
            return;
        }
        for (id, pus) in self.enactor.reread_cpusets(threads) {
            table.set_original(id, pus);
        }
    }

    /// Adds the time that a thread spent in the place that the plan gave it.
    pub(super) fn add_planned_time(
        &mut self,
        id: ThreadId,
        last_pu: Option<PuId>,
        interval_ns: u64,
        sample: &mut Sample,
    ) {
        let cpu = sample.reading(Signal::CpuTime);
        let planned_ns = (self.enforcement).end_interval(id, sample.cpu_time_ns(), last_pu);
        if let (Some(cpu), Some(planned_ns)) = (cpu, planned_ns) {
            let reading = Reading::fully_counted(planned_ns, cpu.tier, interval_ns);
            sample.set(Signal::PlannedTime, reading);
        }
    }

    /// Settles a thread that has exited, for the last time.
    pub(super) fn add_last_planned_time(
        &mut self,
        id: ThreadId,
        interval_ns: u64,
        sample: &mut Sample,
    ) {
        self.add_planned_time(id, None, interval_ns, sample);
        self.enforcement.forget(id);
    }

    /// Resumes all programs, and pauses none for a moment; returns warnings.
    pub(super) fn wake_all(&mut self) -> Vec<String> {
        self.pausing.wake_all(&mut self.enactor)
    }

    /// Removes cgroups made for pausing programs that have ended; returns warnings.
    pub(super) fn forget_ended(&mut self, table: &ThreadTable) -> Vec<String> {
        self.pausing.forget_ended(table, &mut self.enactor)
    }

    /// Puts everything back. Returns the adherence to plans over the run, and true if every mask is as
    /// it was before and nothing is left paused.
    pub(super) fn restore_all(mut self, warnings: &mut Warnings) -> (AdherenceSummary, bool) {
        // Before the masks: from then on every thread is scheduled by the fair class again.
        self.in_kernel.end();
        let enforcement = &mut self.enforcement;
        enforcement.note_time_passed(monotonic_ns());
        let adherence = AdherenceSummary {
            enactor: (!self.dry_run).then(|| enforcement.kind()),
            adherence: enforcement.adherence.share(),
            pair_adherence: enforcement.pair_adherence.share(),
            windows: enforcement.windows(),
            cookies: self.cookies.counts,
        };
        let report = self.enactor.close();
        for (thread, errno) in &report.failed {
            warnings.insert(format!(
                "the mask of thread {thread} could not be put back: {errno}"
            ));
        }
        for (thread, errno) in &report.stuck {
            warnings.insert(format!(
                "thread {thread} keeps a core-scheduling cookie: {errno}"
            ));
        }
        for (cgroup, why) in &report.frozen {
            let cgroup = cgroup.display();
            warnings.insert(format!("cgroup {cgroup} is left frozen: {why}"));
        }
        (adherence, report.complete)
    }
}

/// `CLOCK_MONOTONIC`, the clock of samples, ns.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| clock::nanos(Duration::from(now)))
}

pub(in crate::live) enum AdoptionOutcome {
    /// The thread may be placed; these are the CPUs that it may run on without Consort.
    Managed(PuSet),
    /// The thread keeps the affinity that was set on purpose; this is its mask.
    SelfPlaced(PuSet),
    /// The thread is not managed, for this reason.
    LetAlone(String),
    /// The thread cannot be looked up for the moment, for this reason; this is its mask.
    Unseen(PuSet, String),
    /// The thread has ended.
    Gone,
}

impl Actuators {
    /// Returns true for this run's own process and its guardian's.
    pub(in crate::live) fn is_own(&self, pid: u32) -> bool {
        [std::process::id(), self.enactor.guardian_pid()].contains(&pid)
    }

    /// Takes a thread under management. One that a managed thread has started may have inherited a mask
    /// that Consort wrote; the enactor finds that out and undoes it.
    pub(in crate::live) fn adopt_thread(
        &mut self,
        id: ThreadId,
        parent: Option<ThreadId>,
        warnings: &mut Warnings,
    ) -> AdoptionOutcome {
        let adopted = match parent {
            Some(parent) => self.enactor.adopt_child(id, parent),
            None => match current_mask(id) {
                Ok(mask) => (self.enactor.adopt(id, mask)).map(|()| ChildStatus::Adopted),
                Err(Errno::ESRCH) => Err(AdoptError::Gone(id)),
                Err(errno) => Err(AdoptError::Kernel(id, errno)),
            },
        };
        match adopted {
            Ok(ChildStatus::Foreign(mask)) => {
                let is_taken =
                    self.override_affinity && self.enactor.adopt(id, mask.clone()).is_ok();
                self.enforcement.note_own_mask(id);
                self.clear_cookie(id, warnings);
                if is_taken {
                    AdoptionOutcome::Managed(mask)
                } else {
                    AdoptionOutcome::SelfPlaced(mask)
                }
            }
            Ok(_) => {
                let original = self.enactor.original(id).unwrap_or_default();
                self.clear_cookie(id, warnings);
                warnings.extend(self.in_kernel.manage_thread(id));
                AdoptionOutcome::Managed(original)
            }
            Err(AdoptError::Gone(_)) => AdoptionOutcome::Gone,
            Err(error @ AdoptError::Unseen(..)) => match current_mask(id) {
                Ok(mask) => AdoptionOutcome::Unseen(mask, error.to_string()),
                Err(Errno::ESRCH) => AdoptionOutcome::Gone,
                Err(_) => AdoptionOutcome::LetAlone(error.to_string()),
            },
            Err(error) => AdoptionOutcome::LetAlone(error.to_string()),
        }
    }

    /// Leaves a thread alone, but for a cookie that it has inherited; returns its mask.
    pub(in crate::live) fn leave_unmanaged(
        &mut self,
        id: ThreadId,
        warnings: &mut Warnings,
    ) -> PuSet {
        let mask = current_mask(id).unwrap_or_default();
        self.clear_cookie(id, warnings);
        mask
    }

    fn clear_cookie(&mut self, id: ThreadId, warnings: &mut Warnings) {
        warnings.extend(self.cookies.take_away(&[id], &self.enactor));
    }

    /// Puts threads back to their original masks; returns warnings.
    pub(in crate::live) fn restore_masks(
        &mut self,
        threads: &[ThreadId],
        table: &ThreadTable,
    ) -> Vec<String> {
        // Of all threads, also the ones that are not managed: a cookie is inherited.
        let mut warnings = self.cookies.take_away(threads, &self.enactor);
        let managed = threads.iter().filter(|id| table.may_place(**id));
        let free: Vec<_> = managed.map(|&id| (id, ThreadWish::Unrestricted)).collect();
        let report = self.enactor.apply(&free);
        let refused = report.refused.iter();
        warnings.extend(
            refused.map(|(id, refusal)| format!("thread {id} was not put back: {refusal}")),
        );
        warnings
    }

    /// Stops managing a thread that was put back. It may be taken again.
    pub(in crate::live) fn stop_managing(&mut self, id: ThreadId) {
        self.enactor.stop_managing(id);
        self.enforcement.forget(id);
        self.in_kernel.release_thread(id);
    }
}
