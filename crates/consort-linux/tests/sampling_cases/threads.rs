//! Threads are found, followed and told apart.

use super::harness::{
    Held, all_pus, attach, can_sample, eventually, launch, launch_with, one_pu, pin, sampled,
};
use crate::skip::skipped;
use consort_linux::discovery::ThreadEvent;
use consort_linux::perf::PerfError;
use consort_linux::sampling::{Sampler, SamplerConfig, SamplerError, SamplingScope};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn threads_of_one_program_are_told_apart_by_name() {
    if !can_sample() {
        return;
    }
    let story = launch(&sampled(), &["both", "800"]);
    let int = story.named("integer").total.mix().expect("samples");
    let fp = story.named("floating (1) x").total.mix().expect("samples");
    assert!(int.int > 0.5 && int.fp < 0.1, "{int:?}");
    assert!(fp.fp > 0.5 && fp.int < 0.3, "{fp:?}");
    let exits = |event: &&ThreadEvent| matches!(event, ThreadEvent::Exited { .. });
    assert_eq!(story.events.iter().filter(exits).count(), 3);
}

#[test]
fn thousands_of_short_threads_are_counted_and_none_is_lost() {
    if !can_sample() {
        return;
    }
    let story = launch(&sampled(), &["churn", "1500"]);
    let started: u64 = story.stdout.trim().parse().expect("the number of threads");
    let appeared = |event: &&ThreadEvent| matches!(event, ThreadEvent::Appeared { .. });
    let listed = story.events.iter().filter(appeared).count() as u64;
    let exits = |event: &&ThreadEvent| matches!(event, ThreadEvent::Exited { .. });
    let ended = story.events.iter().filter(exits).count() as u64;
    assert_eq!(story.lost, 0);
    assert!(started > 100, "{started} threads");
    // The main thread is listed as well; every thread is in one account only.
    assert_eq!((listed + story.short_lived, ended), (started + 1, listed));
}

#[test]
fn cpu_time_of_everything_is_known() {
    if !can_sample() {
        return;
    }
    let story = launch(&sampled(), &["forks", "500"]);
    let share = story.sampled_share();
    // The rest of the time is spent in the kernel, starting processes.
    assert!(share > 0.3 && share < 1.2, "{share}");
}

#[test]
fn a_full_ring_is_counted() {
    if !can_sample() {
        return;
    }
    let config = SamplerConfig {
        rate_hz: 10_000,
        ring_bytes: 4096,
        reach: SamplingScope::Own,
        ..SamplerConfig::default()
    };
    let mut child = Held::new(&sampled(), &["fp", "1000"]);
    pin(&child, &one_pu());
    let mut sampler = Sampler::attach_launch(child.pid(), &one_pu(), config).unwrap();
    child.let_go();
    let mut lost = 0;
    while !child.has_ended() {
        sleep(Duration::from_millis(400));
        lost += sampler.drain().lost;
    }
    lost += sampler.drain().lost;
    assert!(lost > 100, "{lost}");
}

#[test]
fn few_descriptors_give_each_thread_one_event() {
    if !can_sample() {
        return;
    }
    let mut child = Held::new(&sampled(), &["both", "1500"]);
    child.let_go();
    while std::fs::read_dir(format!("/proc/{}/task", child.pid()))
        .unwrap()
        .count()
        < 3
    {
        std::thread::yield_now();
    }
    let config = SamplerConfig {
        fd_budget: if all_pus().len() > 1 { 5 } else { 2 },
        reach: SamplingScope::Own,
        ..SamplerConfig::default()
    };
    match attach(&mut child, config) {
        Ok(story) => {
            let int = story.named("integer").total.mix().expect("samples");
            assert!(int.int > 0.5, "{int:?}");
        }
        Err(error) => {
            let (threads, budget) = (3, config.fd_budget);
            assert_eq!(error, SamplerError::FdBudget { threads, budget });
        }
    }
}

#[test]
fn threads_that_come_later_are_followed_without_inheritance() {
    if !can_sample() {
        return;
    }
    let config = SamplerConfig {
        fd_budget: 16,
        reach: SamplingScope::Own,
        burst_hz: 0,
        ..SamplerConfig::default()
    };
    // More CPUs than descriptors: the launched program's threads come one by one.
    let many = "0-63".parse().unwrap();
    let mut child = Held::new(&sampled(), &["both", "1500"]);
    let sampler = Sampler::attach_launch(child.pid(), &many, config).unwrap();
    assert!(!sampler.is_inherited());
    let story = super::harness::follow(&mut child, sampler);
    let int = story.named("integer").total.mix().expect("samples");
    assert!(int.int > 0.5, "{int:?}");
}

#[test]
fn surplus_samples_are_left_out_and_the_others_stand_for_them() {
    if !can_sample() {
        return;
    }
    let config = SamplerConfig {
        rate_hz: 4_000,
        max_samples_per_s: 500,
        burst_hz: 0,
        ..SamplerConfig::default()
    };
    // A round is thinned by the rate of the one before; a busy host has rounds of seconds.
    eventually(|| {
        let story = launch_with(&sampled(), &["int", "1500"], config);
        let cpu_s = story.cpu_time_ns as f64 * 1e-9;
        let share = story.sampled_share();
        assert!(share > 0.5 && share < 1.5, "{share}");
        let few = (story.samples as f64) < 2_500.0 * cpu_s;
        few.then_some(())
            .ok_or_else(|| format!("{} samples", story.samples))
    });
}

#[test]
fn a_process_that_is_gone_is_an_error() {
    let mut child = Held::new(&sampled(), &["sleep", "0"]);
    let pid = child.pid();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    let error = Sampler::attach_launch(pid, &all_pus(), SamplerConfig::default());
    match error.expect_err("nobody is there") {
        SamplerError::Perf {
            error: PerfError::NotPermitted,
            ..
        } => {
            skipped("no permission to sample");
        }
        error => assert_eq!(
            error,
            SamplerError::Perf {
                tid: pid,
                error: PerfError::Gone
            }
        ),
    }
}

#[test]
fn records_of_strangers_are_dropped() {
    if !can_sample() {
        return;
    }
    let mut stranger = Held::new(&sampled(), &["forks", "2000"]);
    stranger.let_go();
    let mut child = Held::new(&sampled(), &["both", "800"]);
    let sampler = Sampler::attach_launch(child.pid(), &all_pus(), SamplerConfig::default());
    let pid = child.pid();
    let story = super::harness::follow(&mut child, sampler.expect("this host can sample"));
    assert!(!story.rounds.is_empty(), "it was sampled");
    assert!(story.rounds.iter().all(|thread| thread.pid == pid));
    let found = story.events.iter().filter_map(|event| match event {
        ThreadEvent::Appeared { id, .. } => Some(id.pid),
        _ => None,
    });
    assert!(found.into_iter().all(|of| of == pid));
}
