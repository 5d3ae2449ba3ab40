//! The rules by which a member may join a group on the terms that hold there.

use super::message::{Demands, Terms};
use std::fmt::Display;

/// Verdict on a member that says hello.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// The member's demands are met by the terms that hold.
    Welcome,
    /// The member asks for terms that are open, which are to be settled.
    Settles,
    /// The member asks for other terms; the text names these and those that hold.
    Refused(String),
}

/// Judges a member's demands.
pub(super) fn verdict(terms: &Terms, demands: &Demands) -> Verdict {
    if let Some(why) = conflict(terms, demands) {
        return Verdict::Refused(why);
    }
    if settles(terms, demands) {
        return Verdict::Settles;
    }
    Verdict::Welcome
}

fn settles(terms: &Terms, demands: &Demands) -> bool {
    let of_policy = demands.policy.is_some() || brings_profile(terms, demands);
    (terms.open.policy && of_policy) || (terms.open.interval && demands.interval_ms.is_some())
}

fn brings_profile(terms: &Terms, demands: &Demands) -> bool {
    demands.profile.is_some() && demands.profile != terms.profile
}

/// Text about the first demand that is neither open nor met.
fn conflict(terms: &Terms, demands: &Demands) -> Option<String> {
    let policy = demands.policy.as_ref().filter(|_| !terms.open.policy);
    if let Some(policy) = policy.filter(|policy| **policy != terms.policy) {
        return Some(both("policy", policy, &terms.policy));
    }
    let interval = demands.interval_ms.filter(|_| !terms.open.interval);
    if let Some(interval) = interval.filter(|interval| *interval != terms.interval_ms) {
        let ms = |ms: u64| format!("{ms} ms");
        return Some(both(
            "an interval of",
            &ms(interval),
            &ms(terms.interval_ms),
        ));
    }
    // A recording in the terms was asked for, whether the policy is open or not.
    let is_fixed = !terms.open.policy || terms.profile.is_some();
    if brings_profile(terms, demands) && is_fixed {
        return Some(conflict_of_profiles(terms, demands));
    }
    let differs = demands.dry_run != terms.dry_run;
    differs.then(|| both("--dry-run", &demands.dry_run, &terms.dry_run))
}

fn conflict_of_profiles(terms: &Terms, demands: &Demands) -> String {
    let [theirs, ours] = [demands, &terms.demands()].map(|demands| {
        let path = demands.profile.as_ref();
        path.map_or("none".to_owned(), |path| path.display().to_string())
    });
    both("profile", &theirs, &ours)
}

fn both(what: &str, theirs: &dyn Display, ours: &dyn Display) -> String {
    format!(
        "it runs with {what} {ours}, and {what} {theirs} was asked for; \
         ask for the same, leave it out, or use another group"
    )
}

#[cfg(test)]
mod tests {
    use super::super::message::Open;
    use super::*;

    fn terms(open: Open) -> Terms {
        Terms {
            leader: 1,
            run: String::new(),
            policy: "auto".to_owned(),
            interval_ms: 1_000,
            dry_run: false,
            profile: None,
            open,
        }
    }

    const OPEN: Open = Open {
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
    fn open_terms_are_settled_by_whoever_names_them() {
        let open = terms(OPEN);
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
            asking(Some("fair-mis"), Some(20), Some("/p.json")),
        ] {
            assert_eq!(verdict(&open, &demands), Verdict::Settles, "{demands:?}");
        }
        assert_eq!(verdict(&open, &asking(None, None, None)), Verdict::Welcome);
    }

    #[test]
    fn settled_terms_are_not_settled_again() {
        let settled = terms(Open::default());
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
        ] {
            let verdict = verdict(&settled, &demands);
            assert!(matches!(verdict, Verdict::Refused(_)), "{demands:?}");
        }
        let same = asking(Some("auto"), Some(1_000), None);
        assert_eq!(verdict(&settled, &same), Verdict::Welcome);
    }

    #[test]
    fn a_dry_run_is_never_open() {
        let dry_run = true;
        let demands = Demands {
            dry_run,
            ..asking(Some("gang"), None, None)
        };
        let verdict = verdict(&terms(OPEN), &demands);
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }

    #[test]
    fn what_a_successor_asks_for_leaves_open_what_was() {
        let demands = terms(OPEN).demands();
        assert_eq!(demands, asking(None, None, None));
        let demands = terms(Open::default()).demands();
        assert_eq!(demands, asking(Some("auto"), Some(1_000), None));
    }
}
