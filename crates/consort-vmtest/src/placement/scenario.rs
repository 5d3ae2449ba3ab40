//! The placement story of `scenarios/placement.sh`, with its parameters.

use crate::vm::Vm;

const PLACEMENT: &str = include_str!("../../scenarios/placement.sh");
const WORKLOAD: &str = include_str!("../../scenarios/workload.sh");
const MASKS: &str = include_str!("../../scenarios/masks.sh");

/// Threads run alone, under `consort run`, after its clean end, under it again, and after it was
/// killed. The sections `before`, `during`, `after`, `again` and `killed` hold the masks of each
/// time and exit with 0 where the wait for them ended; `report` and `log` hold what consort wrote.
///
/// The guest needs `/bin/consort` and `/bin/consort-demo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementScenario {
    /// Programs of one fp thread.
    pub fp: u32,
    /// Programs of one int thread.
    pub int: u32,
    /// The policy for `consort run`.
    pub policy: String,
    /// Its quantum, in milliseconds of the guest.
    pub interval_ms: u32,
    /// Polls without a change after which a placement counts as settled.
    pub stable_polls: u32,
    /// Polls after which a wait is given up.
    pub limit_polls: u32,
}

impl PlacementScenario {
    /// `fp` and `int` threads under a policy, with waits that suit a guest of 8 PUs.
    #[must_use]
    pub fn new(policy: &str, fp: u32, int: u32) -> Self {
        Self {
            fp,
            int,
            policy: policy.to_owned(),
            interval_ms: 200,
            stable_polls: 4,
            limit_polls: 30,
        }
    }

    /// Adds the story to a guest as its next command.
    #[must_use]
    pub fn add_to(&self, vm: Vm) -> Vm {
        vm.file("/scenario/placement.sh", PLACEMENT)
            .file("/scenario/workload.sh", WORKLOAD)
            .file("/scenario/masks.sh", MASKS)
            .command("placement", &self.call())
    }

    fn call(&self) -> String {
        format!(
            "export FP={} INT={} POLICY='{}' INTERVAL={}ms STABLE={} LIMIT={}\n\
             sh /scenario/placement.sh\n",
            self.fp, self.int, self.policy, self.interval_ms, self.stable_polls, self.limit_polls
        )
    }
}
