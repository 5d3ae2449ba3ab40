//! A run from its start to its report: alone, leading a group, or following the leader of one.

use super::setup::{AUTO, Setup};
use super::{launch_spec, refused};
use crate::cli::{Format, RunArgs};
use crate::config::RunConfig;
use crate::own_cost::Cost;
use crate::progress::{Line, Progress};
use crate::report::{Asymmetry, Ending, Group, Ledger, Quantum, RunReport, SamplingCounts};
use anyhow::Result;
use consort_core::{ControlLoop, Machine};
use consort_linux::enforce::EnactChoice;
use consort_linux::group::{Demands, GroupName, Terms};
use consort_linux::live::{Begun, Finished, Followed, Follower, GroupSpec, Host, Live, Recorded};
use std::time::Duration;

/// What holds for the whole run.
pub(super) struct Run<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) config: &'a RunConfig,
}

/// Runs the command to its end.
pub(super) fn run(
    args: &RunArgs,
    config: &RunConfig,
    setup: Setup,
    host: Host,
    (recorded, enact): (Option<Recorded>, EnactChoice),
) -> Result<RunReport> {
    let run = Run { args, config };
    let group = args.group.as_ref();
    let group = group.map(|name| group_spec(args, &setup, name, recorded.as_ref()));
    let spec = launch_spec(args, &setup, recorded, enact)?;
    let Some(group) = group else {
        let machine = Live::launch(host, spec).map_err(refused)?;
        return run.manage(setup.with_what_is_left(&machine)?, machine);
    };
    match Live::join(host, spec, group).map_err(refused)? {
        Begun::Leads(machine) => run.manage(setup.with_what_is_left(&*machine)?, *machine),
        Begun::Follows(follower) => run.follow(*follower),
    }
}

/// What is asked for on the command line must hold in the group; the rest is the leader's.
fn group_spec(
    args: &RunArgs,
    setup: &Setup,
    name: &GroupName,
    recorded: Option<&Recorded>,
) -> GroupSpec {
    GroupSpec {
        name: name.clone(),
        demands: Demands {
            // Which policy is best is for whoever leads to find out.
            policy: args.policy.clone().filter(|policy| policy != AUTO),
            interval_ms: args.interval.map(millis),
            dry_run: args.dry_run,
            profile: recorded.map(|recorded| recorded.origin().to_owned()),
        },
        policy: setup.requested.clone(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Run<'_> {
    fn follow(&self, follower: Follower) -> Result<RunReport> {
        match follower.follow()? {
            Followed::Ended(finished) => Ok(self.followed(*finished)),
            Followed::Leads(machine, terms) => {
                let setup = self.setup_of(&terms, &machine);
                self.manage(setup?, *machine)
            }
        }
    }

    /// The group's policy, made for this machine. It was made before by the old leader, so it can
    /// be made again, unless a file that it names is gone; then nothing is placed any more.
    fn setup_of(&self, terms: &Terms, machine: &Live) -> Result<Setup> {
        let (topology, offers) = (machine.topology(), machine.offers());
        let interval = Duration::from_millis(terms.interval_ms);
        let made = |policy: &str| {
            Setup::of_group(self.args, self.config, policy, interval, topology, offers)
        };
        made(&terms.policy).or_else(|_| made("none"))
    }

    fn manage(&self, setup: Setup, machine: Live) -> Result<RunReport> {
        let mut chosen = setup.chosen();
        let mut wheel = ControlLoop::new(machine, setup.policy, setup.backoff, setup.seed);
        let mut ledger = Ledger::default();
        let mut progress = self.progress(&chosen.policy);
        while let Some(turn) = wheel.turn()? {
            ledger.add(&turn);
            progress.show(&turn);
            if let Some(other) = self.settle_terms(&mut wheel, &chosen) {
                progress.of_policy(&other.policy);
                chosen = other;
            }
        }
        progress.end();
        let (undone, not_held) = (wheel.undone(), wheel.not_held());
        let own = Cost::so_far(Some(wheel.machine().guardian_pid()));
        let asymmetry = self.asymmetry(wheel.machine());
        let finished = wheel.into_machine().finish();
        Ok(ledger.report(Ending {
            policy: chosen.policy,
            policy_requested: chosen.requested,
            policy_reason: chosen.why,
            asymmetry,
            undone,
            not_held,
            ..self.ending(finished, chosen.interval, &own)
        }))
    }

    /// The report of a run that has managed nothing itself.
    fn followed(&self, finished: Finished) -> RunReport {
        let policy = finished.group.as_ref().map(|group| group.policy.clone());
        let policy = policy.unwrap_or_default();
        let own = Cost::so_far(None);
        Ledger::default().report(Ending {
            policy: policy.clone(),
            policy_requested: policy,
            policy_reason: "as the group's leader has it".to_owned(),
            ..self.ending(finished, Duration::ZERO, &own)
        })
    }

    fn ending(&self, finished: Finished, asked: Duration, own: &Cost) -> Ending {
        let mut warnings = finished.warnings;
        let group = finished.group.map(Group::from);
        warnings.extend(group.as_ref().and_then(Group::warning));
        Ending {
            tier: finished.tier,
            policy: String::new(),
            policy_requested: String::new(),
            policy_reason: String::new(),
            dry_run: self.args.dry_run,
            duration_s: finished.duration_s,
            quantum: Quantum {
                asked_ms: 1e3 * asked.as_secs_f64(),
                mean_ms: finished.quantum_ms,
            },
            asymmetry: None,
            group,
            exit_code: i32::from(finished.exit_code),
            unseen: finished.short_lived,
            own_cpu_s: own.cpu_s,
            sampling_s: finished.sampling_s,
            managed_cpu_s: finished.managed_cpu_s,
            peak_rss_kib: own.peak_rss_kib,
            sampling: SamplingCounts {
                samples: finished.samples.samples,
                decoded: finished.samples.decoded,
                lost: finished.samples.lost,
            },
            programs: finished.programs,
            pauses: finished.pauses,
            held: finished.held,
            undone: 0,
            not_held: 0,
            restored: finished.restored,
            warnings,
        }
    }

    fn progress(&self, policy: &str) -> Progress {
        let line = match (self.args.quiet, self.args.progress) {
            (true, _) => Line::Never,
            (_, true) => Line::Asked,
            (false, false) => Line::Unshared,
        };
        Progress::new(line, self.args.format != Format::Table, policy)
    }

    fn asymmetry(&self, machine: &Live) -> Option<Asymmetry> {
        let emulated = self.args.emulate_asymmetry.is_some();
        Asymmetry::of(machine.topology(), machine.offers(), emulated)
    }
}
