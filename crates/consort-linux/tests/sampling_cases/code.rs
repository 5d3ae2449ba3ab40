//! Code is found and told apart, whatever it comes from.

use super::elf::{Elf, FP_64, INT_32, fp_64_behind_32, int_32_behind_64};
use super::harness::{Held, Story, all_pus, attach, can_sample, follow, launch, sampled};
use crate::skip::skipped;
use consort_linux::sampling::{Sampler, SamplerConfig};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// The loops have eight of ten instructions of their kind, so at least half of
/// any fair account of the time is theirs.
const MOST: f64 = 0.5;

fn assert_fp(story: &Story) {
    let (mix, decoded) = story.mix();
    assert!(mix.fp > MOST && decoded > 0.9, "{mix:?}, decoded {decoded}");
}

fn assert_int(story: &Story) {
    let (mix, decoded) = story.mix();
    assert!(
        mix.int > MOST && mix.fp < 0.1 && decoded > 0.9,
        "{mix:?}, decoded {decoded}"
    );
}

#[test]
fn floating_point_is_told_from_integer() {
    if can_sample() {
        assert_fp(&launch(&sampled(), &["fp", "600"]));
        assert_int(&launch(&sampled(), &["int", "600"]));
    }
}

#[test]
fn one_second_gives_enough_samples() {
    if can_sample() {
        let story = launch(&sampled(), &["fp", "1000"]);
        let cpu_s = story.cpu_time_ns as f64 * 1e-9;
        let per_s = story.samples as f64 / cpu_s;
        // The start at 1,998 per second, then 499; the host may steal some.
        assert!(per_s > 600.0, "{per_s} samples per second of {cpu_s} s");
    }
}

#[test]
fn an_executed_program_replaces_the_old_one() {
    if can_sample() {
        let story = launch(&sampled(), &["exec", "1200"]);
        // On a busy host a round may hold a few samples of the program's start alone.
        let mixes: Vec<_> = { story.rounds.iter() }
            .filter_map(|r| r.interval.mix())
            .collect();
        let first = mixes.iter().position(|m| m.int > MOST && m.fp < 0.1);
        let later = mixes.iter().rposition(|m| m.fp > MOST && m.int < 0.3);
        assert!(first.is_some() && first < later, "{mixes:?}");
    }
}

#[test]
fn code_made_and_remade_at_run_time_is_seen_as_it_is() {
    if can_sample() {
        let story = launch(&sampled(), &["jit", "1600"]);
        let mixes: Vec<_> = story
            .rounds
            .iter()
            .filter_map(|r| r.interval.mix())
            .collect();
        let most_fp = mixes.iter().map(|m| m.fp).fold(0.0, f64::max);
        let last = mixes.last().expect("samples");
        assert!(most_fp > MOST, "{most_fp}");
        assert!(last.int > MOST && last.fp < 0.1, "{last:?}");
    }
}

#[test]
fn the_vdso_is_read() {
    if can_sample() {
        let story = launch(&sampled(), &["clock", "600"]);
        let (_, decoded) = story.mix();
        assert!(decoded > 0.9, "{decoded}: {:?}", story.code);
        assert_eq!(story.code.unmapped, 0);
    }
}

#[test]
fn processes_that_have_ended_are_read_from_their_files() {
    if can_sample() {
        let mut child = Held::new(&sampled(), &["forks", "200"]);
        let config = SamplerConfig::default();
        let sampler = Sampler::attach_launch(child.pid(), &all_pus(), config).unwrap();
        child.let_go();
        while !child.has_ended() {
            sleep(Duration::from_millis(10));
        }
        // The rings are read once nothing of the program is left.
        let story = follow(&mut child, sampler);
        assert_fp(&story);
        assert!(story.code.from_file > 0, "{:?}", story.code);
        assert_eq!(story.code.from_memory, 0, "{:?}", story.code);
    }
}

#[test]
fn a_running_process_is_attached_to() {
    if can_sample() {
        let mut child = Held::new(&sampled(), &["both", "1500"]);
        child.let_go();
        while std::fs::read_dir(format!("/proc/{}/task", child.pid()))
            .unwrap()
            .count()
            < 3
        {
            std::thread::yield_now();
        }
        let story = attach(&mut child, SamplerConfig::default()).unwrap();
        assert_eq!(
            story.named("integer").total.mix().map(|m| m.int > MOST),
            Some(true)
        );
        let fp = story.named("floating (1) x").total.mix();
        assert_eq!(fp.map(|m| m.fp > MOST), Some(true));
    }
}

#[test]
fn a_stripped_static_program_is_read() {
    if !cfg!(target_arch = "x86_64") {
        skipped("the program is written in x86 machine code");
    } else if can_sample() {
        let elf = Elf::class_64(FP_64);
        assert_fp(&launch(&elf.path, &[]));
    }
}

/// Returns true where 32-bit x86 code can be run and sampled; says so where it cannot.
fn can_sample_narrow() -> bool {
    if !cfg!(target_arch = "x86_64") {
        skipped("the program is written in x86 machine code");
    } else if !Path::new("/proc/sys/abi/vsyscall32").exists() {
        skipped("the kernel does not run 32-bit programs");
    } else {
        return can_sample();
    }
    false
}

#[test]
fn a_32_bit_program_is_decoded_as_one() {
    if can_sample_narrow() {
        assert_int(&launch(&Elf::class_32(INT_32).path, &[]));
    }
}

#[test]
fn wide_code_in_a_narrow_program_is_decoded_as_wide() {
    if can_sample_narrow() {
        assert_fp(&launch(&Elf::class_32(&fp_64_behind_32()).path, &[]));
    }
}

#[test]
fn narrow_code_in_a_wide_program_is_decoded_as_narrow() {
    if can_sample_narrow() {
        assert_int(&launch(&Elf::class_64(&int_32_behind_64()).path, &[]));
    }
}
