//! `consort list policies`: the policies, each with what keeps it from running here.

use super::manage::detect_host;
use crate::failure::bad_input;
use crate::options::NamedListArgs;
use crate::output::{self, OutputColumn, extra_number, extra_text, text, wrap};
use anyhow::Result;
use consort_core::policies::{self, REGISTRY};
use consort_core::policy::{OptionInfo, POLICY_ALIASES, PolicyError, PolicyInfo, PolicySpec};
use consort_core::{SignalOffers, Topology};
use serde::Serialize;

/// A policy as it is listed. Keys are a contract: add, never rename.
#[derive(Serialize)]
struct PolicyRow {
    #[serde(flatten)]
    info: &'static PolicyInfo,
    /// Plain name, if it has one.
    alias: Option<&'static str>,
    here: PolicyAvailability,
}

/// True if a policy can run on this machine, or the reason why it cannot.
#[derive(Serialize)]
struct PolicyAvailability {
    available: bool,
    reason: Option<String>,
}

const COLUMNS: &[OutputColumn<PolicyRow>] = &[
    text("name", |r| r.info.name.to_owned()),
    extra_text("alias", |r| r.alias.unwrap_or_default().to_owned()),
    extra_text("family", |r| r.info.family.to_owned()),
    text("here", |r| match &r.here.reason {
        None => "yes".to_owned(),
        Some(reason) => format!("no: {reason}"),
    }),
    extra_text("needs", |r| needs(r.info)),
    extra_text("tier from", |r| r.info.tier_min.to_string()),
    extra_number("quantum (ms)", |r| r.info.quantum_ms.to_string()),
    extra_text("runs on", |r| runs_on(r.info).to_owned()),
    text("summary", |r| r.info.summary.to_owned()),
    extra_text("source", |r| r.info.source.to_owned()),
];

const OPTIONS: &[OutputColumn<OptionInfo>] = &[
    text("option", |o| o.name.to_owned()),
    text("default", |o| o.default.to_owned()),
    text("meaning", |o| o.meaning.to_owned()),
];

pub(crate) fn execute(args: &NamedListArgs) -> Result<()> {
    let host = detect_host(None);
    let machine = host
        .as_ref()
        .map(|host| (&host.discovery.topology, host.offers()));
    let here = machine
        .as_ref()
        .map(|(topology, offers)| (*topology, offers));
    let row = |info| PolicyRow::new(info, here.as_ref().ok().copied());
    let out = args.list.out.as_deref();
    let Some(name) = &args.name else {
        let rows: Vec<PolicyRow> = REGISTRY.iter().map(row).collect();
        return output::print_list(out, args.format, COLUMNS, &rows);
    };
    let info = policies::find(name).map_err(bad_input)?;
    let row = row(info);
    output::file::write_list(out, OPTIONS, info.options)?;
    output::print(args.format, OPTIONS, info.options, &row, || row.describe())
}

impl PolicyRow {
    /// A row for a machine with these signals; `None` if this machine cannot be read.
    fn new(info: &'static PolicyInfo, machine: Option<(&Topology, &SignalOffers)>) -> Self {
        let reason = match machine {
            _ if !info.live => Some("simulated machines only".to_owned()),
            None => Some("this machine cannot be read; see `consort machine`".to_owned()),
            Some((topology, offers)) => {
                let spec = info.name.parse::<PolicySpec>();
                match spec.and_then(|spec| policies::open(topology, offers, &spec)) {
                    Ok(_) => None,
                    Err(PolicyError::Unfed { needs, .. }) => Some(format!("needs {needs}")),
                    Err(error) => {
                        let error = error.to_string();
                        let name = format!("policy {} ", info.name);
                        let reason = error.strip_prefix(&name).unwrap_or(&error);
                        // What to do instead is for those who name the policy.
                        Some(reason.split(';').next().unwrap_or(reason).to_owned())
                    }
                }
            }
        };
        let alias = POLICY_ALIASES.iter().find(|(_, name)| *name == info.name);
        Self {
            info,
            alias: alias.map(|(alias, _)| *alias),
            here: PolicyAvailability {
                available: reason.is_none(),
                reason,
            },
        }
    }

    fn describe(&self) -> String {
        let info = self.info;
        let name = match self.alias {
            Some(alias) => format!("{} (also {alias}): ", info.name),
            None => format!("{}: ", info.name),
        };
        let here = match &self.here.reason {
            None => "yes".to_owned(),
            Some(reason) => format!("no: {reason}; `consort machine` shows why"),
        };
        let facts = [
            (name.as_str(), info.summary),
            ("runs here: ", here.as_str()),
            ("runs on: ", runs_on(info)),
            (
                "needs: ",
                &format!("{}, from tier {}", needs(info), info.tier_min),
            ),
            ("quantum: ", &format!("{} ms", info.quantum_ms)),
            ("family: ", info.family),
            ("source: ", info.source),
        ];
        let mut text: String = facts.iter().map(|(lead, fact)| wrap(lead, fact)).collect();
        match info.options.first() {
            None => text += "options: none\n",
            Some(OptionInfo { name, default, .. }) => {
                let (options, policy) = (output::table(OPTIONS, info.options), info.name);
                text += &format!("\n{options}\nFor example: --policy {policy}:{name}={default}\n");
            }
        }
        text
    }
}

fn needs(info: &PolicyInfo) -> String {
    let needs: Vec<&str> = info.needs.iter().map(|signal| signal.name()).collect();
    match needs.as_slice() {
        [] => "nothing".to_owned(),
        needs => needs.join(", "),
    }
}

fn runs_on(info: &PolicyInfo) -> &'static str {
    match (info.live, info.simulated) {
        (true, true) => "live, simulated",
        (true, false) => "live",
        (false, _) => "simulated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Signal, Tier};
    use consort_data::List;

    #[test]
    fn policy_table_says_what_can_run_here() {
        let topology = Topology::uniform(2, 2).unwrap();
        let offers: SignalOffers = [
            (Signal::CpuTime, Tier::Proc),
            (Signal::FpUsage, Tier::Sampling),
        ]
        .into_iter()
        .collect();
        let rows = REGISTRY.iter();
        let rows: Vec<PolicyRow> = rows
            .map(|info| PolicyRow::new(info, Some((&topology, &offers))))
            .collect();
        insta::assert_snapshot!(List::new(COLUMNS, &rows).to_text(Some(80)));
        let text = rows[0].describe();
        assert!(text.starts_with("workover (also pair-fpu): "), "{text}");
        assert!(text.contains("--policy workover:active=0.1"), "{text}");
    }
}
