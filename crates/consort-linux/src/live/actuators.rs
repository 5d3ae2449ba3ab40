//! The hands of a run: all that changes threads, by masks, cookies, pausing, and a scheduler in the
//! kernel. What they change, they put back.

mod adoption;
mod carry_out;
mod cookies;
mod kernel_scheduler;
mod pause_controller;

pub(super) use adoption::AdoptionOutcome;
pub(super) use carry_out::ActuationContext;

use super::error::LiveError;
use super::settings::LiveSettings;
use super::thread_table::ThreadTable;
use super::warnings::Warnings;
use super::{AdherenceSummary, clock};
use crate::enact::{Enactor, RecoverReport, Refusal, RestoreReport, ThreadWish};
use crate::enforce::{EnactChoice, Enforcement};
use crate::sampling::RecordBatch;
use consort_core::{Plan, ProgramId, PuId, Reading, Sample, Signal, ThreadId, Topology};
use cookies::CoreCookies;
use kernel_scheduler::KernelScheduler;
use nix::time::{ClockId, clock_gettime};
use pause_controller::PauseController;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Everything that a run changes threads with.
pub(super) struct Actuators {
    /// True if plans are made and not carried out.
    dry_run: bool,
    /// True if threads are managed whose affinity somebody has set on purpose.
    override_affinity: bool,
    enactor: Enactor,
    enforcement: Enforcement,
    in_kernel: KernelScheduler,
    cookies: CoreCookies,
    pausing: PauseController,
    /// Processes that would have threads pinned, each with the time of the last look at it and true
    /// if pins would keep it from something.
    suffering: BTreeMap<u32, (Instant, bool)>,
    /// Generation of the last plan that was carried out.
    generation: u64,
}

/// Outcome of a run for what the hands changed, told after all was put back.
pub(super) struct RestoreOutcome {
    pub(super) held: AdherenceSummary,
    pub(super) pauses: u64,
    /// True if every mask is as it was and nothing is left paused.
    pub(super) restored: bool,
}

/// Least time between two looks at the mask of a thread that nothing is to be done about: what
/// somebody else does to it is noticed within this time, or a quantum where that is longer.
const LOOKS_EVERY: Duration = Duration::from_millis(450);

impl Actuators {
    /// Hands with the means that the user allows. Starts the scheduler in the kernel where that is
    /// asked for.
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

    pub(super) fn guardian_pid(&self) -> u32 {
        self.enactor.guardian_pid()
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
        if !self.enactor.take_interruption() {
            return Vec::new();
        }
        // They run again; what holds them has to know.
        let mut warnings = self.pausing.wake_all(&mut self.enactor);
        warnings.push(
            "no turn was made for some seconds, so the guardian put masks back meanwhile: Consort was \
             stopped, or waited in the kernel"
                .to_owned(),
        );
        warnings
    }

    /// Restores from journals that killed runs have left since this one began.
    pub(super) fn recover(&mut self) -> RecoverReport {
        let dirs = self.enactor.runtime_dirs().to_owned();
        self.enactor.recover_from(&dirs)
    }

    /// Tells the kernel that Consort lives, and changes to nudges if its scheduler is gone; returns
    /// a warning about that.
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
        let freed = threads.into_iter();
        let freed: Vec<ThreadId> = freed
            .filter_map(|id| self.enforcement.note_clone(id, now))
            .collect();
        self.unrestrict_threads(&freed, table)
    }

    /// Gives threads their original masks at once.
    fn unrestrict_threads(&mut self, threads: &[ThreadId], table: &ThreadTable) -> Vec<String> {
        if threads.is_empty() || self.dry_run {
            return Vec::new();
        }
        let free = threads.iter().map(|&id| (id, ThreadWish::Unrestricted));
        let report = self.enactor.apply(&free.collect::<Vec<_>>());
        let refused = report.refused.iter();
        refused
            .map(|(id, refusal)| refusal_text(*id, refusal, table))
            .collect()
    }

    /// Reads again the PUs that threads may run on, and enters them in the roster.
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

    /// Settles pairs, after all of their threads.
    pub(super) fn settle_pairs(&mut self) {
        self.enforcement.end_pairs_interval();
    }

    /// Returns true if a program was paused when the quantum began.
    pub(super) fn was_paused(&self, program: ProgramId) -> bool {
        self.pausing.was_paused(program)
    }

    /// Returns true if a program is paused now, by a stop signal.
    pub(super) fn is_stopped(&self, program: ProgramId) -> bool {
        self.pausing.is_stopped(program)
    }

    /// Resumes all programs, and pauses none for a moment; returns warnings.
    pub(super) fn wake_all(&mut self) -> Vec<String> {
        self.pausing.wake_all(&mut self.enactor)
    }

    /// Removes cgroups made for pausing programs that have ended; returns warnings.
    pub(super) fn forget_ended(&mut self, table: &ThreadTable) -> Vec<String> {
        self.pausing.forget_ended(table, &mut self.enactor)
    }

    pub(super) fn restore_all(mut self, warnings: &mut Warnings) -> RestoreOutcome {
        self.in_kernel.end();
        self.enforcement.note_time_passed(monotonic_ns());
        let held = self.adherence_summary();
        let report = self.enactor.close();
        warnings.extend(restore_failures(&report));
        RestoreOutcome {
            held,
            pauses: self.pausing.count(),
            restored: report.complete,
        }
    }

    /// Adherence to plans and means of enforcement, over the run so far.
    fn adherence_summary(&self) -> AdherenceSummary {
        let enforcement = &self.enforcement;
        AdherenceSummary {
            enactor: (!self.dry_run).then(|| enforcement.kind()),
            adherence: enforcement.adherence.share(),
            pair_adherence: enforcement.pair_adherence.share(),
            windows: enforcement.windows(),
            cookies: self.cookies.counts(),
        }
    }
}

/// A sentence for everything that could not be put back.
fn restore_failures(report: &RestoreReport) -> impl Iterator<Item = String> {
    let masks = report.failed.iter().map(|(thread, errno)| {
        format!("the mask of thread {thread} could not be put back: {errno}")
    });
    let cookies = report
        .stuck
        .iter()
        .map(|(thread, errno)| format!("thread {thread} keeps a core-scheduling cookie: {errno}"));
    let cgroups = report
        .frozen
        .iter()
        .map(|(cgroup, why)| format!("cgroup {} is left frozen: {why}", cgroup.display()));
    masks.chain(cookies).chain(cgroups)
}

fn refusal_text(id: ThreadId, refusal: &Refusal, table: &ThreadTable) -> String {
    let name = table.name(id);
    format!("thread {id} ({name}) was not moved: {refusal}")
}

/// `CLOCK_MONOTONIC`, the clock of samples, ns.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| clock::nanos(Duration::from(now)))
}
