//! A time of day that is set forwards and backwards while threads are managed.

use crate::support::{boot, guest, json};
use consort_vmtest::GuestTopology;

/// Sets the time of day 10 years ahead and 20 back while two threads compute for four seconds.
const RUN: &str = "consort run --quiet --format json --policy spread:active=0 --enact pin \
    --interval 200ms -- sh -c 'consort-demo int --threads 2 --seconds 4 >/dev/null & sleep 1; \
    date -s \"2040-01-01 00:00:00\" >/dev/null; sleep 1; \
    date -s \"2000-01-01 00:00:00\" >/dev/null; date +%Y >/year; wait'";

#[test]
fn steps_of_the_clock_change_neither_quanta_nor_times() {
    let vm = guest(GuestTopology::smt(2, 1))
        .command("stepped", RUN)
        .command("year", "cat /year");
    let Some(outcome) = boot(&vm) else {
        return;
    };
    assert_eq!(outcome.output("year").unwrap().trim(), "2000");
    let report = json(&outcome, "stepped");
    let number = |key: &str| report[key].as_f64().unwrap();
    let duration_s = number("duration_s");
    // Four seconds of work; the rest is what an emulated guest takes for it.
    assert!((4.0..600.0).contains(&duration_s), "{report}");
    assert!(number("cpu_s") <= 2.0 * duration_s, "{report}");
    assert!(number("plans") >= 2.0, "{report}");
    let mean_ms = report["quantum"]["mean_ms"].as_f64().unwrap();
    assert!((150.0..1e3 * duration_s).contains(&mean_ms), "{report}");
    assert_eq!(report["restored"], true, "{report}");
    for thread in report["threads"].as_array().unwrap() {
        for key in ["cpu_s", "wait_s"] {
            let seconds = thread[key].as_f64().unwrap_or(0.0);
            assert!((0.0..=duration_s).contains(&seconds), "{key}: {report}");
        }
    }
}
