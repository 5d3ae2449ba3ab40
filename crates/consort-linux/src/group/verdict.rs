//! Rules by which a member may join a group on the terms that hold there.

use crate::protocol::{Demands, GroupTerms};
use std::fmt::Display;

/// Verdict on the demands of a member that sends `hello`.
#[derive(Debug, PartialEq)]
pub(super) enum DemandsVerdict {
    /// The member's demands are met by the terms that hold.
    Welcome,
    /// The member demands terms that are open, which are to be settled.
    Settles,
    /// The member demands other terms; the text names these and the ones that hold.
    Refused(String),
}

pub(super) fn judge_demands(terms: &GroupTerms, demands: &Demands) -> DemandsVerdict {
    if let Some(why) = conflict(terms, demands) {
        return DemandsVerdict::Refused(why);
    }
    if settles_open_terms(terms, demands) {
        return DemandsVerdict::Settles;
    }
    DemandsVerdict::Welcome
}

fn settles_open_terms(terms: &GroupTerms, demands: &Demands) -> bool {
    let of_policy = demands.policy.is_some() || brings_profile(terms, demands);
    (terms.open.policy && of_policy) || (terms.open.interval && demands.interval_ms.is_some())
}

fn brings_profile(terms: &GroupTerms, demands: &Demands) -> bool {
    demands.profile.is_some() && demands.profile != terms.profile
}

/// Text about the first demand that is neither open nor met.
fn conflict(terms: &GroupTerms, demands: &Demands) -> Option<String> {
    let policy = demands.policy.as_ref().filter(|_| !terms.open.policy);
    if let Some(policy) = policy.filter(|policy| **policy != terms.policy) {
        return Some(conflict_text("policy", policy, &terms.policy));
    }
    let interval = demands.interval_ms.filter(|_| !terms.open.interval);
    if let Some(interval) = interval.filter(|interval| *interval != terms.interval_ms) {
        let ms = |ms: u64| format!("{ms} ms");
        return Some(conflict_text(
            "an interval of",
            &ms(interval),
            &ms(terms.interval_ms),
        ));
    }
    // A recording in the terms was demanded, whether the policy is open or not.
    let is_fixed = !terms.open.policy || terms.profile.is_some();
    if brings_profile(terms, demands) && is_fixed {
        return Some(profile_conflict(terms, demands));
    }
    let differs = demands.dry_run != terms.dry_run;
    differs.then(|| conflict_text("--dry-run", &demands.dry_run, &terms.dry_run))
}

fn profile_conflict(terms: &GroupTerms, demands: &Demands) -> String {
    let [theirs, ours] = [demands, &terms.demands()].map(|demands| {
        let path = demands.profile.as_ref();
        path.map_or("none".to_owned(), |path| path.display().to_string())
    });
    conflict_text("profile", &theirs, &ours)
}

fn conflict_text(what: &str, theirs: &dyn Display, ours: &dyn Display) -> String {
    format!(
        "it runs with {what} {ours}, and {what} {theirs} was asked for; \
         ask for the same, leave it out, or use another group"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OpenTerms;

    fn terms(open: OpenTerms) -> GroupTerms {
        GroupTerms {
            leader: 1,
            run: String::new(),
            policy: "auto".to_owned(),
            interval_ms: 1_000,
            dry_run: false,
            profile: None,
            open,
        }
    }

    const OPEN: OpenTerms = OpenTerms {
        policy: true,
        interval: true,
    };

    fn asking(policy: Option<&str>, interval_ms: Option<u64>, profile: Option<&str>) -> Demands {
        Demands {
            policy: policy.map(str::to_owned),
            interval_ms,
            dry_run: false,
            profile: profile.map(Into::into),
        }
    }

    #[test]
    fn open_terms_are_settled_by_demands() {
        let open = terms(OPEN);
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
            asking(Some("fair-mis"), Some(20), Some("/p.json")),
        ] {
            assert_eq!(
                judge_demands(&open, &demands),
                DemandsVerdict::Settles,
                "{demands:?}"
            );
        }
        assert_eq!(
            judge_demands(&open, &asking(None, None, None)),
            DemandsVerdict::Welcome
        );
    }

    #[test]
    fn settled_terms_are_not_settled_again() {
        let settled = terms(OpenTerms::default());
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
        ] {
            let verdict = judge_demands(&settled, &demands);
            assert!(matches!(verdict, DemandsVerdict::Refused(_)), "{demands:?}");
        }
        let same = asking(Some("auto"), Some(1_000), None);
        assert_eq!(judge_demands(&settled, &same), DemandsVerdict::Welcome);
    }

    #[test]
    fn dry_run_is_never_open() {
        let dry_run = true;
        let demands = Demands {
            dry_run,
            ..asking(Some("gang"), None, None)
        };
        let verdict = judge_demands(&terms(OPEN), &demands);
        assert!(matches!(verdict, DemandsVerdict::Refused(_)), "{verdict:?}");
    }

    #[test]
    fn successor_leaves_open_terms_open() {
        let demands = terms(OPEN).demands();
        assert_eq!(demands, asking(None, None, None));
        let demands = terms(OpenTerms::default()).demands();
        assert_eq!(demands, asking(Some("auto"), Some(1_000), None));
    }
}
