//! Very many threads and processes at once.

use super::common::warnings;
use super::compiled::compiled;
use super::under::{RUN, report, scene};

/// Memory of Consort and its guardian with 2,000 threads in a debug build, KiB.
const ENOUGH_KIB: u64 = 64 << 10;

fn crowd(name: &str, before: &str, count: &str) -> Option<serde_json::Value> {
    let program = compiled(name, &[])?;
    let place = program.path();
    let script = format!("{before} exec \"$C\" {RUN} --format json -- \"$P\" {count}");
    let output = scene(&script, place.to_str().unwrap());
    let report = report(&output, 0);
    let said = super::common::stderr(&output);
    assert!(said.contains(&format!("{count} ")), "{said}");
    Some(report)
}

/// Nearly all threads were seen or at least counted; all of them where the kernel lost no record.
fn assert_seen(report: &serde_json::Value, count: u64) {
    let listed = report["threads"].as_array().unwrap().len() as u64;
    let seen = listed + report["others"]["count"].as_u64().unwrap();
    let lost = report["sampling"]["lost"].as_u64().unwrap();
    let least = if lost > 0 { count / 2 } else { count };
    assert!(seen >= least, "{seen} seen, {lost} records lost");
    // The first thread comes on top, and a few that were found twice while records were late.
    let most = count + 1 + count / 20;
    assert!(seen <= most, "{seen} seen, {lost} records lost");
}

#[test]
fn a_fork_bomb_of_500_processes_is_survived() {
    let Some(report) = crowd("bomb", "", "500") else {
        return;
    };
    assert_seen(&report, 500);
    assert_eq!(warnings(&report), [""; 0]);
}

#[test]
fn two_thousand_threads_alive_at_once_are_all_counted() {
    let Some(report) = crowd("threads", "", "2000") else {
        return;
    };
    assert_seen(&report, 2000);
    let peak_kib = report["overhead"]["peak_rss_kib"].as_u64().unwrap();
    assert!(peak_kib < ENOUGH_KIB, "{peak_kib}");
}

#[test]
fn ten_thousand_threads_stretch_the_quanta_and_that_is_said_once() {
    let Some(report) = crowd("threads", "", "10000") else {
        return;
    };
    assert_seen(&report, 10_000);
    let all = report["warnings"].as_array().unwrap();
    let stretched = all
        .iter()
        .filter(|w| w.as_str().unwrap().contains("stretched"));
    assert!(stretched.count() <= 1, "{all:?}");
    assert!(report["quantum"]["mean_ms"].as_f64().unwrap() > 20.0);
}

#[test]
fn two_thousand_threads_with_256_descriptors_cost_one_warning() {
    let Some(report) = crowd("threads", "ulimit -n 256;", "2000") else {
        return;
    };
    assert_seen(&report, 2000);
    let warnings = warnings(&report);
    let about_files = warnings
        .iter()
        .filter(|w| w.contains("out of file descriptors"));
    assert!(
        about_files.count() <= 1 && warnings.len() <= 1,
        "{warnings:?}"
    );
}
