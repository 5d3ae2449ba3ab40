//! Terms of a group that this run leads and that a later run settles.

use super::session::ManageSession;
use super::setup::{PolicySelection, PolicySetup};
use crate::cli::ManageArgs;
use anyhow::{Result, anyhow};
use consort_core::{ControlLoop, Machine};
use consort_linux::group::Demands;
use consort_linux::live::{LiveMachine, RecordedMeasures, SettledTerms};
use std::time::Duration;

/// Reason for a policy that another run has named.
const WHY: &str = "as a later run of the group asked";

impl ManageSession<'_> {
    /// Does what a member asks for, if one does, and tells it; returns the choice where it is new.
    pub(super) fn settle_terms(
        &self,
        wheel: &mut ControlLoop<LiveMachine>,
        chosen: &PolicySelection,
    ) -> Option<PolicySelection> {
        let demands = wheel.machine().proposal()?.clone();
        let made = self.resolve_terms(wheel.machine(), chosen, &demands);
        let (settled, setup) = match made {
            Ok(made) => made,
            Err(error) => {
                let why = format!("it cannot run as was asked for: {error:#}");
                wheel.machine_mut().settle_terms(Err(why));
                return None;
            }
        };
        let other = setup
            .as_ref()
            .map_or_else(|| chosen.clone(), PolicySetup::selection);
        let interval = settled.interval;
        wheel.machine_mut().settle_terms(Ok(settled));
        if let Some(setup) = setup {
            wheel.change_policy(setup.policy);
        }
        Some(PolicySelection { interval, ..other })
    }

    /// The terms with what is asked for, and the policy where that is another.
    fn resolve_terms(
        &self,
        machine: &LiveMachine,
        chosen: &PolicySelection,
        demands: &Demands,
    ) -> Result<(SettledTerms, Option<PolicySetup>)> {
        let fresh = |path| demands.profile.as_deref() == Some(path);
        let known = machine.terms().and_then(|terms| terms.profile.as_deref());
        let brought = demands
            .profile
            .as_deref()
            .filter(|_| !known.is_some_and(fresh));
        let recorded = brought.map(RecordedMeasures::read).transpose()?;
        let setup = self.setup_for(machine, chosen, demands, recorded.as_ref())?;
        let usual = setup.as_ref().map(|setup| setup.interval);
        let asked = demands.interval_ms.map(Duration::from_millis);
        let settled = SettledTerms {
            policy: demands.policy.clone().unwrap_or(chosen.requested.clone()),
            interval: asked.or(usual).unwrap_or(chosen.interval),
            recorded,
        };
        Ok((settled, setup))
    }

    fn setup_for(
        &self,
        machine: &LiveMachine,
        chosen: &PolicySelection,
        demands: &Demands,
        recorded: Option<&RecordedMeasures>,
    ) -> Result<Option<PolicySetup>> {
        let offers = match recorded {
            Some(recorded) => machine.offers_with(recorded).map_err(|why| anyhow!(why))?,
            None => machine.offers().clone(),
        };
        // Measures may feed another policy than the one that was chosen without them.
        let again = recorded.map(|_| &chosen.requested);
        let Some(policy) = demands.policy.as_ref().or(again) else {
            return Ok(None);
        };
        // The quantum is the policy's own unless somebody has asked for one.
        let is_asked = machine.terms().is_some_and(|terms| !terms.open.interval);
        let args = ManageArgs {
            interval: is_asked.then_some(chosen.interval),
            model: None,
            ..self.args.clone()
        };
        let topology = machine.topology();
        let setup = PolicySetup::for_policy(&args, self.config, policy.clone(), topology, &offers)?;
        let why = WHY.to_owned();
        Ok(Some(PolicySetup { why, ..setup }))
    }
}
