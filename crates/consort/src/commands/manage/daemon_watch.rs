//! State of one program as a daemon reports it, for the report of a command that the daemon manages.

use crate::commands::daemon::{DaemonStatus, ThreadLine};
use crate::report::ReportBuilder;
use consort_core::plan::Reason;
use consort_core::trial::{Arm, Verdict};
use consort_core::{
    ControlTurn, EnactmentReport, Observation, Placement, Plan, PuId, Reading, Sample, Signal,
    ThreadId, ThreadObservation, Tier, Topology,
};
use consort_linux::control::{DaemonConnection, DaemonRequest, connect_daemon};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two requests, so that a daemon with many threads is not kept busy by them.
const EVERY: Duration = Duration::from_secs(1);
/// Time up to the first request: a short command is seen at all.
const FIRST: Duration = Duration::from_millis(200);

/// Thread that requests the state of a program from the daemon of this user until it is stopped.
pub(super) struct DaemonWatch {
    /// Dropped to stop the thread.
    stop: Sender<()>,
    thread: Option<JoinHandle<WatchedProgram>>,
}

/// Sums of what a daemon has reported of a program.
#[derive(Default)]
pub(super) struct WatchedProgram {
    pub(super) builder: ReportBuilder,
    /// Effect on the program, or else the daemon's verdict.
    pub(super) verdict: Option<Verdict>,
    /// Plans and moves of the daemon from the first state to the last.
    pub(super) plans_and_moves: (u64, u64),
    before: Option<(u64, u64)>,
}

impl DaemonWatch {
    /// Starts the thread after the signals of the command are blocked, so that it receives none.
    pub(super) fn start(pid: u32) -> Self {
        let (stop, stopped) = channel();
        let watch = std::thread::Builder::new().name("daemon-watch".to_owned());
        // Without the thread the report lacks its table, as without a daemon that answers.
        let thread = watch.spawn(move || watch_program(pid, &stopped)).ok();
        Self { stop, thread }
    }

    pub(super) fn stop(self) -> WatchedProgram {
        drop(self.stop);
        let watched = self.thread.and_then(|thread| thread.join().ok());
        watched.unwrap_or_default()
    }
}

fn watch_program(pid: u32, stopped: &Receiver<()>) -> WatchedProgram {
    let mut watched = WatchedProgram::default();
    let Ok(mut daemon) = connect_daemon(None) else {
        return watched;
    };
    let (mut since, mut wait) = (Instant::now(), FIRST);
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        let Some(status) = request_status(&mut daemon) else {
            break;
        };
        let elapsed = since.elapsed();
        since = Instant::now();
        watched.add(pid, &status, elapsed);
        wait = EVERY;
    }
    watched
}

fn request_status(daemon: &mut DaemonConnection) -> Option<DaemonStatus> {
    let reported = daemon.send_request(&DaemonRequest::Status).ok()?;
    serde_json::from_value(reported).ok()
}

impl WatchedProgram {
    /// Adds a state, which stands for the time since the one before.
    fn add(&mut self, pid: u32, status: &DaemonStatus, elapsed: Duration) {
        let interval_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let mut turn = ControlTurn {
            observation: Observation {
                interval_ns,
                ..Observation::default()
            },
            plan: Plan::default(),
            changed: Vec::new(),
            findings: Vec::new(),
            enacted: EnactmentReport::default(),
            arm: Arm::Managed,
        };
        for line in status.threads.iter().filter(|line| line.program == pid) {
            let thread = observation(line, interval_ns, &status.tier);
            if let Ok(pus) = line.cpus.parse() {
                let placement = Placement::Restricted(pus);
                turn.plan.placements.insert(thread.id, placement);
            }
            let reason = Reason {
                chosen: line.chosen.clone(),
                ..Reason::default()
            };
            turn.plan.report.threads.insert(thread.id, reason);
            turn.observation.threads.push(thread);
        }
        turn.observation.threads.sort_by_key(|thread| thread.id);
        // The CPUs that share cores are not known here, so that no co-runners are met.
        if let Ok(topology) = Topology::uniform(1, 1) {
            self.builder.add(&turn, &topology);
        }
        let now = (status.plans, status.moves);
        let before = *self.before.get_or_insert(now);
        self.plans_and_moves = (
            now.0.saturating_sub(before.0),
            now.1.saturating_sub(before.1),
        );
        let effect = { status.programs.iter() }
            .find(|program| program.pid == pid)
            .and_then(|program| program.effect);
        let mut verdict = status.verdict.clone();
        if let (Some(effect), Some(measure)) = (effect, &status.verdict.measure) {
            verdict = Verdict::from_named(Some(effect), effect.pairs, measure);
            verdict.estimated = status.verdict.estimated;
        }
        self.verdict = Some(verdict);
    }
}

fn observation(line: &ThreadLine, interval_ns: u64, tier: &str) -> ThreadObservation {
    let tier = serde_json::from_value(tier.into()).unwrap_or(Tier::Proc);
    let mut sample = Sample::default();
    let values = [
        (Signal::CpuTime, Some(line.cpu_share * interval_ns as f64)),
        (Signal::FpUsage, line.fp_usage),
        (Signal::MemoryStall, line.memory_stall),
    ];
    for (signal, value) in values {
        if let Some(value) = value {
            sample.set(signal, Reading::fully_counted(value, tier, interval_ns));
        }
    }
    ThreadObservation {
        id: ThreadId {
            pid: line.pid,
            tid: line.tid,
            start_ticks: 0,
        },
        name: line.name.as_str().into(),
        original: Arc::default(),
        managed: line.managed,
        last_pu: line.last_pu.map(PuId),
        sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_add_up_to_the_run() {
        let state = |share: f64, pu: u32, plans: u64| -> DaemonStatus {
            let thread = |tid: u32, program: u32| {
                serde_json::json!({
                    "tid": tid, "pid": program, "program": program, "name": "sh",
                    "cpu_share": share, "class": "int", "fp_usage": 0.1, "memory_stall": null,
                    "stack": {}, "last_pu": pu, "managed": true, "cpus": "0-1", "chosen": "stays",
                })
            };
            serde_json::from_value(serde_json::json!({
                "pid": 1, "version": "0", "uptime_s": 1.0, "policy": "spread",
                "policy_requested": "auto", "policy_reason": "", "tier": "sampling",
                "quantum_ms": 100.0, "plans": plans, "moves": 3, "nudges": 0, "undone": 0,
                "own_cpu_s": 0.0, "own_cpu_share": 0.0, "cores": [], "programs": [],
                "threads": [thread(70, 70), thread(80, 80)], "warnings": [],
            }))
            .unwrap()
        };
        let mut watched = WatchedProgram::default();
        watched.add(70, &state(1.0, 0, 10), Duration::from_secs(3));
        watched.add(70, &state(0.5, 1, 25), Duration::from_secs(2));
        assert_eq!(watched.plans_and_moves, (15, 0));
        let rows = watched.builder.thread_rows();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].tid, rows[0].cpu_s), (70, 4.0));
        let ran: Vec<(u32, f64)> = rows[0].ran_on.iter().map(|s| (s.cpu, s.share)).collect();
        assert_eq!(ran, [(0, 0.75), (1, 0.25)]);
        assert_eq!(rows[0].reason, "stays");
    }
}
