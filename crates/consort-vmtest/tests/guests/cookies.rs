//! Two cores of two ways whose kernel has core scheduling.

use crate::support::{
    LIMIT, WORKOVER, check_ended, check_free, check_nothing_left, guest, json, masks,
};
use consort_core::PuSet;
use consort_vmtest::{
    GuestOutput, GuestTools, GuestTopology, Scenario, ScenarioKind, check_fp_paired_with_light,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const NAME: &str = "cookies";

/// Four busy shells, each of which starts a sleeper once all have cookies. Shows the cookie of each
/// thread when every sleeper has lost the one that it was born with.
const BORN: &str = r#"
cat > /tmp/busy.sh <<'X'
while [ ! -e /tmp/go ]; do :; done
sleep 1000000 &
while :; do :; done
X
cat > /tmp/four.sh <<'X'
for _ in 1 2 3 4; do sh /tmp/busy.sh & done
wait
X
consort run --quiet --cookies --policy spread:active=0 --interval 1s -- sh /tmp/four.sh &
consort=$!
count() { guest-probe cookies sleep | grep -c "$1"; }
polls=0
until [ $(count ' sh$') = 4 ] || [ $polls = 60 ]; do polls=$((polls + 1)); sleep 1; done
touch /tmp/go
# One more belongs to Consort itself.
until [ $(count ' 0 sleep$') = 5 ] || [ $polls = 120 ]; do polls=$((polls + 1)); sleep 1; done
guest-probe cookies sleep sh
kill -TERM $consort
wait $consort
true
"#;

/// Cookie of one thread; 0 is none.
struct Cookie {
    tid: u32,
    id: u64,
    name: String,
}

fn cookies(outcome: &GuestOutput, section: &str) -> Vec<Cookie> {
    let lines = outcome.output(section).unwrap().lines();
    let cookies = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let ["cookie", _, tid, id, name] = words[..] else {
            panic!("{section}: {line}");
        };
        Cookie {
            tid: tid.parse().unwrap(),
            id: id.parse().unwrap(),
            name: name.to_owned(),
        }
    });
    cookies.collect()
}

/// Returns true for a thread of the load; Consort's own threads that keep cookies are not of it.
fn is_busy(cookie: &&Cookie) -> bool {
    ["fp-", "int-"]
        .iter()
        .any(|kind| cookie.name.starts_with(kind))
}

/// Asserts that threads that share a core have a cookie in common, and all others none.
fn check_shared(outcome: &GuestOutput, placed: &str, section: &str) {
    let topology = GuestTopology::smt(2, 2).topology().unwrap();
    let core_of = |mask: &PuSet| topology.core_of(mask.first().unwrap()).unwrap();
    let masks = masks(outcome, placed);
    check_fp_paired_with_light(&masks, &topology).unwrap();
    let cores: BTreeMap<u32, usize> = masks.iter().map(|t| (t.tid, core_of(&t.mask))).collect();
    let all = cookies(outcome, section);
    let mut of_core: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for cookie in all.iter().filter(is_busy) {
        of_core
            .entry(cores[&cookie.tid])
            .or_default()
            .insert(cookie.id);
    }
    let ids: Vec<u64> = of_core.values().flatten().copied().collect();
    assert_eq!(ids.len(), 2, "{section}: {of_core:?}");
    assert!(
        !ids.contains(&0) && ids[0] != ids[1],
        "{section}: {of_core:?}"
    );
    let others = all
        .iter()
        .filter(|c| !is_busy(c) && c.name != "consort-cookie");
    let others: Vec<_> = others.filter(|c| c.id != 0).map(|c| &c.name).collect();
    assert!(others.is_empty(), "{section}: {others:?}");
}

/// Asserts that no thread has a cookie, and that the load is still there.
fn check_none(outcome: &GuestOutput, section: &str) {
    let all = cookies(outcome, section);
    assert_eq!(all.iter().filter(is_busy).count(), 4, "{section}");
    let left = all.iter().filter(|c| c.id != 0);
    let left: Vec<_> = left.map(|c| (&c.name, c.id)).collect();
    assert!(left.is_empty(), "{section}: {left:?}");
}

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

#[test]
fn whoever_shares_a_core_shares_a_cookie_until_the_end() {
    let Some(host) = GuestTools::find_cookies_or_skip() else {
        return;
    };
    let vm = guest(GuestTopology::smt(2, 2));
    let story = Scenario {
        sleepers: 1,
        ..Scenario::new(NAME, ScenarioKind::Cookies, WORKOVER, 2, 2)
    };
    // The shells stay, so they come last.
    let vm = story.add_to(vm).command("born", BORN);
    let vm = vm.command("born-left", "guest-probe cookies");
    let outcome = vm.run(&host, LIMIT).unwrap();
    let machine = json(&outcome, "machine");
    assert_eq!(machine["cookies"]["available"], true, "{machine}");

    check_shared(&outcome, "cookies-during", "cookies-shared");
    check_none(&outcome, "cookies-ended-cookies");
    check_free(&outcome, "cookies-after", 4, "0-3");
    let report = json(&outcome, "cookies-report");
    assert_eq!(report["cookies"]["cores"], 2, "{report}");
    assert!(!warnings(&report).contains("sched_ext"), "{report}");

    check_shared(&outcome, "cookies-again", "cookies-again-cookies");
    check_none(&outcome, "cookies-killed-cookies");
    check_free(&outcome, "cookies-killed", 4, "0-3");

    check_shared(&outcome, "cookies-third", "cookies-stale-cookies");
    check_none(&outcome, "cookies-recovered-cookies");
    let recovered = warnings(&json(&outcome, "cookies-recovered"));
    assert!(
        recovered.contains("cookies that an earlier run left"),
        "{recovered}"
    );
    check_ended(&outcome, "cookies");
    check_overruled(&outcome);
    check_born(&outcome);
}

/// Asserts that a thread that is born with a cookie loses it, and its creator keeps its own.
fn check_born(outcome: &GuestOutput) {
    let all = cookies(outcome, "born");
    let having = |name: &str, has: bool| {
        let named = all.iter().filter(|c| c.name == name && (c.id != 0) == has);
        named.count()
    };
    let busy = (
        having("sh", true),
        having("sleep", true),
        having("sleep", false),
    );
    assert_eq!(busy, (4, 0, 5), "{}", outcome.output("born").unwrap());
    assert_eq!(outcome.output("born-left").unwrap(), "");
}

/// Asserts that a sched_ext scheduler that comes ends all cookies, and one that is there prevents
/// them.
fn check_overruled(outcome: &GuestOutput) {
    check_shared(outcome, "overruled-during", "overruled-shared");
    check_none(outcome, "overruled-cookies");
    let reported = warnings(&json(outcome, "overruled-report"));
    for words in ["start no sched_ext scheduler", "lavd is enabled"] {
        assert!(reported.contains(words), "{reported}");
    }
    let refused = outcome.section("overruled-refused").unwrap();
    assert_eq!(refused.status, 2, "{}", refused.text);
    assert!(
        refused.text.contains("scheduler lavd is enabled"),
        "{}",
        refused.text
    );
    check_nothing_left(outcome, "overruled");
}
